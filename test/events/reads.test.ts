import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TransportError } from "../../src/domain/errors.ts";
import { eventTimeMs, firstEventIdAt } from "../../src/domain/jobs/event.ts";
import type { JobRecord } from "../../src/domain/jobs/job.ts";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { Front } from "../http/support/front.ts";

const JOB_ID = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
const AT = Date.UTC(2026, 10, 21, 7, 30, 15, 250);
const FIRST = firstEventIdAt(AT);
const JOB: JobRecord = {
  jobId: JOB_ID,
  tenantId: "acme",
  channel: "email",
  status: "pending",
  attempts: 0,
  result: null,
  events: [],
};

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.queue.failure = null;
  front.queue.jobs.clear();
  front.queue.counted = 0;
  front.eventStore.failure = null;
  front.eventStore.events.length = 0;
  front.eventStore.jobs.length = 0;
  front.eventStore.queries.length = 0;
});

describe("a job", () => {
  test.each(["pending", "running"] as const)("that is %s shows only its id and status", async (status) => {
    front.queue.jobs.set(JOB_ID, { ...JOB, status, attempts: 3 });
    const answer = await front.request("GET", `/v1/jobs/${JOB_ID}`);
    expect([answer.status, answer.body]).toEqual([200, { job_id: JOB_ID, status }]);
    expect(front.queue.counted).toBe(1);
    expect(answer.headers.get("ratelimit-remaining")).toBeString();
  });

  test.each([
    ["success", {}],
    ["failed", { error: "550 refused", spam_score: 7.5 }],
    ["suppressed", { reason: "unsubscribed" }],
  ] as const)("that ended in %s shows its result", async (status, result) => {
    front.queue.jobs.set(JOB_ID, { ...JOB, status, result });
    expect((await front.request("GET", `/v1/jobs/${JOB_ID}`)).body).toEqual({ job_id: JOB_ID, status, result });
  });

  test("is found in the event store once the queue has dropped it", async () => {
    front.eventStore.jobs.push({ ...JOB, status: "success", result: {} });
    expect((await front.request("GET", `/v1/jobs/${JOB_ID}`)).body).toEqual({
      job_id: JOB_ID,
      status: "success",
      result: {},
    });
    expect((await front.request("GET", `/v1/jobs/${JOB_ID.toUpperCase()}`)).status).toBe(200);
  });

  test("of another tenant is answered like an unknown one", async () => {
    front.queue.jobs.set(JOB_ID, { ...JOB, tenantId: "other" });
    front.eventStore.jobs.push({ ...JOB, tenantId: "other", status: "success", result: {} });
    for (const path of [`/v1/jobs/${JOB_ID}`, `/v1/jobs/${JOB_ID}/events`]) {
      const answer = await front.request("GET", path);
      expect([answer.status, answer.body]).toEqual([404, { error: "there is no such job" }]);
    }
  });

  test.each([
    "x",
    "01936f2e",
    `${JOB_ID}0`,
    "%zz",
    "%00",
    "..%2F..",
    "__proto__",
    "01936f2e-7c1a-4b3e-9a55-2f1c8f0a4d11",
  ])("with an invalid id is 404 and counts, without a call to the stores: %s", async (id) => {
    front.eventStore.failure = new Error("asked for what cannot be there");
    for (const path of [`/v1/jobs/${id}`, `/v1/jobs/${id}/events`])
      expect((await front.request("GET", path)).status).toBe(404);
    expect(front.queue.counted).toBe(2);
  });

  test("needs a key", async () => {
    for (const path of [`/v1/jobs/${JOB_ID}`, "/v1/jobs/x", `/v1/jobs/${JOB_ID}/events`, "/v1/events"]) {
      expect((await front.fetch(path)).status).toBe(401);
    }
    expect(front.queue.counted).toBe(0);
  });

  test("is a 500 while the queue or the event store is away, not a 404", async () => {
    front.eventStore.failure = new TransportError("clickhouse is gone");
    expect((await front.request("GET", `/v1/jobs/${JOB_ID}`)).status).toBe(500);
    front.queue.failure = new TransportError("redis is gone");
    const answer = await front.request("GET", `/v1/jobs/${JOB_ID}/events`);
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("redis");
  });

  test("lists its events oldest first, with times to the second", async () => {
    front.queue.jobs.set(JOB_ID, {
      ...JOB,
      status: "success",
      result: {},
      events: [
        { eventId: FIRST, type: "sent", result: {} },
        { eventId: FIRST + 1, type: "clicked", result: { url: "https://example.com" } },
      ],
    });
    expect((await front.request("GET", `/v1/jobs/${JOB_ID}/events`)).body).toEqual({
      job_id: JOB_ID,
      events: [
        { event_id: FIRST, event_type: "sent", result: {}, created_at: "2026-11-21T07:30:15Z" },
        {
          event_id: FIRST + 1,
          event_type: "clicked",
          result: { url: "https://example.com" },
          created_at: "2026-11-21T07:30:15Z",
        },
      ],
    });
  });
});

describe("over the limit", () => {
  test("a read is 429, even while the event store is away", async () => {
    await front.registry.putPlan({ name: "one", requestsPerMinute: 1, deliveriesPerSecond: null, ...QUEUE_SHARE });
    const key = await front.addTenant("reader", "one");
    const read = (path: string) => front.request("GET", path, { "X-API-Key": key });
    expect((await read(`/v1/jobs/${JOB_ID}`)).status).toBe(404);
    front.eventStore.failure = new Error("the event store is away");
    for (const path of [`/v1/jobs/${JOB_ID}`, "/v1/jobs/x", "/v1/events", "/v1/events?from=2026-11-01&to=2026-11-02"]) {
      const answer = await read(path);
      expect([path, answer.status, answer.headers.get("retry-after")]).toEqual([path, 429, "17"]);
    }
  });
});

const CURSOR = "cursor must be the next_cursor of a page that has more; omit it on the first page";

describe("the tenant's events", () => {
  const RANGE = "from=2026-11-01&to=2026-11-21";
  const list = (query: string) => front.request("GET", `/v1/events?${query}`);

  test("come newest first, page by page, each once, until next_cursor is 0", async () => {
    for (let n = 0; n < 5; n++) {
      front.eventStore.events.push({
        tenantId: "acme",
        jobId: JOB_ID,
        channel: "email",
        eventId: FIRST + n,
        type: "sent",
        result: {},
      });
    }
    const first = await list(`${RANGE}&limit=2`);
    expect(first.body).toEqual({
      events: [FIRST + 4, FIRST + 3].map((event_id) => ({
        event_id,
        job_id: JOB_ID,
        channel: "email",
        event_type: "sent",
        result: {},
        created_at: "2026-11-21T07:30:15Z",
      })),
      has_more: true,
      next_cursor: FIRST + 3,
    });
    const second = await list(`${RANGE}&limit=2&cursor=${FIRST + 3}`);
    expect(second.body).toMatchObject({ has_more: true, next_cursor: FIRST + 1 });
    const last = await list(`${RANGE}&limit=2&cursor=${FIRST + 1}`);
    expect(last.body).toMatchObject({ events: [{ event_id: FIRST }], has_more: false, next_cursor: 0 });
  });

  test("are asked for by whole UTC days, both inclusive", async () => {
    await list("from=2026-11-20&to=2026-11-21");
    const [query] = front.eventStore.queries;
    expect(eventTimeMs(query?.fromEventId ?? 0)).toBe(Date.UTC(2026, 10, 20));
    expect(query?.toEventId).toBe(firstEventIdAt(Date.UTC(2026, 10, 22)));
  });

  test.each([
    ["channel=wallet", { channel: "wallet" }],
    ["channel=whatsapp", { channel: "whatsapp" }],
    ["event_type=complained", { type: "complained" }],
    ["limit=1", { limit: 1 }],
    ["limit=500", { limit: 500 }],
    ["limit=501", { limit: 500 }],
    ["limit=99999999999999999999", { limit: 500 }],
    ["", { channel: null, type: null, limit: 100, tenantId: "acme" }],
  ])("with %p are asked for so", async (parameter, expected) => {
    expect((await list(`${RANGE}&${parameter}`)).status).toBe(200);
    expect(front.eventStore.queries[0]).toMatchObject(expected);
  });

  test("are none before the first possible id and after an old cursor", async () => {
    for (const query of [
      "from=2001-01-01&to=2001-01-31",
      "from=0001-01-01&to=0001-01-02",
      "from=9999-12-01&to=9999-12-31",
      `${RANGE}&cursor=1`,
    ]) {
      const answer = await list(query);
      expect([query, answer.status, answer.body]).toEqual([
        query,
        200,
        { events: [], has_more: false, next_cursor: 0 },
      ]);
    }
  });

  test("31 days after from is the furthest to", async () => {
    expect((await list("from=2026-10-01&to=2026-11-01")).status).toBe(200);
    const answer = await list("from=2026-10-01&to=2026-11-02");
    expect([answer.status, answer.body]).toEqual([
      400,
      { error: "to must be at most 31 days after from: split a longer export" },
    ]);
  });

  test.each([
    ["", "from is required: a date as YYYY-MM-DD"],
    ["from=2026-11-01", "to is required: a date as YYYY-MM-DD"],
    ["to=2026-11-01", "from is required: a date as YYYY-MM-DD"],
    ["from=&to=2026-11-01", "from must be a calendar date as YYYY-MM-DD"],
    ["from=2026-02-30&to=2026-03-01", "from must be a calendar date as YYYY-MM-DD"],
    ["from=2026-02-01&to=2026-02-29", "to must be a calendar date as YYYY-MM-DD"],
    ["from=2026-11-1&to=2026-11-02", "from must be a calendar date as YYYY-MM-DD"],
    ["from=2026-13-01&to=2026-11-02", "from must be a calendar date as YYYY-MM-DD"],
    ["from=2026-11-01T00:00:00Z&to=2026-11-02", "from must be a calendar date as YYYY-MM-DD"],
    ["from=1700000000&to=2026-11-02", "from must be a calendar date as YYYY-MM-DD"],
    ["from=2026-11-02&to=2026-11-01", "to must not be before from"],
    [`${RANGE}&channel=sms`, "channel must be one of email, whatsapp, wallet"],
    [`${RANGE}&channel=`, "channel must be one of email, whatsapp, wallet"],
    [
      `${RANGE}&event_type=SENT`,
      "event_type must be one of sent, delivered, read, opened, clicked, bounced, complained, failed, suppressed",
    ],
    [`${RANGE}&limit=0`, "limit must be an integer of at least 1"],
    [`${RANGE}&limit=-1`, "limit must be an integer of at least 1"],
    [`${RANGE}&limit=1.5`, "limit must be an integer of at least 1"],
    [`${RANGE}&limit=1e2`, "limit must be an integer of at least 1"],
    [`${RANGE}&limit=`, "limit must be an integer of at least 1"],
    [`${RANGE}&cursor=-5`, CURSOR],
    [`${RANGE}&cursor=9007199254740992`, CURSOR],
    [`${RANGE}&cursor=abc`, CURSOR],
    [`${RANGE}&cursor=0`, CURSOR],
    [`${RANGE}&limit=1&limit=2`, "the query parameter limit is given more than once"],
    [
      `${RANGE}&page=2`,
      'the query parameter "page" is unknown: known are from, to, channel, event_type, limit, cursor',
    ],
    [
      `${RANGE}&__proto__=2`,
      'the query parameter "__proto__" is unknown: known are from, to, channel, event_type, limit, cursor',
    ],
  ])("with the query %p are refused with 400", async (query, error) => {
    const answer = await list(query);
    expect([answer.status, answer.body]).toEqual([400, { error }]);
    expect(front.queue.counted).toBe(1);
    expect(answer.headers.has("ratelimit-limit")).toBe(true);
  });

  test("are a 500 while the event store is away", async () => {
    front.eventStore.failure = new TransportError("clickhouse is gone");
    const answer = await list(RANGE);
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("clickhouse");
  });
});
