import { afterAll, beforeAll, expect, test } from "bun:test";
import { DnsServer } from "../support/dns-server.ts";
import { eventually } from "../support/eventually.ts";
import { type Answer, finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const DOMAIN = "mail.acme.test";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let dns: DnsServer;
let waybill: Waybill;
let acme: string;
let globex: string;

beforeAll(async () => {
  home = await temporaryHome();
  dns = await DnsServer.start();
  waybill = await startWaybill(home.path, { DNS_SERVERS: dns.address, MAIL_HOST: "MX.platform.test" });
  const tenant = { channels: ["email"], permissions: ["allow_raw_html"], allow_custom: ["email"] };
  for (const id of ["acme", "globex"]) await waybill.operator("POST", "/tenants", { ...tenant, id, name: id });
  acme = (await waybill.operator("POST", "/tenants/acme/keys")).body.api_key;
  globex = (await waybill.operator("POST", "/tenants/globex/keys")).body.api_key;
}, 300_000);

afterAll(async () => {
  await waybill?.kill();
  await dns?.stop();
  await home?.remove();
});

const send = (apiKey: string, to: string, html = "<p>Hello</p>"): Promise<Answer> =>
  waybill.request(apiKey, "POST", "/v1/send/email", { to_address: to, subject: "Hello", html });

const REFUSED = {
  status: 422,
  body: { error: expect.stringContaining(`the sender's domain ${DOMAIN} is not verified`) },
};

async function untilSendIs(apiKey: string, status: number): Promise<Answer> {
  return eventually(`a send answers ${status}`, async () => {
    const answer = await send(apiKey, "ann@example.com");
    return answer.status === status ? answer : null;
  });
}

test("only a verified domain's tenant sends from it, until it is deleted", async () => {
  const sender = { from_address: `shop@${DOMAIN}`, from_name: "Acme" };
  for (const id of ["acme", "globex"]) {
    expect((await waybill.operator("PUT", `/tenants/${id}/credentials/email`, sender)).body).toEqual({
      stored: true,
      used: true,
    });
  }
  // Not registered by any tenant, and then registered but not verified.
  expect(await untilSendIs(acme, 422)).toMatchObject(REFUSED);
  const registered = await waybill.operator("POST", "/tenants/acme/domains", { domain: "Mail.ACME.test" });
  expect(registered).toMatchObject({
    status: 201,
    body: { Domain: DOMAIN, RelayEnabled: true, RelayStatus: "pending", SMTPEnabled: false, SMTPStatus: "pending" },
  });
  const { relay } = registered.body.DNSRecords;
  expect(relay[0]).toEqual({ type: "MX", name: `bounce.${DOMAIN}`, value: "mx.platform.test", priority: 10 });
  expect(await send(acme, "ann@example.com")).toMatchObject(REFUSED);
  // Errors of the message itself come first.
  expect((await send(acme, "ann@example.com", "")).body.violations).toHaveLength(1);
  expect((await send(acme, "not an address")).status).toBe(400);

  const credentials = await waybill.operator("GET", "/tenants/acme/credentials/email");
  const unverified = `stored, not used because the domain ${DOMAIN} is not verified`;
  expect(credentials.body).toMatchObject({ used: false, reason: unverified });

  const record = { ...registered.body };
  for (const name of ["created_at", "checked_at", "checks"]) delete record[name];
  expect(await waybill.request(acme, "GET", "/v1/domains")).toMatchObject({ status: 200, body: { domains: [record] } });
  const one = await waybill.request(acme, "GET", `/v1/domains/${DOMAIN.toUpperCase()}`);
  expect([one.status, one.body]).toEqual([200, record]);

  const failed = await waybill.request(acme, "POST", `/v1/domains/${DOMAIN}/verify`);
  expect(failed).toMatchObject({ status: 200, body: { ...record, RelayStatus: "failed" } });
  const { body } = await waybill.operator("GET", `/tenants/acme/domains/${DOMAIN}`);
  expect(body.checks).toContainEqual({
    check: "spf",
    result: "failed",
    why: `bounce.${DOMAIN} has no TXT record`,
  });
  expect((await waybill.operator("GET", "/tenants/acme/domains")).body).toEqual({ domains: [body] });

  dns.publish(relay);
  const verified = await waybill.request(acme, "POST", `/v1/domains/${DOMAIN}/verify`);
  expect([verified.status, verified.body]).toEqual([200, { ...record, RelayStatus: "verified" }]);
  const accepted = await untilSendIs(acme, 202);
  expect((await finalJob(waybill, acme, accepted.body.job_id)).status).toBe("success");
  const { messages } = (await waybill.operator("GET", "/sandbox/messages?to=ann@example.com")).body;
  expect(messages[0].source).toContain(`From: Acme <shop@${DOMAIN}>`);
  expect(messages[0].from).toBe(`b+${accepted.body.job_id}@bounce.${DOMAIN}`);
  const signature = messages[0].source.replace(/\r\n[ \t]/g, " ").match(/^DKIM-Signature: .*$/m)?.[0];
  expect(signature).toContain(`d=${DOMAIN}; q=dns/txt; s=${relay[2].name.split(".")[0]};`);
  expect(signature?.replaceAll(" ", "")).toContain("list-unsubscribe:list-unsubscribe-post");

  expect((await send(globex, "ann@example.com")).status).toBe(422);
  expect((await waybill.request(globex, "GET", "/v1/domains")).body).toEqual({ domains: [] });
  for (const [method, path] of [
    ["GET", ""],
    ["POST", "/verify"],
  ] as const) {
    const answer = await waybill.request(globex, method, `/v1/domains/${DOMAIN}${path}`);
    expect([answer.status, answer.body]).toEqual([404, { error: "there is no such domain" }]);
  }
  expect((await waybill.operator("POST", "/tenants/globex/domains", { domain: DOMAIN })).status).toBe(409);
  expect((await waybill.operator("DELETE", `/tenants/globex/domains/${DOMAIN}`)).status).toBe(404);

  expect((await waybill.operator("DELETE", `/tenants/acme/domains/${DOMAIN}`)).status).toBe(204);
  expect(await untilSendIs(acme, 422)).toMatchObject(REFUSED);
  expect((await waybill.request(acme, "GET", `/v1/domains/${DOMAIN}`)).status).toBe(404);
}, 300_000);

test("a tenant's own relay is used, and its reply is the SMTP status", async () => {
  const name = "relay.acme.test";
  const made = await waybill.operator("POST", "/tenants/globex/domains", {
    domain: name,
    relay_enabled: false,
    smtp_enabled: true,
  });
  expect(made.body).toMatchObject({ RelayEnabled: false, SMTPEnabled: true, SMTPStatus: "pending" });
  const answer = await waybill.request(globex, "POST", `/v1/domains/${name}/verify`);
  expect(answer.body).toMatchObject({ RelayStatus: "pending", SMTPStatus: "failed" });
  // In the sandbox no mail leaves the machine, whatever address is stored.
  const credentials = { from_address: `a@${name}`, smtp_url: "smtp://u:p@192.0.2.1:587" };
  await waybill.operator("PUT", "/tenants/globex/credentials/email", credentials);
  await waybill.request(globex, "POST", `/v1/domains/${name}/verify`);
  const { body } = await waybill.operator("GET", `/tenants/globex/domains/${name}`);
  expect(body.checks).toEqual([{ check: "smtp", result: "failed", why: expect.any(String) }]);
});

test("registering an invalid domain, an unknown tenant or unknown fields is refused", async () => {
  const register = async (id: string, body: unknown) =>
    (await waybill.operator("POST", `/tenants/${id}/domains`, body)).status;
  expect(await register("acme", { domain: "no domain" })).toBe(400);
  expect(await register("acme", {})).toBe(400);
  expect(await register("acme", { domain: "a.test", relay_enabled: "yes" })).toBe(400);
  expect(await register("acme", { domain: "a.test", private_key: "x" })).toBe(400);
  expect(await register("nobody", { domain: "a.test" })).toBe(404);
});

test("every tenant call is authenticated and counted, and a limited one queries no name server", async () => {
  expect((await waybill.request("wb_nobody", "GET", "/v1/domains")).status).toBe(401);
  await waybill.operator("PUT", "/plans/two", { requests_per_minute: 2 });
  await waybill.operator("POST", "/tenants", { id: "small", name: "s", plan: "two" });
  await waybill.operator("POST", "/tenants/small/domains", { domain: "small.test" });
  const key = (await waybill.operator("POST", "/tenants/small/keys")).body.api_key;
  expect((await waybill.request(key, "GET", "/v1/domains")).headers.get("ratelimit-remaining")).toBe("1");
  expect((await waybill.request(key, "GET", "/v1/domains/small.test")).headers.get("ratelimit-remaining")).toBe("0");
  const asked = dns.asked.length;
  const limited = await waybill.request(key, "POST", "/v1/domains/small.test/verify");
  expect(limited.status).toBe(429);
  expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(dns.asked.length).toBe(asked);
});
