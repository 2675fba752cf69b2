import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { monthsBetween, nextMonth } from "../../src/tenants/month.ts";
import { usageCsv, usageRecords } from "../../src/tenants/usage.ts";
import { type UsageCount, UsageCounter } from "../../src/tenants/usage-counter.ts";
import { Front } from "../http/support/front.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

let front: Front;
let counter: UsageCounter;
beforeAll(async () => {
  front = await Front.start((stores) => {
    counter = new UsageCounter({ store: stores.registry, clock: systemClock, telemetry: new QuietTelemetry() });
    return { usage: counter };
  });
});
afterAll(() => front.stop(), 90_000);

const MONTH = new Date().toISOString().slice(0, 7);

test("each authenticated call of a tenant is counted once, and each new job", async () => {
  await front.operate("PUT", "/tenants/acme/templates/hi", { channel: "email", subject: "Hi", html: "<p>Hi</p>" });
  const send = { to_address: "ada@example.com", template_id: "hi" };
  expect((await front.send(send)).status).toBe(202);
  expect((await front.send({ ...send, template_id: "none" })).status).toBe(400);
  for (const replayed of [null, "true"]) {
    const answer = await front.send(send, { "idempotency-key": "usage-1" });
    expect([answer.status, answer.headers.get("idempotency-replayed")]).toEqual([202, replayed]);
  }
  // A 202 that queues no job.
  const made = await front.post("/v1/webhooks", { url: "https://hooks.example.com/waybill" });
  const from = new Date(Date.now() - 60_000).toISOString();
  expect((await front.post(`/v1/webhooks/${String(made.body["webhook_id"])}/replay`, { from })).status).toBe(202);
  expect((await front.operate("GET", "/tenants/acme/usage")).body).toMatchObject({ usage: [{ api_calls: 0 }] });
  await counter.flush();
  await counter.flush();
  expect((await front.operate("GET", "/tenants/acme/usage")).body).toMatchObject({
    usage: [{ tenant_id: "acme", month: MONTH, api_calls: 6, accepted: 2 }],
  });
});

test("usage adds up events by month and channel, and the ledger's tokens", async () => {
  await front.registry.createTenant({ id: "billed", name: "=HYPERLINK(1)", tokens: 5 });
  await front.operate("POST", "/tenants/billed/tokens", { amount: 3, reason: "more" });
  await front.operate("POST", "/tenants/billed/tokens", { amount: -2, reason: "less" });
  const of = { tenantId: "billed", month: MONTH } as const;
  front.eventStore.monthly.push(
    { ...of, channel: "email", type: "sent", events: 7 },
    { ...of, channel: "whatsapp", type: "sent", events: 2 },
    { ...of, channel: "email", type: "delivered", events: 6 },
    { ...of, channel: "whatsapp", type: "delivered", events: 1 },
    { ...of, channel: "email", type: "failed", events: 1 },
    { ...of, month: "2020-01", channel: "email", type: "sent", events: 99 },
  );
  const record = {
    tenant_id: "billed",
    tenant_name: "=HYPERLINK(1)",
    month: MONTH,
    api_calls: 0,
    accepted: 0,
    sent: { email: 7, whatsapp: 2, wallet: 0 },
    delivered: 7,
    bounced: 0,
    failed: 1,
    suppressed: 0,
    tokens_charged: 0,
    tokens_given_back: 0,
    tokens_topped_up: 8,
    tokens_taken: 2,
    tokens_billed: 0,
  };
  expect((await front.operate("GET", "/tenants/billed/usage")).body).toEqual({ usage: [record] });
  const all = await front.operate("GET", `/usage?month=${MONTH}&cursor=acme`);
  expect(all.body).toEqual({ usage: [record], next_cursor: null });
  const page = await front.operate("GET", `/usage?month=${MONTH}&limit=1`);
  expect(page.body).toMatchObject({ usage: [{ tenant_id: "acme" }], next_cursor: "acme" });
  const csv = await front.operate("GET", `/usage?format=csv&cursor=acme`);
  expect(csv.headers.get("content-type")).toStartWith("text/csv");
  expect(csv.headers.get("cache-control")).toBe("no-store");
  expect(csv.text.split("\r\n")).toEqual([
    "tenant_id,tenant_name,month,api_calls,accepted,sent_email,sent_whatsapp,sent_wallet,delivered,bounced,failed,suppressed,tokens_charged,tokens_given_back,tokens_topped_up,tokens_taken,tokens_billed",
    `billed,'=HYPERLINK(1),${MONTH},0,0,7,2,0,7,0,1,0,0,0,8,2,0`,
    "",
  ]);
  const long = await front.operate("GET", "/tenants/billed/usage?from=2019-12&to=2020-02");
  expect(long.body).toMatchObject({
    usage: [
      { month: "2019-12", sent: { email: 0 } },
      { month: "2020-01", sent: { email: 99 } },
      { month: "2020-02", sent: { email: 0 } },
    ],
  });
});

test("what is billed is what passes were charged less what was given back, whatever operators add or remove", () => {
  const query = { tenantIds: ["t"], from: "2026-01", to: "2026-02" };
  const of = { tenantId: "t", toppedUp: 500, taken: 40 };
  const tokens = [
    { ...of, month: "2026-01", charged: 12, givenBack: 2 },
    { ...of, month: "2026-02", charged: 0, givenBack: 1 },
  ];
  const records = usageRecords(query, { names: new Map(), channels: [], counts: [], tokens, events: [] });
  expect(records.map(({ tokens_billed: billed }) => billed)).toEqual([10, -1]);
  expect(usageCsv(records, []).trim().split("\r\n").at(-1)).toEndWith(",0,1,500,40,-1");
});

test.each([
  ["/tenants/acme/usage?from=2026-13", 400, "from must be a month"],
  ["/tenants/acme/usage?from=2026-05&to=2026-04", 400, "to must not be before from"],
  ["/tenants/acme/usage?from=2020-01&to=2026-01", 400, "at most 36 months"],
  ["/tenants/nobody/usage", 404, "there is no such tenant"],
  ["/usage?month=november", 400, "month must be a month"],
  ["/usage?format=xml", 400, "format must be one of json, csv"],
  ["/usage?cursor=%3F", 400, "cursor"],
])("%s is refused", async (path, status, error) => {
  const answer = await front.operate("GET", path);
  expect([answer.status, answer.body["error"]]).toEqual([status, expect.stringContaining(error)]);
});

test("an event store that is away fails the call, and no sum is made up", async () => {
  front.eventStore.failure = new UnavailableError("away");
  expect((await front.operate("GET", "/tenants/acme/usage")).status).toBe(500);
  front.eventStore.failure = null;
});

test("counts wait while the registry is away, and are not written twice when it is not known whether they were", async () => {
  const written: UsageCount[][] = [];
  let failure: Error | null = new UnavailableError("away");
  const store = {
    addUsage: async (counts: readonly UsageCount[]) => {
      if (failure !== null) throw failure;
      written.push([...counts]);
    },
  };
  const own = new UsageCounter({ store, clock: systemClock, telemetry: new QuietTelemetry() });
  own.note("b", 1);
  own.note("a", 0);
  await own.flush();
  own.note("a", 1);
  failure = null;
  await own.flush();
  const months = written.flat().map(({ tenantId, apiCalls, accepted }) => [tenantId, apiCalls, accepted]);
  expect(months).toEqual([
    ["a", 2, 1],
    ["b", 1, 1],
  ]);
  own.note("c", 1);
  failure = new TransportError("no answer");
  await own.flush();
  failure = null;
  await own.stop();
  expect(written.flat().some(({ tenantId }) => tenantId === "c")).toBe(false);
});

test("months follow each other over the turn of a year", () => {
  expect(monthsBetween("2025-11", "2026-02")).toEqual(["2025-11", "2025-12", "2026-01", "2026-02"]);
  expect([nextMonth("2025-12"), monthsBetween("2026-02", "2026-01")]).toEqual(["2026-01", []]);
});

test.each([
  ['a "b", c', '"a ""b"", c"'],
  ["@SUM(A1)", "'@SUM(A1)"],
  [" \t=1+1", "' \t=1+1"],
  ["-1", "'-1"],
  ["a=b", "a=b"],
])("the name %j is %j in a CSV file", (name, shown) => {
  const query = { tenantIds: ["t"], from: "2026-01", to: "2026-01" };
  const parts = { names: new Map([["t", name]]), channels: [], counts: [], tokens: [], events: [] };
  expect(usageCsv(usageRecords(query, parts), [])).toContain(`\r\nt,${shown},2026-01,`);
});
