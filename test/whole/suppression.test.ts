import { afterAll, beforeAll, expect, test } from "bun:test";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let redis: RedisServer;
let waybill: Waybill;
const keys = new Map<string, string>();

const start = () => startWaybill(home.path, { REDIS_URL: redis.url });

beforeAll(async () => {
  [home, redis] = await Promise.all([temporaryHome(), startRedis()]);
  waybill = await start();
  for (const id of ["acme", "other"]) {
    const tenant = { id, name: id, plan: "pro", channels: ["email"], permissions: ["allow_raw_html"] };
    expect((await waybill.operator("POST", "/tenants", tenant)).status).toBe(201);
    keys.set(id, (await waybill.operator("POST", `/tenants/${id}/keys`)).body.api_key);
  }
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await redis.stop();
  await home.remove();
}, 90_000);

/** Sends to the address and waits for the job's end: returns "success", or the reason of the suppression. */
async function send(tenant: string, to_address: string): Promise<{ jobId: string; end: string }> {
  const apiKey = keys.get(tenant) ?? "";
  const html = '<body><p>Hello, <a href="https://shop.example/?a=1&amp;b=2">here</a></p></body>';
  const sent = await waybill.request(apiKey, "POST", "/v1/send/email", { to_address, subject: "Hello", html });
  expect(sent.status).toBe(202);
  const { status, result } = await finalJob(waybill, apiKey, sent.body.job_id);
  return { jobId: sent.body.job_id, end: status === "suppressed" ? result.reason : status };
}

async function fetchEvents(jobId: string): Promise<{ event_type: string; result: unknown }[]> {
  const { body } = await waybill.request(keys.get("acme") ?? "", "GET", `/v1/jobs/${jobId}/events`);
  return body.events;
}

/** The message that reached this address, with its soft line breaks undone. */
async function messageTo(address: string): Promise<string> {
  const { body } = await waybill.operator("GET", `/sandbox/messages?to=${encodeURIComponent(address)}`);
  return String(body.messages[0]?.source).replaceAll("=\r\n", "").replaceAll("=3D", "=");
}

/** The list's entries for acme's addresses. */
async function listed(): Promise<Record<string, string>> {
  const { body } = await waybill.operator("GET", "/tenants/acme/suppressions");
  return Object.fromEntries(body.suppressions.map(({ address, reason }: Record<string, string>) => [address, reason]));
}

test("a bounce, an unsubscribe link and an operator each keep a tenant from sending to an address again", async () => {
  const bounced = await send("acme", "ann@bounce.test");
  expect(bounced.end).toBe("success");
  await eventually("the bounce is known", async () => (await listed())["ann@bounce.test"] === "bounced");
  expect((await send("acme", "ANN@bounce.test")).end).toBe("bounced");

  expect((await send("acme", "Bob@example.com")).end).toBe("success");
  const [, link = ""] = /^List-Unsubscribe: <(http[^>]+)>/im.exec(await messageTo("Bob@example.com")) ?? [];
  expect(link).toStartWith(`${waybill.url}/u/`);
  expect((await fetch(link)).status).toBe(200);
  expect((await send("acme", "bob@example.com")).end).toBe("success");
  const body = new URLSearchParams({ "List-Unsubscribe": "One-Click" });
  expect((await fetch(link, { method: "POST", body })).status).toBe(200);
  expect((await send("acme", "bob@EXAMPLE.com")).end).toBe("unsubscribed");

  const path = "/tenants/acme/suppressions/cyd@example.com";
  expect((await waybill.operator("PUT", path, { reason: "manual" })).status).toBe(200);
  expect((await send("acme", "cyd@example.com")).end).toBe("manual");
  expect((await waybill.operator("DELETE", path)).status).toBe(204);
  expect((await send("acme", "cyd@example.com")).end).toBe("success");
}, 300_000);

test("who leaves a topic gets no more on it, and receipts all the same; what is chosen on the page is undone there", async () => {
  const apiKey = keys.get("acme") ?? "";
  const send = async (more: object) => {
    const message = { to_address: "fay@example.com", subject: "Hello", html: "<p>Hello, reader.</p>", ...more };
    const sent = await waybill.request(apiKey, "POST", "/v1/send/email", message);
    expect(sent.status).toBe(202);
    const { status, result } = await finalJob(waybill, apiKey, sent.body.job_id);
    return { jobId: sent.body.job_id as string, end: status === "suppressed" ? result : status };
  };
  const html = '<p>Our news.</p><a href="{{.unsubscribe_url}}">Leave</a>';
  expect((await send({ topic: "News", html })).end).toBe("success");
  const [, link = ""] = /<a href="([^"]+)">Leave/.exec(await messageTo("fay@example.com")) ?? [];
  expect(link).toStartWith(`${waybill.url}/u/`);
  expect((await fetch(link)).status).toBe(200);
  expect((await send({ topic: "news" })).end).toBe("success");
  const choose = async (choice = "") => (await fetch(link + choice, { method: "POST" })).status;
  expect(await choose()).toBe(200);
  const stopped = await send({ topic: "NEWS" });
  expect(stopped.end).toEqual({ reason: "unsubscribed", topic: "news" });
  const [event] = await fetchEvents(stopped.jobId);
  expect(event).toMatchObject({ event_type: "suppressed", result: { reason: "unsubscribed", topic: "news" } });
  const explained = await waybill.request(apiKey, "GET", `/v1/jobs/${stopped.jobId}/explain`);
  expect(explained.body.detail).toContain('the topic "news"');
  const copied = await send({ topic: "news", to_address: "gil@example.com", cc: ["fay@example.com"] });
  expect(await fetchEvents(copied.jobId)).toContainEqual(
    expect.objectContaining({ result: { recipient: "fay@example.com", reason: "unsubscribed", topic: "news" } }),
  );
  expect([(await send({})).end, (await send({ topic: "receipts" })).end]).toEqual(["success", "success"]);
  expect(await choose("?choice=all")).toBe(200);
  expect((await send({ topic: "receipts" })).end).toEqual({ reason: "unsubscribed" });
  expect([await choose("?choice=undo_all"), (await send({ topic: "receipts" })).end]).toEqual([200, "success"]);
  expect((await send({ topic: "news" })).end).toEqual({ reason: "unsubscribed", topic: "news" });
  expect([await choose("?choice=undo_topic"), (await send({ topic: "news" })).end]).toEqual([200, "success"]);
}, 300_000);

test("an open and a click appear in the job's history once, however often they come", async () => {
  const { jobId } = await send("acme", "dan@example.com");
  const source = await messageTo("dan@example.com");
  const [, click = ""] = /href="(http[^"]+\/t\/c\/[^"]+)"/.exec(source) ?? [];
  const [, pixel = ""] = /src="(http[^"]+\/t\/o\/[^"]+\.gif)"/.exec(source) ?? [];
  for (let i = 0; i < 3; i += 1) {
    const clicked = await fetch(click, { redirect: "manual" });
    expect([clicked.status, clicked.headers.get("location")]).toEqual([302, "https://shop.example/?a=1&b=2"]);
    expect((await fetch(pixel)).headers.get("content-type")).toBe("image/gif");
  }
  const seen = await eventually("both are in the history", async () => {
    const events = (await fetchEvents(jobId)).filter(({ event_type }) => /opened|clicked/.test(event_type));
    return events.length >= 2 ? events : null;
  });
  expect(seen.toSorted((one, other) => one.event_type.localeCompare(other.event_type))).toMatchObject([
    { event_type: "clicked", result: { url: "https://shop.example/?a=1&b=2" } },
    { event_type: "opened", result: {} },
  ]);
}, 90_000);

test("no other tenant is affected", async () => {
  for (const address of ["ann@bounce.test", "bob@example.com"])
    expect((await send("other", address)).end).toBe("success");
}, 90_000);

test("a Redis that lost everything knows the suppressions before the next message goes out", async () => {
  expect(await waybill.stop()).toBe(0);
  await redis.client.flushall();
  const adopted = await runCommand(["adopt"], { WAYBILL_HOME: home.path, REDIS_URL: redis.url });
  expect(adopted.code).toBe(0);
  waybill = await start();
  expect((await send("acme", "bob@example.com")).end).toBe("unsubscribed");
  expect((await send("acme", "ann@bounce.test")).end).toBe("bounced");
  expect((await send("acme", "cyd@example.com")).end).toBe("success");
  expect((await send("other", "bob@example.com")).end).toBe("success");
}, 300_000);

test("an erased recipient is nowhere found, waiting mail to them is not sent, and who bounced is not written to again", async () => {
  const [dora, gone] = ["dora@example.com", "erased@bounce.test"];
  const found = async (address: string) =>
    (await waybill.operator("GET", `/jobs?recipient=${encodeURIComponent(address)}`)).body.jobs;
  const erase = (recipient: string) => waybill.operator("POST", "/tenants/acme/erasures", { recipient });
  const { jobId: sent } = await send("acme", dora);
  expect((await send("acme", gone)).end).toBe("success");
  await eventually("it bounced", async () => ((await send("acme", gone)).end === "bounced" ? true : null));
  await waybill.operator("POST", "/tenants/acme/pause", { channels: ["email"] });
  const html = "<p>Hello again, this is a message with some text.</p>";
  const body = { to_address: "Dora@Example.com", subject: "Hello", html };
  const waits = await waybill.request(keys.get("acme") ?? "", "POST", "/v1/send/email", body);
  await eventually("both are found", async () => ((await found(dora)).length === 2 ? true : null));

  const first = await erase(dora);
  expect([first.status, first.body]).toMatchObject([202, { complete: false, unfinished_left: 1 }]);
  await waybill.operator("POST", "/tenants/acme/resume", { channels: ["email"] });
  const end = await finalJob(waybill, keys.get("acme") ?? "", waits.body.job_id);
  expect(end).toMatchObject({ status: "suppressed", result: { reason: "erased" } });
  const args = ["erase", "--tenant", "acme", "--recipient", dora];
  const { code, output } = await runCommand(args, { WAYBILL_HOME: home.path, REDIS_URL: redis.url });
  expect([code, JSON.parse(output)]).toMatchObject([0, { complete: true, unfinished_left: 0 }]);
  expect(await found(dora)).toEqual([]);
  expect((await waybill.operator("GET", `/sandbox/messages?to=${dora}`)).body.messages).toEqual([]);
  expect((await waybill.operator("GET", `/tenants/acme/jobs/${sent}`)).body).toMatchObject({ status: "success" });

  expect((await erase(gone)).status).toBe(200);
  expect(await found(gone)).toEqual([]);
  const { body: list } = await waybill.operator("GET", "/tenants/acme/suppressions");
  expect(JSON.stringify(list)).not.toContain(gone);
  expect((await send("acme", gone)).end).toBe("bounced");
  expect((await send("acme", dora)).end).toBe("success");
  const audit = JSON.stringify((await waybill.operator("GET", "/audit?limit=500")).body);
  expect(audit).toContain("eraseRecipient");
  expect(audit).not.toContain(dora);
}, 300_000);

test("a deleted tenant's waiting mail fails, its key is refused, and its id is not given out again", async () => {
  await waybill.operator("POST", "/tenants/other/pause", { channels: ["email"] });
  const body = { to_address: "eve@example.com", subject: "Hello", html: "<p>Hello, a message with some text.</p>" };
  const waits = await waybill.request(keys.get("other") ?? "", "POST", "/v1/send/email", body);
  expect((await waybill.operator("DELETE", "/tenants/other?confirm=other")).status).toBe(409);
  const deleted = await waybill.operator("DELETE", "/tenants/other?confirm=other&purge=true");
  expect([deleted.status, deleted.body]).toMatchObject([202, { state: "deleting" }]);
  expect((await waybill.request(keys.get("other") ?? "", "POST", "/v1/send/email", body)).status).toBe(401);
  const ended = await eventually("its mail has ended", async () => {
    const [job] = (await waybill.operator("GET", `/jobs?job_id=${waits.body.job_id}`)).body.jobs;
    return job?.status === "failed" ? job : null;
  });
  expect(ended).toMatchObject({ tenant_id: "other", error: "the tenant no longer exists" });
  expect((await waybill.operator("POST", "/tenants", { id: "other", name: "Another" })).status).toBe(409);
}, 300_000);
