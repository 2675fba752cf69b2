import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { Attacks } from "./support/attacks.ts";
import { equip, type Identifiers } from "./support/identifiers.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * A tenant that shares the platform's pass type with another, and has a pass on the same device: its own webhook has
 * received the device's id.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("devices");

let target: Target;
let victims: Identifiers;
let own: Identifiers;

beforeAll(async () => {
  target = await startTarget();
  [victims, own] = [await equip(target, target.victim), await equip(target, target.attacker)];
});
afterAll(() => target?.stop());

/** The token with which `equip` registers its devices. */
const TRUE_TOKEN = "00ff".repeat(16);
const FALSE_TOKEN = "e11".repeat(16);

const pushesTo = async (token: string): Promise<number> =>
  (await target.operator("GET", `/sandbox/messages?to=${token}`)).body.messages.length;

/** Changes the victim's pass and waits until its device was notified; returns how often the attacker's was. */
async function pushesAstray(): Promise<number> {
  const [before, astray] = [await pushesTo(TRUE_TOKEN), await pushesTo(FALSE_TOKEN)];
  const pass_data = { back_fields: [{ key: "at", value: String(before), changeMessage: "Now %@" }] };
  const updated = await target.call(target.victim, "PUT", `/v1/passes/${victims.passId}`, { pass_data });
  expect((await target.ended(target.victim, updated)).status).toBe("success");
  await eventually("the device is told", async () => (await pushesTo(TRUE_TOKEN)) > before, 3_000).catch(() => null);
  return (await pushesTo(TRUE_TOKEN)) > before ? (await pushesTo(FALSE_TOKEN)) - astray : Number.NaN;
}

test("one tenant's calls about a device neither redirect another tenant's pushes nor remove its passes", async () => {
  const registration = `/wallet/v1/devices/${victims.device}/registrations/${own.passType}/${own.serial}`;
  const headers = { authorization: `ApplePass ${own.passToken}`, "content-type": "application/json" };
  const body = JSON.stringify({ pushToken: FALSE_TOKEN });
  const calls = [
    { name: "another push token", method: "POST", body },
    { name: "another push token once more", method: "POST", body },
    { name: "an unregistration", method: "DELETE", body: undefined },
    { name: "a registration behind it", method: "POST", body },
  ];
  expect(own.passType).toBe(victims.passType);
  expect(await pushesAstray()).toBe(0);
  await attacks.run(
    calls,
    ({ name }) => name,
    async ({ method, body: sent }) => {
      const request = { method, path: registration, headers, ...(sent === undefined ? null : { body: sent }) };
      expect((await target.probe(request)).status).toBeWithin(200, 202);
      const astray = await pushesAstray();
      const { body: status } = await target.call(target.victim, "GET", `/v1/passes/${victims.passId}/status`);
      if (status.installed_devices !== 1) return `the victim's pass is on ${status.installed_devices} devices`;
      return astray === 0 ? null : `the victim's push went ${Number.isNaN(astray) ? "nowhere" : "elsewhere"}`;
    },
  );
});
