import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Front } from "../http/support/front.ts";

let front: Front;

beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front?.stop());

const SEND = { to_address: "ann@example.com", template_id: "welcome" };
const ON_HOLD = { error: "sends of this tenant on email are on hold" };

async function acme() {
  return (await front.operate("GET", "/tenants/acme")).body;
}

function step(name: string, channels?: readonly string[]) {
  return front.operate("POST", `/tenants/acme/${name}`, channels === undefined ? {} : { channels });
}

/** The tenant as this process's deliveries see it. */
async function steering() {
  return (await front.stores.directory.byId("acme"))?.steering;
}

describe("an operator's step", () => {
  test("pauses and resumes, one channel or all, and is in force when it is answered", async () => {
    expect(await steering()).toBeUndefined();
    const paused = await step("pause", ["email"]);
    expect([paused.status, paused.body["paused"]]).toEqual([200, ["email"]]);
    expect((await steering())?.paused).toEqual(new Set(["email"]));
    expect((await front.send(SEND)).status).toBe(202);

    expect((await step("pause")).body["paused"]).toEqual(["email", "whatsapp", "wallet"]);
    expect((await step("pause", ["email"])).body["paused"]).toEqual(["email", "whatsapp", "wallet"]);
    const fromMs = Date.now();
    expect((await step("resume", ["email"])).body["paused"]).toEqual(["whatsapp", "wallet"]);
    const resumedAtMs = (await steering())?.resumedAt.get("email") ?? 0;
    expect(resumedAtMs).toBeGreaterThanOrEqual(fromMs);
    // A tenant that is not paused was not resumed.
    await step("resume");
    expect((await steering())?.resumedAt.get("email")).toBe(resumedAtMs);
    expect(await acme()).toMatchObject({ paused: [], held: [] });
  });

  test("holds new sends with 403, where a missing channel is refused, and releases them", async () => {
    expect((await step("hold", ["email"])).body["held"]).toEqual(["email"]);
    for (const body of [SEND, "{", { ...SEND, to_address: "" }]) {
      const answer = await front.send(body);
      expect([answer.status, answer.body]).toEqual([403, ON_HOLD]);
    }
    expect((await front.send(SEND, { "X-API-Key": "wb_live_unknown" })).status).toBe(401);
    expect((await front.sendChat({ phone_number: "5491122334455", template_id: "nothing" })).status).toBe(202);
    expect((await step("hold")).body["held"]).toEqual(["email", "whatsapp", "wallet"]);
    expect((await front.sendChat({})).status).toBe(403);
    for (const path of ["/v1/send/wallet", "/v1/passes/create"]) expect((await front.post(path, {})).status).toBe(403);
    expect((await step("release")).body["held"]).toEqual([]);
    expect((await front.send(SEND)).status).toBe(202);
  });

  test("purges: the registry knows it before parked jobs are made due, and each purge moves the time on", async () => {
    const fromMs = Date.now();
    const purge = await step("purge", ["email", "wallet"]);
    expect([purge.status, purge.body]).toEqual([200, { channels: ["email", "wallet"], unfinished: 1 }]);
    expect(front.purges).toMatchObject([{ tenantId: "acme", channels: ["email", "wallet"] }]);
    const firstMs = (await steering())?.purgedBefore.get("email") ?? 0;
    expect(firstMs).toBeGreaterThanOrEqual(fromMs);
    expect((await steering())?.purgedBefore.has("whatsapp")).toBe(false);
    expect((await step("purge")).body).toEqual({ channels: ["email", "whatsapp", "wallet"], unfinished: 2 });
    expect((await steering())?.purgedBefore.get("email")).toBeGreaterThanOrEqual(firstMs);
  });

  test("of an unknown tenant is 404, of an unknown channel or member 400, without the token 401", async () => {
    for (const name of ["pause", "resume", "hold", "release", "purge"]) {
      expect((await front.operate("POST", `/tenants/nobody/${name}`, {})).status).toBe(404);
      expect((await step(name, ["pigeon"])).status).toBe(400);
      expect((await step(name, ["email", "email"])).status).toBe(400);
      expect((await front.operate("POST", `/tenants/acme/${name}`, { channel: "email" })).status).toBe(400);
      expect((await front.fetch(`/dash/api/tenants/acme/${name}`, { method: "POST" })).status).toBe(401);
    }
  });
});
