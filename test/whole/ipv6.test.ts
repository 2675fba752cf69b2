import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually } from "../support/eventually.ts";
import { type ScriptedSmtp, startScriptedSmtp } from "../support/scripted-smtp.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const HERE = { host: "::1", port: 0 };

let home: Awaited<ReturnType<typeof temporaryHome>>;
let relay: ScriptedSmtp;
let waybill: Waybill;
const told: string[] = [];
const receiver = createServer((request, response) => {
  request.on("data", (chunk: Buffer) => told.push(chunk.toString()));
  request.on("end", () => response.writeHead(200).end());
});

beforeAll(async () => {
  home = await temporaryHome();
  relay = await startScriptedSmtp({}, HERE);
  await new Promise<void>((resolve) => receiver.listen(HERE, resolve));
  const live = { PROVIDERS: "live", SMTP_URL: relay.url, OUTBOUND_ALLOW: "::1/128" };
  waybill = await startWaybill(home.path, { HOST: "::1", ...live });
}, 120_000);

afterAll(async () => {
  await waybill?.kill();
  await relay?.stop();
  receiver.close();
  await home?.remove();
}, 60_000);

test("where there is IPv6 alone, it listens, sends through its relay and calls webhooks", async () => {
  expect(waybill.url).toStartWith("http://[::1]:");
  const tenant = { id: "acme", name: "acme", channels: ["email"], permissions: ["allow_raw_html"] };
  expect((await waybill.operator("POST", "/tenants", tenant)).status).toBe(201);
  const { api_key: apiKey } = (await waybill.operator("POST", "/tenants/acme/keys")).body;
  // A server that listens on TCP has an address of this form.
  const { port } = receiver.address() as AddressInfo;
  const made = await waybill.request(apiKey, "POST", "/v1/webhooks", { url: `http://[::1]:${port}/events` });
  expect(made.status).toBe(201);
  const mail = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };
  const { body } = await waybill.request(apiKey, "POST", "/v1/send/email", mail);
  expect(await finalJob(waybill, apiKey, body.job_id)).toMatchObject({ status: "success" });
  expect(relay.reached.get(".")).toBe(1);
  await eventually("the webhook is told", () => told.some((text) => text.includes(body.job_id)), 20_000);
}, 60_000);
