import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";
import { issueCertificate, SUBJECT } from "../../src/runtime/certificates/certificate-authority.ts";
import { CANARY_SECRET, type Canary, startCanary } from "../support/canary.ts";
import { DnsServer } from "../support/dns-server.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const DOMAIN = "mail.acme.test";
const CREDENTIALS = "/tenants/acme/credentials/email";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let dns: DnsServer;
let platform: SmtpSink;
let canary: Canary;
const running: Waybill[] = [];

beforeAll(async () => {
  home = await temporaryHome();
  [dns, platform, canary] = await Promise.all([DnsServer.start(), startSmtpSink(), startCanary("0.0.0.0")]);
}, 300_000);

afterAll(async () => {
  for (const waybill of running) await waybill.kill();
  await canary?.stop();
  await platform?.stop();
  await dns?.stop();
  await home?.remove();
}, 300_000);

async function startLive(environment: Readonly<Record<string, string>> = {}): Promise<Waybill> {
  const live = { PROVIDERS: "live", SMTP_URL: platform.url, DNS_SERVERS: dns.address, MAIL_HOST: "mx.platform.test" };
  const waybill = await startWaybill(home.path, { ...live, ...environment });
  running.push(waybill);
  return waybill;
}

/** A tenant with a verified domain of its own. Returns its key. */
async function anOwner(waybill: Waybill): Promise<string> {
  const tenant = { id: "acme", name: "acme", channels: ["email"], permissions: ["allow_raw_html"] };
  expect((await waybill.operator("POST", "/tenants", { ...tenant, allow_custom: ["email"] })).status).toBe(201);
  const { body } = await waybill.operator("POST", "/tenants/acme/domains", { domain: DOMAIN });
  dns.publish(body.DNSRecords.relay);
  const { api_key: apiKey } = (await waybill.operator("POST", "/tenants/acme/keys")).body;
  const verified = await waybill.request(apiKey, "POST", `/v1/domains/${DOMAIN}/verify`);
  expect(verified.body).toMatchObject({ RelayStatus: "verified" });
  return apiKey;
}

async function sendThrough(waybill: Waybill, apiKey: string, smtpUrl: string) {
  const sender = { from_address: `shop@${DOMAIN}`, smtp_url: smtpUrl };
  expect((await waybill.operator("PUT", CREDENTIALS, sender)).status).toBeWithin(200, 205);
  const message = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };
  const { status, body } = await waybill.request(apiKey, "POST", "/v1/send/email", message);
  expect(status).toBe(202);
  return finalJob(waybill, apiKey, body.job_id);
}

test("with live providers a tenant's relay inside the platform is never connected to", async () => {
  const waybill = await startLive();
  const apiKey = await anOwner(waybill);
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:0:7f00:1]", "0.0.0.0"]) {
    const job = await sendThrough(waybill, apiKey, `smtp://${host}:${canary.port}`);
    expect(job).toMatchObject({
      status: "failed",
      result: { error: "your mail server is at an address that must not be connected to" },
    });
    expect(JSON.stringify(job)).not.toContain(CANARY_SECRET);
  }
  // Nor if it is the operator's own relay, which serves tenants without one of their own.
  expect((await sendThrough(waybill, apiKey, platform.url)).status).toBe("failed");
  expect(platform.received.size).toBe(0);
  await waybill.operator("PUT", CREDENTIALS, { from_address: `shop@${DOMAIN}` });
  const message = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };
  const { body } = await waybill.request(apiKey, "POST", "/v1/send/email", message);
  expect(await finalJob(waybill, apiKey, body.job_id)).toMatchObject({ status: "success" });
  expect([canary.connections, platform.received.size]).toEqual([0, 1]);
  expect(await waybill.stop()).toBe(0);
}, 300_000);

test("a relay that the operator allows is used, over TLS with certificate checks", async () => {
  const period = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const buildSubject = (name: string) => [[SUBJECT.commonName, name]] as const;
  const authority = await issueCertificate(
    { subject: buildSubject("Authority"), ...period, purpose: "authority" },
    null,
  );
  const { certificatePem: cert, privateKeyPem: key } = await issueCertificate(
    { subject: buildSubject("localhost"), ...period, purpose: "server" },
    authority,
  );
  const ca = join(home.path, "authority.pem");
  await Bun.write(ca, authority.certificatePem);
  const users: string[] = [];
  const relay = new SMTPServer({
    key,
    cert,
    secure: true,
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 100,
    onAuth: ({ username = "" }, _session, callback) => {
      users.push(username);
      callback(null, { user: username });
    },
    onData: (stream, _session, callback) => {
      stream.on("end", () => callback());
      stream.resume();
    },
  });
  relay.on("error", () => {});
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  try {
    const address = relay.server.address();
    const port = typeof address === "object" ? address?.port : null;
    const waybill = await startLive({ OUTBOUND_ALLOW: "127.0.0.0/8,::1/128", NODE_EXTRA_CA_CERTS: ca });
    const { api_key: apiKey } = (await waybill.operator("POST", "/tenants/acme/keys")).body;
    expect(await sendThrough(waybill, apiKey, `smtps://acme:secret@localhost:${port}`)).toMatchObject({
      status: "success",
    });
    expect(users).toEqual(["acme"]);
    expect(await waybill.stop()).toBe(0);
  } finally {
    await new Promise<void>((resolve) => relay.close(() => resolve()));
  }
}, 300_000);
