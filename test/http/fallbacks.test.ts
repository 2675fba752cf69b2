import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { jobTimeMs } from "../../src/domain/ids.ts";
import { fallbackId, fallbackIds } from "../../src/domain/jobs/fallback.ts";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { Front } from "./support/front.ts";

const MINUTE_MS = 60_000;
let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
beforeEach(() => {
  front.queue.queued.length = 0;
});
afterAll(() => front?.stop());

const MAIL = { to_address: "ann@example.com", template_id: "welcome", data: { name: "Ann" } };
const CHAT = { channel: "whatsapp", phone_number: "5491122334455", template_id: "hi" };
const after = (time: unknown, send: object = CHAT) => ({ after: time, unless: "delivered", send });
const at = (inMs: number) => new Date(Date.now() + inMs).toISOString();
const getJobId = (body: { readonly [name: string]: unknown }) => String(body["job_id"]);
const channelsQueued = () => front.queue.queued.map(({ job }) => job.channel);

test("a message and its fallbacks are queued as jobs of their own, the fallbacks first", async () => {
  const second = { after: "3h", unless: ["read", "clicked"], send: { channel: "email", ...MAIL } };
  const { status, body } = await front.send({ ...MAIL, fallback: [after("10m"), second] });
  expect(status).toBe(202);
  const main = getJobId(body);
  const [first = "", last = ""] = fallbackIds(main);
  const dueMs = [10 * MINUTE_MS, 180 * MINUTE_MS].map((ms) => jobTimeMs(main) + ms);
  expect(body).toEqual({
    job_id: main,
    status: "pending",
    fallback: [first, last].map((job_id, i) => ({ job_id, scheduled_at: new Date(dueMs[i] ?? 0).toISOString() })),
  });
  const [a, b, c] = front.queue.queued.map(({ job }) => job);
  expect([a, b, c].map((job) => [job?.jobId, job?.channel, job?.dueMs])).toEqual([
    [first, "whatsapp", dueMs[0]],
    [last, "email", dueMs[1]],
    [main, "email", undefined],
  ]);
  expect(a).toMatchObject({
    recipient: "5491122334455",
    needsScreening: true,
    fallback: { mainJobId: main, number: 1, afterMs: 10 * MINUTE_MS, unless: ["delivered"] },
  });
  expect(b?.fallback).toEqual({ mainJobId: main, number: 2, afterMs: 180 * MINUTE_MS, unless: ["read", "clicked"] });
  expect(c).not.toHaveProperty("fallback");
  expect(await front.request("GET", `/v1/jobs/${first}`)).toMatchObject({
    status: 200,
    body: { job_id: first, status: "pending", scheduled_at: new Date(dueMs[0] ?? 0).toISOString(), fallback_of: main },
  });
});

test("a chat message has an e-mail for a fallback, counted from the time that the message is scheduled for", async () => {
  const { channel: _, ...chat } = CHAT;
  const scheduled_at = at(60 * MINUTE_MS);
  const { body } = await front.sendChat({
    ...chat,
    scheduled_at,
    fallback: [after("30s", { channel: "email", ...MAIL })],
  });
  const due = new Date(Date.parse(scheduled_at) + 30_000).toISOString();
  expect(body["fallback"]).toEqual([{ job_id: fallbackId(getJobId(body), 1), scheduled_at: due }]);
  expect(channelsQueued()).toEqual(["email", "whatsapp"]);
});

const PASS = {
  pass_type: "apple",
  pass_data: { serial_number: "s-1", organization_name: "Acme", description: "A pass" },
};
const ONE = "fallback[0].";
const AFTER = "after must be a whole number of s, m, h or d, from 30s to 72h, such as 10m";
const UNLESS = "unless must be one or more of sent, delivered, read, opened, clicked";

describe("fallback", () => {
  test.each([
    ["no array", {}, "fallback must be an array of 1 to 3 objects"],
    ["empty", [], "fallback must be an array of 1 to 3 objects"],
    ["too many", Array(4).fill(after("1h")), "fallback must be an array of 1 to 3 objects"],
    ["no object", ["10m"], "fallback[0] must be an object with after, unless and send"],
    [
      "another member",
      [{ ...after("1h"), when: 1 }],
      "fallback[0].when is not a member of this request: known are after, unless, send",
    ],
    ...[null, 600, "", "10", "10 m", "-1m", "0m", "29s", "73h", "4d", "1e3s", "999999d", ["10m"]].map(
      (time) => [`after ${JSON.stringify(time)}`, [after(time)], ONE + AFTER] as const,
    ),
    ["no order", [after("1h"), after("60m")], "fallback[1].after must be longer than fallback[0].after"],
    ...[null, "", "seen", [], ["sent", "seen"], ["sent", "sent"], {}, 1].map(
      (unless) => [`unless ${JSON.stringify(unless)}`, [{ ...after("1h"), unless }], ONE + UNLESS] as const,
    ),
    [
      "no message",
      [after("1h", ["email"])],
      "fallback[0].send must be an object with channel and the members of its send",
    ],
    ["no channel", [after("1h", MAIL)], "fallback[0].send.channel must be one of email, whatsapp"],
    ["a pass", [after("1h", { channel: "wallet" })], "fallback[0].send.channel must be one of email, whatsapp"],
    ["no recipient", [after("2m"), after("1h", { channel: "email" })], "fallback[1].send.to_address is required"],
    [
      "a time",
      [after("1h", { ...CHAT, scheduled_at: at(MINUTE_MS) })],
      /^fallback\[0\]\.send\.scheduled_at is not a member/,
    ],
    [
      "a pass with its message",
      [after("1h", { ...CHAT, pass: PASS })],
      "fallback[0].send.pass is not taken: a fallback carries no pass",
    ],
    ["a fallback", [after("1h", { ...CHAT, fallback: [] })], /^fallback\[0\]\.send\.fallback is not a member/],
  ])("that is or has %s is refused with what it should be, and queues nothing", async (_, fallback, error) => {
    const { status, body } = await front.send({ ...MAIL, fallback });
    expect([status, body["error"]]).toEqual([400, typeof error === "string" ? error : expect.stringMatching(error)]);
    expect(channelsQueued()).toEqual([]);
  });

  test("is refused beside a pass", async () => {
    const { status, body } = await front.send({ ...MAIL, pass: PASS, fallback: [after("1h")] });
    const error = "fallback is not taken beside pass: send the pass in a message without one";
    expect([status, body["error"], channelsQueued()]).toEqual([400, error, []]);
  });

  test("that is null is none", async () => {
    const { body } = await front.send({ ...MAIL, fallback: null });
    expect(body).toEqual({ job_id: getJobId(body), status: "pending" });
  });

  test("is refused in a batch, with what to do instead, and the other messages are queued", async () => {
    const messages = [{ ...MAIL, fallback: [after("1h")] }, { ...MAIL, fallback: null }, MAIL];
    const { body } = await front.post("/v1/send/email/batch", { messages });
    expect(body["errors"]).toEqual([
      {
        index: 0,
        error: "fallback is not taken in a batch: send this message in a request of its own",
        code: "invalid_member",
        param: "fallback",
      },
    ]);
    expect(channelsQueued()).toEqual(["email", "email"]);
  });

  test("is refused where its message is, with the message's words", async () => {
    const { status, body } = await front.send({ ...MAIL, to_address: "nobody", fallback: [after("1h")] });
    expect([status, String(body["error"]).startsWith("to_address")]).toEqual([400, true]);
    expect(channelsQueued()).toEqual([]);
  });
});

describe("under an Idempotency-Key", () => {
  const body = { ...MAIL, fallback: [after("1h")] };

  test("a repeat gets the first answer and queues nothing, also if it would be refused now", async () => {
    const key = { "Idempotency-Key": "k-1" };
    const one = await front.send(body, key);
    const again = await front.send(body, key);
    expect([again.status, again.body]).toEqual([202, one.body]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(channelsQueued()).toEqual(["whatsapp", "email"]);
    expect((await front.send({ ...body, fallback: [after("2h")] }, key)).status).toBe(422);
    expect(channelsQueued()).toEqual(["whatsapp", "email"]);
  });

  test("two at a time have one message with one fallback, and the other's fallback is withdrawn", async () => {
    const key = { "Idempotency-Key": "k-2" };
    const [one, two] = await Promise.all([front.send(body, key), front.send(body, key)]);
    expect(one.body).toEqual(two.body);
    expect([one.status, two.status]).toEqual([202, 202]);
    const pending = front.queue.queued.filter(({ job }) => front.queue.jobs.get(job.jobId)?.status === "pending");
    expect(pending.map(({ job }) => job.jobId).toSorted()).toEqual(
      [getJobId(one.body), fallbackId(getJobId(one.body), 1)].toSorted(),
    );
  });

  test("a process that dies between the fallback and the message leaves the key free", async () => {
    const key = { "Idempotency-Key": "k-3" };
    // The call is counted, the job looked up and the fallback queued; then the queue stops answering.
    front.queue.failAfter(3, new TransportError("no answer"));
    const cut = await front.send(body, key);
    expect(cut.status).toBe(500);
    front.queue.failure = null;
    const orphan = front.queue.queued[0]?.job;
    const { status, body: answer } = await front.send(body, key);
    expect(status).toBe(202);
    expect(orphan?.fallback?.mainJobId).not.toBe(getJobId(answer));
    expect(front.queue.jobs.has(String(orphan?.fallback?.mainJobId))).toBe(false);
    expect(front.queue.queued.at(-1)?.job.jobId).toBe(getJobId(answer));
  });
});

test("a message that is certainly not queued takes its fallbacks with it", async () => {
  front.queue.failAfter(2, new UnavailableError("no queue"));
  expect((await front.send({ ...MAIL, fallback: [after("1h")] })).status).toBe(500);
  front.queue.failure = null;
  expect(channelsQueued()).toEqual(["whatsapp"]);
});

test("a full queue refuses a message with its fallbacks, and keeps none of them", async () => {
  const plan = { name: "tiny", requestsPerMinute: 100, deliveriesPerSecond: null, ...QUEUE_SHARE, queuedJobsMax: 2 };
  await front.registry.putPlan(plan);
  const apiKey = await front.addTenant("tiny", "tiny", ["allow_raw_html"]);
  const mail = { to_address: "ann@example.com", subject: "Hi", html: "<p>Hello, Ann.</p>" };
  const fallback = ["1h", "2h"].map((time) => after(time, { channel: "email", ...mail }));
  const { status, body } = await front.send({ ...mail, fallback }, { "X-API-Key": apiKey });
  expect([status, body["error"]]).toEqual([429, expect.stringContaining("queue")]);
  const { jobs, queued } = front.queue;
  expect(queued.map(({ job }) => jobs.get(job.jobId)?.result)).toEqual(Array(2).fill({ reason: "canceled" }));
});

test("a tenant without the fallback's channel is refused", async () => {
  const apiKey = await front.addTenant("mail-only", "free", ["allow_raw_html"]);
  await front.registry.changeTenant("mail-only", { channels: ["email"] });
  const mail = { to_address: "ann@example.com", subject: "Hi", html: "<p>Hello, Ann.</p>" };
  const { status } = await front.send({ ...mail, fallback: [after("1h")] }, { "X-API-Key": apiKey });
  expect([status, channelsQueued()]).toEqual([403, []]);
});

test("whoever cancels a message cancels its fallbacks, and whoever cancels one fallback only that", async () => {
  const fallback = [after("1h"), after("2h")];
  const { body } = await front.send({ ...MAIL, scheduled_at: at(MINUTE_MS), fallback });
  const main = getJobId(body);
  const [first = "", second = ""] = fallbackIds(main);
  const getStatus = (jobId: string) => front.queue.jobs.get(jobId)?.status;
  expect((await front.request("POST", `/v1/jobs/${first}/cancel`)).status).toBe(200);
  expect([main, first, second].map(getStatus)).toEqual(["pending", "suppressed", "pending"]);
  expect((await front.request("POST", `/v1/jobs/${main}/cancel`)).status).toBe(200);
  expect([main, first, second].map(getStatus)).toEqual(["suppressed", "suppressed", "suppressed"]);
});
