import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import type { FrontDoor } from "../../src/http/front-door.ts";
import { BatchMessages } from "../../src/http/sending/batch-messages.ts";
import { must } from "../support/must.ts";
import { aTenant } from "../support/tenants.ts";
import { type Answer, Front } from "./support/front.ts";

let front: Front;
/** The number of jobs that each call bills to its tenant. */
const noted: number[] = [];
/** The updates that the operators' overview receives. */
const watched: (readonly [channel: string, jobs: number])[] = [];

beforeAll(async () => {
  front = await Front.start({
    usage: { note: (_tenantId, queued) => noted.push(queued) },
    watched: { noteAccepted: (channel, jobs) => watched.push([channel, jobs]) },
  });
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
}, 300_000);

afterAll(() => front?.stop(), 90_000);

const MANY_MEMBERS = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`member_${at}`, at]));
const MAIL = { subject: "Hello", html: "<p>Hello {{.name}}</p>" };

interface BatchBody {
  readonly jobs: readonly { readonly index: number; readonly job_id: string; readonly status: string }[];
  readonly errors: readonly { readonly index: number; readonly error: string }[];
}

function send(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return front.post("/v1/send/email/batch", body, headers);
}

function getBody({ body }: Answer): BatchBody {
  // As the document declares; `every-endpoint.test.ts` holds the answers to it.
  return body as unknown as BatchBody;
}

function mails(count: number, from = 0): { to_address: string }[] {
  return Array.from({ length: count }, (_, i) => ({ to_address: `u${from + i}@example.com` }));
}

/** Recipients queued since, in order. */
function since(before: number): readonly string[] {
  return front.queue.queued.slice(before).map(({ job }) => job.recipient);
}

async function tenantWith(requestsPerMinute: number, id: string): Promise<string> {
  await must(front.registry.putPlan({ name: id, requestsPerMinute, deliveriesPerSecond: null, ...QUEUE_SHARE }));
  return front.addTenant(id, id, ["allow_raw_html"]);
}

test("each message is queued as a request of its own would be, and one that is wrong stops no other", async () => {
  const before = front.queue.queued.length;
  const answer = await send({
    defaults: MAIL,
    messages: [
      { to_address: "ann@example.com", data: { name: "Ann" } },
      { to_address: "nobody" },
      "no object",
      { to_address: "bob@example.com", html: "<p>Hi</p><script>1</script>" },
      { to_address: "cy@example.com", html: null },
      { to_address: "dan@example.com", html: null, template_id: "welcome" },
      { to_address: "eve@example.com", surprise: 1 },
    ],
  });
  expect(answer.status).toBe(202);
  expect(since(before)).toEqual(["ann@example.com", "dan@example.com"]);
  const { jobs, errors } = getBody(answer);
  expect(jobs.map(({ index, status }) => [index, status])).toEqual([
    [0, "pending"],
    [5, "pending"],
  ]);
  expect(jobs.map(({ job_id }) => job_id)).toEqual(front.queue.queued.slice(before).map(({ job }) => job.jobId));
  expect(errors).toEqual([
    {
      index: 1,
      error: expect.stringContaining("to_address must be one e-mail address"),
      code: "invalid_member",
      param: "to_address",
    },
    { index: 2, error: "the body must be a JSON object", code: "bad_request" },
    {
      index: 3,
      error: "the inline HTML cannot be sent: see violations",
      code: "html_violation",
      param: "html",
      violations: [{ rule: "script", message: expect.any(String) }],
    },
    { index: 4, error: "template_id, html or text is required", code: "invalid_member", param: "template_id" },
    { index: 6, error: expect.stringContaining("surprise is not a member"), code: "unknown_member", param: "surprise" },
  ] as never);
  expect(JSON.parse(front.queue.queued[before]?.job.payload ?? "")).toMatchObject({
    data: { name: "Ann" },
    subject: "Hello",
  });
});

test("the overview is told of each queued message, one by one or together", async () => {
  watched.length = 0;
  await front.post("/v1/send/email", { ...MAIL, to_address: "ann@example.com" });
  await send({ defaults: MAIL, messages: [...mails(2), { to_address: "nobody" }] });
  await send({ defaults: MAIL, messages: [{ to_address: "nobody" }] });
  expect(watched.filter(([, jobs]) => jobs > 0)).toEqual([
    ["email", 1],
    ["email", 2],
  ]);
});

test("a batch of chat messages", async () => {
  const body = {
    defaults: { template_id: "order_ready" },
    messages: [{ phone_number: "5491122334455" }, { phone_number: "+1" }],
  };
  const answer = await front.post("/v1/send/whatsapp/batch", body);
  expect([answer.status, getBody(answer).jobs.length, getBody(answer).errors.length]).toEqual([202, 1, 1]);
});

test("what is wrong with the batch as a whole is one refusal, and queues nothing", async () => {
  const before = front.queue.queued.length;
  const refused: [unknown, string][] = [
    [[], "the body must be a JSON object"],
    [{ messages: mails(1), extra: 1 }, "extra is not a member of this request"],
    [{ messages: [] }, "messages must hold at least one message"],
    [{ messages: mails(1_001) }, "messages must not hold more than 1000 messages: this has 1001"],
    [{ messages: "ann" }, "messages must be an array"],
    [{}, "messages must be an array"],
    [{ defaults: [], messages: mails(1) }, "defaults must be an object"],
    [{ defaults: MANY_MEMBERS, messages: mails(1) }, "defaults must not hold more than 100 members"],
  ];
  for (const [body, why] of refused) {
    const { status, body: answer } = await send(body);
    expect([status, answer["error"]]).toEqual([400, expect.stringContaining(why)] as never);
  }
  expect((await front.fetch("/v1/send/email/batch", { method: "POST" })).status).toBe(401);
  expect((await send("x".repeat(5 * 1024 * 1024 + 1))).status).toBe(413);
  expect(since(before)).toEqual([]);
});

test("each message counts as a request of the plan; what is beyond it is an error of its index", async () => {
  const key = { "X-API-Key": await tenantWith(5, "five") };
  const first = await send({ defaults: MAIL, messages: [...mails(2), {}] }, key);
  expect([first.headers.get("ratelimit-limit"), first.headers.get("ratelimit-remaining")]).toEqual(["5", "2"]);
  const second = await send({ defaults: MAIL, messages: mails(300) }, key);
  expect(second.status).toBe(202);
  expect([getBody(second).jobs.length, getBody(second).errors.length]).toEqual([2, 298]);
  expect(getBody(second).errors[0]).toEqual({
    index: 2,
    error: expect.stringContaining("too many requests"),
    code: "rate_limited",
  } as never);
  expect(second.headers.get("ratelimit-remaining")).toBe("0");
  const third = await send({ defaults: MAIL, messages: mails(3) }, key);
  expect([third.status, third.headers.has("retry-after")]).toEqual([429, true]);
});

test("a large body is counted before it is read, and still once for each message", async () => {
  const key = { "X-API-Key": await tenantWith(1_000, "large") };
  const html = `<p>${"x".repeat(80_000)}</p>`;
  const answer = await send({ defaults: { ...MAIL, html }, messages: mails(10) }, key);
  expect([answer.status, getBody(answer).jobs.length, answer.headers.get("ratelimit-remaining")]).toEqual([
    202,
    10,
    "990",
  ]);
});

test("a repeat with the key gives the first answer, errors included, and queues nothing", async () => {
  const before = front.queue.queued.length;
  const headers = { "Idempotency-Key": "batch-1" };
  const body = { defaults: MAIL, messages: [...mails(200), { to_address: "nobody" }, ...mails(100, 200)] };
  noted.length = 0;
  const first = await send(body, headers);
  const again = await send(body, headers);
  expect(noted).toEqual([300, 0]);
  expect(since(before)).toEqual(mails(300).map(({ to_address }) => to_address));
  expect([again.status, again.headers.get("idempotency-replayed"), again.text]).toEqual([202, "true", first.text]);
  expect(first.headers.has("idempotency-replayed")).toBe(false);
  const other = await send({ ...body, messages: mails(1) }, headers);
  expect([other.status, other.body["error"]]).toEqual([422, "this Idempotency-Key was used before with another body"]);
  expect((await front.send({ ...MAIL, ...mails(1)[0] }, headers)).status).toBe(422);
});

test("two calls with the same key at the same time queue each message once", async () => {
  const before = front.queue.queued.length;
  const headers = { "Idempotency-Key": "batch-2" };
  const body = { defaults: MAIL, messages: mails(600) };
  const answers = await Promise.all([send(body, headers), send(body, headers), send(body, headers)]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(since(before).toSorted()).toEqual(
    mails(600)
      .map(({ to_address }) => to_address)
      .toSorted(),
  );
});

test("a batch that breaks off half-way is finished by its repeat, which queues nothing twice", async () => {
  const before = front.queue.queued.length;
  const headers = { "Idempotency-Key": "batch-3" };
  const body = { defaults: MAIL, messages: mails(300) };
  front.queue.failAfter(3, new TransportError("no answer"));
  const broken = await send(body, headers);
  front.queue.failure = null;
  expect([broken.status, broken.body["error"]]).toEqual([500, expect.stringContaining("Idempotency-Key")] as never);
  const queued = since(before).length;
  expect(queued).toBeGreaterThan(0);
  expect(queued).toBeLessThan(300);
  const finished = await send(body, headers);
  expect([finished.status, getBody(finished).jobs.length, getBody(finished).errors]).toEqual([202, 300, []]);
  expect(since(before)).toEqual(mails(300).map(({ to_address }) => to_address));
});

test("without a key, what the queue did not take is an error of its index, and what it took is not", async () => {
  const before = front.queue.queued.length;
  front.queue.failAfter(2, new UnavailableError("away"));
  const answer = await send({ defaults: MAIL, messages: mails(300) });
  front.queue.failure = null;
  const { jobs, errors } = getBody(answer);
  expect([answer.status, jobs.length, jobs.length + errors.length]).toEqual([202, since(before).length, 300]);
  expect(errors[0]?.error).toContain("was not queued");
  front.queue.failure = new UnavailableError("away");
  expect((await send({ defaults: MAIL, messages: mails(3) })).status).toBe(500);
  front.queue.failure = null;
});

test("what all messages share counts for each of them: what a batch has in all is bounded", async () => {
  const before = front.queue.queued.length;
  const html = `<p>${"x".repeat(500_000)}</p>`;
  const answer = await send({ defaults: { ...MAIL, html }, messages: mails(200) });
  const { jobs, errors } = getBody(answer);
  expect([answer.status, jobs.length, errors.length]).toEqual([202, 135, 65]);
  expect(errors[0]?.error).toContain("hold at most 64 MiB");
  // Long payloads wait outside the queue.
  const stored = front.queue.queued.slice(before).map(({ job }) => job.stored?.bytes ?? 0);
  expect(Math.min(...stored)).toBeGreaterThan(500_000);
}, 90_000);

test("a file that all messages share is stored once, before they are queued, and each counts with it", async () => {
  const before = front.queue.queued.length;
  const attachments = [{ filename: "terms.txt", content: Buffer.alloc(3000, "x").toString("base64") }];
  const answer = await send({ defaults: { ...MAIL, attachments }, messages: mails(3, 9_000) });
  expect(getBody(answer).errors).toEqual([]);
  const jobs = front.queue.queued.slice(before).map(({ job }) => job);
  expect(jobs.map(({ stored }) => (stored?.bytes ?? 0) > 3000)).toEqual([true, true, true]);
  const sha256 = new Bun.CryptoHasher("sha256").update("x".repeat(3000)).digest("hex");
  for (const { jobId } of jobs) {
    expect((await front.stores.jobContents.get({ tenantId: "acme", jobId }, sha256))?.length).toBe(3000);
  }
});

test("messages that take long to check are made few at a time, in turn with others, though all are refused", async () => {
  let ms = 0;
  const weighed: number[] = [];
  const door = {
    ports: { clock: { monotonicMs: () => ms } },
    inTurn: <T>(_caller: unknown, bytes: number, work: () => T) => {
      weighed.push(bytes);
      return work();
    },
  };
  const accept = () => {
    ms += 20;
    return { ok: false, refusal: { status: 422, message: "no" } } as const;
  };
  const toJob = () => {
    throw new Error("nothing is accepted");
  };
  const maker = { body: { defaults: {}, messages: mails(7) }, members: new Set<string>(), accept, toJob };
  // Messages use only these parts of the front door.
  const messages = new BatchMessages(door as unknown as FrontDoor, aTenant(), maker);
  const ids = { jobId: String, isQueued: () => false };
  const pieces: number[] = [];
  for (let from = 0; from < 7; ) {
    const { next } = await messages.make(from, ids);
    pieces.push(next - from);
    from = next;
  }
  expect(pieces).toEqual([3, 3, 1]);
  expect(weighed).toEqual([0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
});
