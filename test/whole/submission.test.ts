import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import nodemailer from "nodemailer";
import { SmtpClient } from "../channels/email/submission/smtp-client.ts";
import { eventually } from "../support/eventually.ts";
import { createTenants, type LoadTenant, readAllEvents } from "../support/load.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let sink: SmtpSink;
let waybill: Waybill;
let tenant: LoadTenant;

const start = () =>
  startWaybill(home.path, { SMTP_URL: sink.url, ROLES: "api,dispatcher,recorder,smtp", SMTP_PORT: "0" });

beforeAll(async () => {
  home = await temporaryHome();
  sink = await startSmtpSink();
  waybill = await start();
  [tenant = { id: "", apiKey: "" }] = await createTenants(waybill, 1);
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await sink.stop();
  await home.remove();
}, 90_000);

function readPort({ screen }: Waybill): number {
  const [, port = "0"] = /SMTP +127\.0\.0\.1:(\d+) \(STARTTLS, self-signed certificate/.exec(screen) ?? [];
  return Number(port);
}

const RECIPIENTS = Array.from({ length: 60 }, (_, n) => `u${n}@example.com`);
const MESSAGE = ["From: no-reply@waybill.test", "Message-ID: <crash@shop.test>", "", "Hello", "."];

async function beginMessage(): Promise<SmtpClient> {
  const client = await SmtpClient.dial(readPort(waybill));
  expect(await client.logIn(tenant.apiKey)).toStartWith("235");
  expect(await client.begin(...RECIPIENTS)).toStartWith("354");
  return client;
}

test("kill -9 while a message is taken: sent again, it reaches each recipient by one job", async () => {
  const cut = await beginMessage();
  void cut.say(...MESSAGE);
  await eventually("a job of it is delivered", () => sink.received.size > 0);
  await waybill.kill();
  cut.close();
  waybill = await start();
  const again = await beginMessage();
  const reply = await again.say(...MESSAGE);
  expect(reply).toStartWith("250 2.0.0 queued as ");
  await eventually("all are recorded as sent", async () => {
    const { byJob } = await readAllEvents(waybill, tenant);
    return byJob.size >= RECIPIENTS.length && [...byJob.values()].every((types) => types.includes("sent"));
  });
  expect((await readAllEvents(waybill, tenant)).byJob.size).toBe(RECIPIENTS.length);
  // A Message-ID contains a job's id.
  expect(sink.received.size).toBe(RECIPIENTS.length);
  again.close();
}, 300_000);

test("the certificate that it made is kept, for clients that are told to trust it", async () => {
  const file = join(home.path, "smtp-certificate.pem");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const [ca = ""] = readFileSync(file, "utf8").split("-----BEGIN PRIVATE KEY-----");
  const auth = { user: tenant.id, pass: tenant.apiKey };
  const at = { host: "127.0.0.1", port: readPort(waybill), requireTLS: true, auth, tls: { ca } };
  const mailer = nodemailer.createTransport(at);
  const mail = { from: "no-reply@waybill.test", to: "ann@example.com", subject: "Hi", html: "<p>Hi</p>" };
  const { response } = await mailer.sendMail(mail);
  mailer.close();
  const [jobId = ""] = /[0-9a-f-]{36}/.exec(response) ?? [];
  expect((await waybill.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}`)).status).toBe(200);
});

test("SIGTERM ends it in time, with a client that waits", async () => {
  const idle = await SmtpClient.dial(readPort(waybill));
  await idle.logIn(tenant.apiKey);
  expect(await waybill.stop()).toBe(0);
  expect(await idle.reply()).toBe("421 4.3.2 the service is stopping: try again");
  idle.close();
}, 90_000);
