import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { type ScriptedSmtp, startScriptedSmtp } from "../support/scripted-smtp.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";
import { signed, status, webhookBody } from "../support/whatsapp-webhook.ts";

const SECRET = "a webhook secret of the test";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let relay: ScriptedSmtp;
let waybill: Waybill;

beforeAll(async () => {
  home = await temporaryHome();
  relay = await startScriptedSmtp({ RCPT: "451 4.3.0 try again later" });
  waybill = await startWaybill(home.path, { SMTP_URL: relay.url, WEBHOOK_SECRET: SECRET });
}, 300_000);

afterAll(async () => {
  await waybill?.kill();
  await relay?.stop();
  await home?.remove();
}, 300_000);

test("a signed status of a foreign number ends no e-mail, whatever its callback data says", async () => {
  const message = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };
  const { body: accepted } = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", message);
  const jobId: string = accepted.job_id;
  const tries = () => relay.reached.get("RCPT") ?? 0;
  await eventually("the relay was tried", () => tries() > 0);
  for (const data of [`demo/${jobId}`, `demo/${jobId}/31337/${"A".repeat(22)}`]) {
    const statuses = [status(`wamid.${data}`, "read", { biz_opaque_callback_data: data })];
    const { body, signature } = signed(JSON.stringify(webhookBody({ statuses }, "31337")), SECRET);
    const headers = { "X-Hub-Signature-256": signature };
    const response = await fetch(`${waybill.url}/webhook/whatsapp`, { method: "POST", headers, body });
    expect(response.status).toBe(200);
  }
  // A reported message is not retried.
  const before = tries();
  await eventually("the relay is tried again", () => tries() > before + 1, 15_000);
  const { body: job } = await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${jobId}`);
  expect(job.status).not.toBe("success");
  const { body: history } = await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${jobId}/events`);
  expect(history.events).toEqual([]);
}, 300_000);
