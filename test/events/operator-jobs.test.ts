import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { COUNTS, type Count, type EventMetrics } from "../../src/domain/jobs/event-metrics.ts";
import type { OwnersAnswer } from "../../src/domain/jobs/job-questions.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { Database } from "../../src/storage/postgres/database.ts";
import { openRecipientIndex, recipientIndex } from "../../src/storage/recipient-index.ts";
import { Vault } from "../../src/storage/vault.ts";
import { Front } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";
import { openRegistryDatabase } from "../support/registry-database.ts";

const ids = new JobIds(systemClock, systemRandom);
let front: Front;
let metrics: Awaited<ReturnType<EventMetrics["metrics"]>> = [];
/** The answer of the process that delivers; an error if it cannot be reached. */
let answer: OwnersAnswer | Error | null = null;
beforeAll(async () => {
  const ask = async () => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const eventMetrics: EventMetrics = { isFromSums: () => true, metrics: async () => metrics };
  front = await Front.start({ questions: { ask }, eventMetrics });
});
afterAll(() => front.stop(), 90_000);

const PATH = "/tenants/acme/jobs";

test("an operator lists a tenant's jobs and sees one with its tries", async () => {
  const accepted = await front.send({ to_address: "Ann@Example.com", subject: "Hi", html: "<p>Hi</p>" });
  const jobId = String(accepted.body["job_id"]);
  const list = await front.operate("GET", `${PATH}?status=pending&channel=email`);
  const job = { job_id: jobId, channel: "email", status: "pending", attempts: 0, recipient_domain: "example.com" };
  expect([list.status, list.body]).toMatchObject([200, { jobs: [job], next_cursor: null, incomplete: false }]);
  expect((await front.operate("GET", `${PATH}?status=failed`)).body).toMatchObject({ jobs: [] });
  const one = await front.operate("GET", `${PATH}/${jobId}`);
  expect([one.status, one.body]).toMatchObject([200, { ...job, history: [], events: [] }]);
});

test("a job that was handed over has the outcome that was reported later, in lists and by itself", async () => {
  const jobId = ids.next();
  const at = { tenantId: "acme", jobId, channel: "email" } as const;
  const bounce = { code: 550, enhanced_code: "5.1.1", diagnostic: "no such user" };
  const events = [
    { eventId: 4_096_000, type: "sent", result: {} },
    { eventId: 8_192_000, type: "bounced", result: bounce },
  ] as const;
  const summary = { attempts: 1, result: {}, template: "", recipientDomain: "example.com", tags: [], finishedAtMs: 0 };
  const stored = { ...at, ...summary, status: "success", endEventId: 4_096_000 } as const;
  const { eventStore } = front;
  const before = { finished: eventStore.finished, finishedJob: eventStore.finishedJob };
  eventStore.finished = async () => ({ jobs: [stored], moreBelow: null });
  eventStore.finishedJob = async () => stored;
  eventStore.jobs.push({ ...at, status: "success", attempts: 1, events: events.slice(0, 1), result: {} });
  const outcomes = async () => [
    (await front.operate("GET", `${PATH}?status=success`)).body["jobs"],
    (await front.operate("GET", "/jobs?recipient=gus@example.com")).body["jobs"],
    [(await front.operate("GET", `${PATH}/${jobId}`)).body],
  ];
  const told = (outcome: string) => [0, 1, 2].map(() => [{ job_id: jobId, status: "success", outcome }]);
  expect(await outcomes()).toMatchObject(told("sent"));
  eventStore.jobs.pop();
  eventStore.jobs.push({ ...at, status: "success", attempts: 1, events, result: {} });
  eventStore.events.push(...events.map((event) => ({ ...at, ...event })));
  expect(await outcomes()).toMatchObject(told("bounced"));
  Object.assign(eventStore, before);
});

test("an operator finds a recipient's jobs and a job's tenant without knowing the tenant", async () => {
  const accepted = await front.send({ to_address: "Bea@Example.com", subject: "Hi", html: "<p>Hi</p>" });
  const job = { tenant_id: "acme", job_id: String(accepted.body["job_id"]), status: "pending" };
  const found = { jobs: [job], next_cursor: null, incomplete: false };
  expect((await front.operate("GET", "/jobs?recipient=BEA@example.com")).body).toMatchObject(found);
  expect((await front.operate("GET", `/jobs?job_id=${job.job_id}`)).body).toMatchObject(found);
  expect((await front.operate("GET", `/jobs?job_id=${ids.next()}`)).body).toMatchObject({ jobs: [] });
  expect((await front.operate("GET", `/jobs?job_id=${job.job_id}&to=2020-01-01`)).body).toMatchObject({ jobs: [] });
  const bad = [
    "",
    "?recipient=",
    "?job_id=x",
    `?job_id=${job.job_id}&recipient=a@b.c`,
    `?recipient=${"a".repeat(400)}`,
  ];
  for (const query of bad) expect([query, (await front.operate("GET", `/jobs${query}`)).status]).toEqual([query, 400]);
});

test("a tenant lists its own jobs as operators see them, and nobody else's", async () => {
  const accepted = await front.send({ to_address: "Cyd@Example.com", subject: "Hi", html: "<p>Hi</p>" });
  const jobId = String(accepted.body["job_id"]);
  const beta = await front.addTenant("beta", "pro");
  const query = "?status=pending&channel=email&recipient=cyd@example.com&limit=1";
  const own = await front.request("GET", `/v1/jobs${query}`);
  expect(own).toMatchObject({ status: 200, body: { jobs: [{ job_id: jobId, recipient_domain: "example.com" }] } });
  const seen = (await front.operate("GET", `${PATH}${query}`)).body;
  expect(seen).toEqual({ ...own.body, jobs: [{ ...Object(own.body["jobs"])[0], outcome: "pending" }] });
  expect((await front.request("GET", `/v1/jobs${query}`, { "X-API-Key": beta })).body).toMatchObject({ jobs: [] });
  const wrong = ["tag=offer", "tag=a:b:c", "status=lost", "cursor=x", "from=2026-02-30", "who=ann", "limit=0"];
  for (const query of wrong) {
    const { status, body } = await front.request("GET", `/v1/jobs?${query}`);
    expect([status, body["error"]]).toEqual([400, expect.stringContaining(query.split("=")[0] ?? "")]);
  }
});

test("a tenant is told what its job waits for, and how each of its tries ended", async () => {
  const accept = async () =>
    (await front.send({ to_address: "dee@example.com", subject: "Hi", html: "<p>Hi</p>" })).body;
  const [, second] = [await accept(), await accept()];
  const jobId = String(second["job_id"]);
  const explain = async () => (await front.request("GET", `/v1/jobs/${jobId}/explain`)).body;
  const why = "the mail server refused the connection: 421 4.7.0 Try again later, closing connection. (EHLO)";
  answer = { waitsFor: "relay_away", forMs: null, why };
  expect(await explain()).toMatchObject({
    job_id: jobId,
    status: "pending",
    waits_for: "relay_away",
    detail: expect.stringContaining(why),
    attempts: [],
  });
  answer = { waitsFor: null, forMs: null };
  expect(await explain()).toMatchObject({ waits_for: null, detail: "its delivery is under way" });
  for (const none of [null, new TransportError("no Redis"), new UnavailableError("no Redis")]) {
    answer = none;
    const body = await explain();
    expect([body["waits_for"], Number(body["ahead"]) > 0, "estimated_at" in body]).toEqual(["turn", true, false]);
  }
  await front.operate("POST", "/tenants/acme/pause", { channels: ["email"] });
  await eventually("the pause is known", async () => (await explain())["waits_for"] === "paused");
  await front.operate("POST", "/tenants/acme/resume", {});

  const tries = [
    { at: Date.UTC(2026, 10, 21), outcome: "failed", relay: "mx:25", reply: "550 5.1.1 no such user", ms: 12 },
  ] as const;
  const job = {
    tenantId: "acme",
    jobId: ids.next(),
    channel: "email",
    status: "failed",
    attempts: 1,
    events: [],
  } as const;
  front.eventStore.job = async (_tenant, id) => (id === job.jobId ? { ...job, result: {}, tries } : null);
  const ended = await front.request("GET", `/v1/jobs/${job.jobId}/explain`);
  expect(ended.body).toEqual({
    job_id: job.jobId,
    status: "failed",
    waits_for: null,
    failure_class: "other",
    detail: "it has ended: failed",
    attempts: [
      {
        at: "2026-11-21T00:00:00Z",
        outcome: "failed",
        relay: "mx:25",
        reply: "550 5.1.1 no such user",
        ms: 12,
        failure_class: "recipient",
      },
    ],
  });
  for (const id of [ids.next(), "none"]) {
    expect((await front.request("GET", `/v1/jobs/${id}/explain`)).status).toBe(404);
  }
});

test("a tenant's metrics are what it asked for, and a wrong question is refused by name", async () => {
  const days = "from=2026-11-20&to=2026-11-21";
  const none = Object.fromEntries(COUNTS.map((count) => [count, 0])) as Record<Count, number>;
  metrics = [{ atMs: Date.UTC(2026, 10, 20), group: "email", events: { ...none, sent: 3, delivered: 2 } }];
  const shown = "interval=day&group_by=channel&metrics=sent,delivery_rate,open_rate,complaint_rate,click_rate";
  const { status, body } = await front.request("GET", `/v1/metrics?${days}&${shown}&timezone=Europe/Berlin`);
  const rates = { delivery_rate: 0.6667, open_rate: 0, complaint_rate: 0, click_rate: 0 };
  const row = { at: "2026-11-20T00:00:00Z", group: "email", sent: 3, ...rates };
  const asked = {
    from: "2026-11-20",
    to: "2026-11-21",
    timezone: "Europe/Berlin",
    interval: "day",
    group_by: "channel",
  };
  expect([status, body]).toEqual([200, { ...asked, rows: [row] }]);
  const wrong = {
    [`${days}&metrics=sent,lost`]: "metrics",
    [`${days}&timezone=Mars`]: "timezone",
    [`${days}&timezone=%2B02:00`]: "timezone",
    [`${days}&interval=minute`]: "interval",
    [`${days}&group_by=recipient`]: "group_by",
    "from=2026-11-20": "to",
    "from=2026-11-20&to=2026-11-19": "to",
    "from=2025-01-01&to=2026-11-19": "366 days",
    "from=2026-01-01&to=2026-03-01&interval=hour": "31 days",
  };
  for (const [query, name] of Object.entries(wrong)) {
    const answer = await front.request("GET", `/v1/metrics?${query}`);
    expect([query, answer.status, answer.body["error"]]).toEqual([query, 400, expect.stringContaining(name)]);
  }
  for (const reason of ["too_many_events", "too_many_rows"] as const) {
    metrics = reason;
    expect((await front.request("GET", `/v1/metrics?${days}`)).status).toBe(400);
  }
});

test("an unknown job or tenant is 404, a wrong filter 400", async () => {
  const calls = {
    [`${PATH}/${ids.next()}`]: 404,
    [`${PATH}/none`]: 404,
    "/tenants/nobody/jobs": 404,
    [`${PATH}?status=lost`]: 400,
    [`${PATH}?cursor=x`]: 400,
    [`${PATH}?from=2026-02-30`]: 400,
    [`${PATH}?from=2026-02-03&to=2026-02-02`]: 400,
    [`${PATH}?who=ann`]: 400,
  };
  for (const [path, status] of Object.entries(calls)) expect((await front.operate("GET", path)).status).toBe(status);
});

test("the index of recipients outlives the master key that sealed it", async () => {
  const database = await openRegistryDatabase();
  const [former, next] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const open = (...keys: Uint8Array[]) =>
    openRecipientIndex(new Database(database.db, systemClock), new Vault(keys, systemRandom), systemRandom);
  const hash = (await open(former)).hashRecipient("ann@example.com");
  expect((await open(next, former)).hashRecipient("ann@example.com")).toBe(hash);
  expect(recipientIndex(former).hashRecipient("ann@example.com")).not.toBe(hash);
  expect((await open(former)).hashRecipient("eve@example.com")).not.toBe(hash);
  await database.close();
});
