import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { webhookAttempts, webhooks } from "../../src/webhooks/tables.ts";
import { Front } from "../http/support/front.ts";
import { must } from "../support/must.ts";
import { isSignedWith, Receiver } from "./receiver.ts";

const URL = "https://hooks.example.com/waybill";
const NOBODY = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";

let front: Front;
let receiver: Receiver;
let other = "";
beforeAll(async () => {
  front = await Front.start();
  receiver = new Receiver();
  await must(front.registry.createTenant({ id: "globex", name: "Globex", plan: "pro" }));
  other = (await must(front.registry.createKey("globex"))).api_key;
}, 300_000);
afterAll(async () => {
  await receiver.stop();
  await front.stop();
}, 90_000);

async function call(method: string, path: string, body?: unknown, key = front.apiKey) {
  const response = await fetch(`${front.url}/v1/webhooks${path}`, {
    method,
    headers: { "x-api-key": key, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

async function create(body: Readonly<Record<string, unknown>> = {}, key = front.apiKey) {
  const { status, body: made } = await call("POST", "", { url: URL, ...body }, key);
  expect([status, made.error]).toEqual([201, undefined]);
  return made;
}

test("201: a webhook is made with its defaults; its secret is shown once and stored sealed", async () => {
  const { secret, ...shown } = await create({ description: null });
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(shown).toMatchObject({ url: URL, event_types: null, channels: null, batch_max: 1, status: "enabled" });
  expect((await call("GET", `/${shown.webhook_id}`)).body).toEqual(shown);
  expect((await call("GET", "")).body).toEqual({ webhooks: [shown] });
  const rows = await front.database.db.select().from(webhooks);
  expect(JSON.stringify(rows)).not.toContain(secret.slice(10));
  expect((await call("DELETE", `/${shown.webhook_id}`)).status).toBe(204);
  expect((await call("GET", `/${shown.webhook_id}`)).status).toBe(404);
});

test("a webhook begins behind the tenant's last event", async () => {
  const eventId = firstEventIdAt(Date.now());
  const event = { jobId: NOBODY, channel: "email", type: "sent", result: {} } as const;
  front.eventStore.events.push({ ...event, tenantId: "acme", eventId });
  const { webhook_id, last_event_id } = await create();
  expect(last_event_id).toBe(eventId);
  await call("DELETE", `/${webhook_id}`);
});

describe("400", () => {
  test.each([
    [{}, "url is required"],
    [{ url: URL, colour: "red" }, "unknown field: colour"],
    [{ url: URL, event_types: ["exploded"] }, "event_types"],
    [{ url: URL, event_types: [] }, "event_types must be an array of sent,"],
    [{ url: URL, channels: ["fax"] }, "channels"],
    [{ url: URL, batch_max: 501 }, "batch_max must be an integer from 1"],
    [{ url: URL, description: "a\nb" }, "description must be 1 to 200 characters"],
    [{ url: "hooks.example.com" }, "url is not an address"],
    [{ url: "http://hooks.example.com/" }, "url names a host that"],
    [{ url: "https://10.0.0.1/" }, "url names a host that is at an address that must not be connected to"],
    [{ url: "https://169.254.169.254/latest" }, "url names a host that is at an address that must not be connected to"],
    [{ url: "https://user:pw@hooks.example.com/" }, "url must hold no user name"],
  ])("%j is refused", async (body, error) => {
    const { status, body: answer } = await call("POST", "", body);
    expect([status, answer.error]).toEqual([400, expect.stringContaining(error)]);
  });

  test.each([
    [{}, "either from or after_event_id is required"],
    [{ from: "2026-11-01T00:00:00Z", after_event_id: 5 }, "either from or after_event_id is required"],
    [{ after_event_id: 5, to: "2026-11-01T00:00:00Z" }, "to goes with from"],
    [{ after_event_id: -1 }, "after_event_id must be an event id"],
    [{ after_event_id: Number.MAX_SAFE_INTEGER }, "after_event_id lies in the future"],
    [{ from: "yesterday" }, "from must be an ISO 8601 time"],
    [{ from: "2026-11-01T00:00:00" }, "from must be an ISO 8601 time"],
    [{ from: "2026-11-02T00:00:00Z", to: "2026-11-01T00:00:00Z" }, "from must be before to"],
  ])("a replay of %j is refused", async (body, error) => {
    const { webhook_id } = await create();
    const { status, body: answer } = await call("POST", `/${webhook_id}/replay`, body);
    expect([status, answer.error]).toEqual([400, expect.stringContaining(error)]);
    await call("DELETE", `/${webhook_id}`);
  });
});

test("a change touches what it names; null is the default", async () => {
  const event_types = ["sent", "sent", "message.received"];
  const { webhook_id, secret: _, ...made } = await create({ event_types, batch_max: 7 });
  expect(made.event_types).toEqual(["sent", "message.received"]);
  const changed = await call("PATCH", `/${webhook_id}`, { batch_max: null, channels: ["email"], description: "ours" });
  expect(changed).toMatchObject({
    status: 200,
    body: { ...made, batch_max: 1, channels: ["email"], description: "ours" },
  });
  expect((await call("PATCH", `/${webhook_id}`, { url: "https://10.0.0.1/" })).status).toBe(400);
  expect((await call("PATCH", `/${webhook_id}`, {})).status).toBe(400);
  const replay = await call("POST", `/${webhook_id}/replay`, { from: "2026-11-01T00:00:00Z" });
  expect([replay.status, replay.body.last_event_id]).toEqual([202, firstEventIdAt(Date.UTC(2026, 10, 1)) - 1]);
  await call("DELETE", `/${webhook_id}`);
});

test("404: nobody sees or touches another tenant's webhook", async () => {
  const { webhook_id } = await create({}, other);
  const calls: readonly (readonly [string, string, unknown?])[] = [
    ["GET", ""],
    ["PATCH", "", { batch_max: 2 }],
    ["DELETE", ""],
    ["POST", "/rotate-secret"],
    ["POST", "/test"],
    ["POST", "/enable"],
    ["POST", "/replay", { after_event_id: 0 }],
    ["GET", "/attempts"],
  ];
  for (const id of [webhook_id, NOBODY, "x", "%00"]) {
    for (const [method, path, body] of calls) {
      const { status, body: answer } = await call(method, `/${id}${path}`, body);
      expect([method, path, status, answer]).toEqual([method, path, 404, { error: "there is no such webhook" }]);
    }
  }
  expect((await call("GET", "")).body).toEqual({ webhooks: [] });
});

test("409: a tenant has ten webhooks at most", async () => {
  const made = await Promise.all(Array.from({ length: 12 }, () => call("POST", "", { url: URL })));
  expect(made.filter(({ status }) => status === 201)).toHaveLength(10);
  expect(made.find(({ status }) => status === 409)?.body.error).toContain("at most 10 webhooks");
  for (const { status, body } of made) if (status === 201) await call("DELETE", `/${body.webhook_id}`);
});

test("a test calls the receiver, signed, says what it answered, and stands in the log", async () => {
  const { webhook_id, secret } = await create({ url: receiver.url });
  receiver.reply = () => new Response(null, { status: 418 });
  const { status, body } = await call("POST", `/${webhook_id}/test`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ kind: "test", delivered: false, status: 418, error: "the receiver answered 418" });
  const [called] = receiver.calls;
  expect(JSON.parse(called?.text ?? "")).toMatchObject({ type: "webhook.test", data: { webhook_id } });
  expect(isSignedWith(secret, called ?? { id: "", text: "", headers: {} })).toBe(true);
  const rotated = await call("POST", `/${webhook_id}/rotate-secret`);
  expect([rotated.status, rotated.body.secret === secret]).toEqual([200, false]);
  const { promise: end, resolve: release } = Promise.withResolvers<void>();
  receiver.reply = () => end.then(() => new Response());
  const first = call("POST", `/${webhook_id}/test`);
  const busy = call("POST", `/${webhook_id}/test`);
  expect((await Promise.race([first, busy])).status).toBe(409);
  release();
  expect((await Promise.all([first, busy])).map((one) => one.status).toSorted((one, next) => one - next)).toEqual([
    200, 409,
  ]);
  const page = await call("GET", `/${webhook_id}/attempts?limit=1`);
  expect(page.body.attempts).toMatchObject([{ delivered: true, status: 200 }]);
  const next = await call("GET", `/${webhook_id}/attempts?cursor=${page.body.next_cursor}`);
  expect(next.body).toMatchObject({ attempts: [{ delivered: false, status: 418 }], next_cursor: null });
  expect((await call("GET", `/${webhook_id}/attempts?cursor=0`)).status).toBe(400);
  await front.database.db.execute("update webhook_attempts set at = now() - interval '8 days' where status = 418");
  expect((await call("GET", `/${webhook_id}/attempts`)).body).toMatchObject({ attempts: [{ status: 200 }] });
  await call("DELETE", `/${webhook_id}`);
  expect(await front.database.db.select().from(webhookAttempts)).toEqual([]);
});
