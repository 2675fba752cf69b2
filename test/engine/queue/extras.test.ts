import { expect, test } from "bun:test";
import { parsePayload as parseEmail } from "../../../src/channels/email/payload.ts";
import { parsePayload as parseChat } from "../../../src/channels/whatsapp/payload.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { NewJob, Settlement } from "../../../src/domain/jobs/queue.ts";
import { accept, failed, first, pullOne, queue, record, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const TRACE = `00-${"5e".repeat(16)}-${"a1".repeat(8)}-01`;
/** Past, so the job is sent at once. */
const DUE_MS = 1_600_000_000_000;
const EMAIL = '{"to":"ann@example.com","data":{"é":1}}';
const STORED = { sha256: "ab".repeat(32), bytes: 300_000 };
const TAGS = [
  { name: "campaign", value: "spring_26" },
  { name: "a-b", value: "-" },
];

async function readEntry(prefix: string): Promise<string> {
  const [, fields] = first(await redis.client.xrange(`${prefix}:box:acme/e`, "-", "+"));
  return fields[1] ?? "";
}

async function readLoad(prefix: string): Promise<string> {
  return (await redis.client.hget(`${prefix}:tenants`, "acme"))?.split(" ").slice(0, 2).join(" ") ?? "";
}

const FALLBACK = {
  mainJobId: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11",
  number: 2,
  afterMs: 600_000,
  unless: ["delivered", "clicked"],
} as const;
const FALLBACK_TEXT = `${FALLBACK.mainJobId},2,600000,delivered+clicked`;

const contents: [string, Partial<NewJob>][] = [
  ["a payload", { payload: EMAIL }],
  ["a template", { payload: EMAIL, template: "welcome" }],
  ["a payload that is stored elsewhere", { payload: "", stored: STORED }],
  ["a template and a payload that is stored elsewhere", { payload: "", stored: STORED, template: "welcome" }],
];
const extras: [string, Partial<NewJob>, string][] = [
  ["trace", { traceparent: TRACE }, `"$trace":"${TRACE}",`],
  ["tags", { tags: TAGS }, '"$job":"campaign=spring_26;a-b=-|",'],
  ["due time", { dueMs: DUE_MS }, '"$job":"|1600000000000",'],
  ["condition", { dueMs: DUE_MS, fallback: FALLBACK }, `"$job":"|1600000000000|${FALLBACK_TEXT}",`],
  [
    "trace, tags, due time and condition",
    { traceparent: TRACE, tags: TAGS, dueMs: DUE_MS, fallback: FALLBACK },
    `"$trace":"${TRACE}","$job":"campaign=spring_26;a-b=-|1600000000000|${FALLBACK_TEXT}",`,
  ],
  ["topic", { topic: "día a día & más" }, '"$topic":"día a día & más",'],
  [
    "trace, tags, due time, condition and topic",
    { traceparent: TRACE, tags: TAGS, dueMs: DUE_MS, fallback: FALLBACK, topic: "news" },
    `"$trace":"${TRACE}","$job":"campaign=spring_26;a-b=-|1600000000000|${FALLBACK_TEXT}","$topic":"news",`,
  ],
  [
    "trace, tags and due time",
    { traceparent: TRACE, tags: TAGS, dueMs: DUE_MS },
    `"$trace":"${TRACE}","$job":"campaign=spring_26;a-b=-|1600000000000",`,
  ],
];

test.each(
  contents.flatMap(([what, content]) =>
    extras.map(([name, extra, added]) => [what, name, content, extra, added] as const),
  ),
)("a job with %s keeps its %s over a retry, and its payload as it was", async (_, __, content, extra, added) => {
  const given = { ...content, ...extra };
  const at = await world();
  await accept(at.tenant, given);
  const job = first(await pullOne(at.lease, "acme"));
  expect(job).toMatchObject(given);
  await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 0, status: "running" }], null);
  const again = first(await pullOne(at.lease, "acme"));
  expect(again).toMatchObject({ ...given, attempts: 1 });
  await accept(at.tenant, given);
  await queue.settle(at.lease, [sent(again)], null);
  // The first job's counts are given back, and the second counts for as much.
  const bytes = content.stored?.bytes ?? Buffer.byteLength(EMAIL + added);
  expect(await readLoad(at.prefix)).toBe(`1 ${bytes}`);
});

function suppressedJob(job: QueuedJob): Settlement {
  const result = { reason: "manual" };
  return { kind: "final", job, status: "suppressed", result, event: { type: "suppressed", result } };
}

test.each([
  ["sent", sent],
  ["failed", failed],
  ["suppressed", suppressedJob],
] as const)("the row of a job that ends as %s has its tags", async (_, end) => {
  const at = await world();
  await accept(at.tenant, { payload: EMAIL, tags: TAGS });
  await accept(at.tenant, { payload: EMAIL });
  const jobs = await pullOne(at.lease, "acme");
  await queue.settle(at.lease, jobs.map(end), null);
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows.map(({ finished }) => finished?.tags)).toEqual([TAGS, undefined]);
});

test("the row of a pass that is cancelled before its first attempt has its tags", async () => {
  const at = await world();
  const dueMs = Date.now() + 600_000;
  const jobId = await accept(at.tenant, { channel: "wallet", recipient: "", tags: TAGS, dueMs });
  expect(await queue.cancel(at.tenant, jobId)).toBe("canceled");
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows.map(({ finished }) => finished?.tags)).toEqual([TAGS]);
});

test("the row of an erased recipient's job has neither recipient nor tags", async () => {
  const at = await world();
  await accept(at.tenant, { payload: EMAIL, tags: TAGS });
  const job = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [suppressedJob({ ...job, suppressed: "erased" })], null);
  const [row] = (await record(at.recorder, null))?.rows ?? [];
  expect(row?.finished).not.toHaveProperty("tags");
  expect(row?.finished).not.toHaveProperty("recipient");
});

test.each(contents)("the row of a job with %s that a report ends has its tags", async (_, content) => {
  const at = await world();
  const jobId = await accept(at.tenant, { ...content, tags: TAGS, traceparent: TRACE });
  const [job] = await pullOne(at.lease, "acme");
  if (job === undefined) throw new Error("nothing was pulled");
  await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 60_000, status: "running" }], null);
  await queue.observe(at.tenant, { jobId, type: "delivered", result: {}, suppress: null, known: null });
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows.map(({ finished }) => finished?.tags)).toEqual([TAGS, undefined]);
});

test("what is kept of a failed job has its extras, and so has its next life", async () => {
  const at = await world();
  const jobId = await accept(at.tenant, {
    payload: EMAIL,
    traceparent: TRACE,
    tags: TAGS,
    topic: "news",
    dueMs: DUE_MS,
    fallback: FALLBACK,
  });
  const job = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [failed(job)], null);
  const content = (await queue.unrecordedContents(at.tenant, [jobId])).get(jobId);
  const known = await queue.job(at.tenant, jobId);
  if (content === undefined || known === null) throw new Error("nothing was kept");
  expect(content).toMatchObject({ payload: EMAIL, traceparent: TRACE, tags: TAGS, dueMs: DUE_MS, fallback: FALLBACK });
  await queue.retry({ tenant: at.tenant, retries: [{ job: known, content }], atMs: Date.now() });
  expect(first(await pullOne(at.lease, "acme"))).toMatchObject({
    payload: EMAIL,
    tags: TAGS,
    topic: "news",
    fallback: FALLBACK,
    attempts: 0,
  });
});

test.each(contents)(
  "a fallback with %s names its message while it waits, and keeps its condition when it is moved",
  async (_, content) => {
    const at = await world();
    const jobId = await accept(at.tenant, { ...content, tags: TAGS, dueMs: Date.now() + 60_000, fallback: FALLBACK });
    expect(await queue.job(at.tenant, jobId)).toMatchObject({ fallbackOf: FALLBACK.mainJobId, status: "pending" });
    expect(await queue.reschedule(at.tenant, jobId, Date.now() - 1)).toBe("moved");
    const job = first(await pullOne(at.lease, "acme"));
    expect(job).toMatchObject({ fallback: FALLBACK, tags: TAGS });
    expect(await queue.job(at.tenant, jobId)).not.toHaveProperty("fallbackOf");
  },
);

test("a job without extras takes no byte more, and one whose payload has no members has none", async () => {
  const at = await world();
  const jobId = await accept(at.tenant, { payload: EMAIL });
  expect(await readEntry(at.prefix)).toBe(`${jobId} e0 ann@example.com\n${EMAIL}`);
  const read = first(await pullOne(at.lease, "acme"));
  for (const extra of ["traceparent", "tags", "topic", "dueMs"]) expect(read).not.toHaveProperty(extra);
  for (const payload of ["{}", "[1]", '"text"']) {
    const other = await world();
    await accept(other.tenant, { payload, traceparent: TRACE, tags: TAGS });
    const job = first(await pullOne(other.lease, "acme"));
    expect(job.payload).toBe(payload);
    expect(job).not.toHaveProperty("traceparent");
    expect(job).not.toHaveProperty("tags");
  }
});

test("a process of a former release, which takes the whole payload for the channel's, reads the same message", async () => {
  const at = await world();
  const given = { payload: EMAIL, template: "welcome", traceparent: TRACE, tags: TAGS, topic: "news" };
  const jobId = await accept(at.tenant, given);
  const entry = await readEntry(at.prefix);
  const head = entry.slice(0, entry.indexOf("\n"));
  expect(head).toBe(`${jobId} e0 ann@example.com\t"welcome"`);
  expect(parseEmail(entry.slice(head.length + 1))).toEqual({ to: "ann@example.com", data: { é: 1 } });
  const chat = { to: "34600000000", template: "hi", language: "es", params: [] };
  expect(parseChat(JSON.stringify({ $trace: TRACE, $job: "a=b|", ...chat }))).toEqual(chat);
});
