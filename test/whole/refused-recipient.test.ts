import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ScriptedSmtp, startScriptedSmtp } from "../support/scripted-smtp.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/* The whole program with a relay that refuses recipients itself. */

const GONE = "550 5.1.1 <ann@far.test>: Recipient address rejected: User unknown";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let relay: ScriptedSmtp;
let waybill: Waybill;
let key = "";

beforeAll(async () => {
  [home, relay] = await Promise.all([temporaryHome(), startScriptedSmtp({ RCPT: GONE })]);
  waybill = await startWaybill(home.path, { SMTP_URL: relay.url });
  const tenant = { id: "acme", name: "acme", plan: "pro", channels: ["email"], permissions: ["allow_raw_html"] };
  expect((await waybill.operator("POST", "/tenants", tenant)).status).toBe(201);
  key = (await waybill.operator("POST", "/tenants/acme/keys")).body.api_key;
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await relay.stop();
  await home.remove();
}, 90_000);

async function ended(to_address: string) {
  const body = { to_address, subject: "Hello", html: "<p>Hello</p>" };
  const sent = await waybill.request(key, "POST", "/v1/send/email", body);
  const { status, result } = await finalJob(waybill, key, sent.body.job_id);
  const { body: told } = await waybill.request(key, "GET", `/v1/jobs/${sent.body.job_id}/events`);
  return {
    status,
    result,
    events: told.events.map((event: Record<string, unknown>) => [event["event_type"], event["result"]]),
  };
}

test("a recipient whom the relay does not know fails one job, bounced, and is not sent to again", async () => {
  const result = { error: `the mail server refused the message: ${GONE}` };
  const bounced = ["bounced", { code: 550, enhanced_code: "5.1.1", diagnostic: GONE }];
  expect(await ended("Ann@far.test")).toEqual({ status: "failed", result, events: [bounced] });
  const { body } = await waybill.operator("GET", "/tenants/acme/suppressions");
  expect(body.suppressions).toMatchObject([{ address: "ann@far.test", reason: "bounced" }]);
  const asked = relay.reached.get("RCPT");
  expect(await ended("ann@far.test")).toMatchObject({ status: "suppressed", result: { reason: "bounced" } });
  expect(relay.reached.get("RCPT")).toBe(asked ?? 0);
}, 120_000);

test("a relay that refuses this service fails the job and suppresses nobody", async () => {
  relay.script = { RCPT: "554 5.7.1 <bob@far.test>: Relay access denied" };
  expect(await ended("bob@far.test")).toMatchObject({ status: "failed", events: [["failed", {}]] });
  expect((await waybill.operator("GET", "/tenants/acme/suppressions")).body.suppressions).toHaveLength(1);
}, 120_000);
