import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TransportError } from "../../src/domain/errors.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import type { Front } from "../http/support/front.ts";
import { PLATFORM, WalletFront } from "../http/support/wallet-front.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
let world: WalletFront;
let front: Front;
beforeAll(async () => {
  world = await WalletFront.start({ ...PLATFORM, whatsapp: { phoneNumberId: "1", accessToken: "token" } });
  front = world.front;
});
afterAll(() => world?.stop());

const at = (inMs: number) => new Date(Date.now() + inMs).toISOString();
const anEmail = (scheduled_at: unknown) => ({ to_address: "ann@example.com", template_id: "welcome", scheduled_at });
const send = (scheduled_at: unknown) => front.send(anEmail(scheduled_at));
const lastJob = () => front.queue.queued.at(-1)?.job;

async function scheduled(inMs = 10 * MINUTE_MS): Promise<string> {
  const { status, body } = await send(at(inMs));
  expect(status).toBe(202);
  return String(body["job_id"]);
}

const patch = (jobId: string, body: object) => {
  const headers = { "X-API-Key": front.apiKey, "Content-Type": "application/json" };
  return front.fetch(`/v1/jobs/${jobId}`, { method: "PATCH", headers, body: JSON.stringify(body) });
};
const cancel = (jobId: string) => front.request("POST", `/v1/jobs/${jobId}/cancel`);

describe("scheduled_at", () => {
  test.each([
    ["in UTC", "2099-01-01T00:00:00Z", null],
    ["with milliseconds", at(MINUTE_MS), MINUTE_MS],
    ["in another zone", `${at(MINUTE_MS + 90 * MINUTE_MS).slice(0, 19)}+01:30`, MINUTE_MS],
    ["in another zone without a colon", `${at(MINUTE_MS - 120 * MINUTE_MS).slice(0, 19)}-0200`, MINUTE_MS],
    ["without seconds", `${at(3 * MINUTE_MS).slice(0, 16)}Z`, 3 * MINUTE_MS],
  ])("is a time %s", async (_, text, inMs) => {
    const { status, body } = await send(text);
    if (inMs === null) {
      expect([status, body["error"]]).toEqual([400, "scheduled_at must be at most 30 days ahead"]);
      return;
    }
    expect(status).toBe(202);
    expect(Math.abs((lastJob()?.dueMs ?? 0) - Date.now() - inMs)).toBeLessThan(2 * MINUTE_MS);
  });

  test.each([
    "",
    "tomorrow",
    "2026-11-21",
    "2026-11-21T09:30:00",
    "2026-11-21 09:30:00Z",
    "2026-02-30T09:30:00Z",
    "2026-11-21T24:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-11-21T09:30:00+25:00",
    `2026-11-21T09:30:00.${"0".repeat(10)}Z`,
    1_800_000_000,
    true,
    {},
    [[]],
  ])("%p is refused with what it should be", async (value) => {
    const before = front.queue.queued.length;
    const { status, body } = await send(value);
    expect(status).toBe(400);
    expect(body["error"]).toBe("scheduled_at must be a time with its zone in ISO 8601, such as 2026-11-21T09:30:00Z");
    expect(front.queue.queued.length).toBe(before);
  });

  test.each([null, "2020-01-01T00:00:00Z", at(0)])("%p is now, by the clocks that the queue asks", async (value) => {
    expect((await send(value)).status).toBe(202);
    expect(lastJob()?.dueMs).toBe(value === null ? undefined : Date.parse(value));
  });

  test("goes up to 30 days", async () => {
    expect((await send(at(30 * DAY_MS - MINUTE_MS))).status).toBe(202);
    expect((await send(at(30 * DAY_MS + MINUTE_MS))).status).toBe(400);
  });

  test("is for chat messages, too", async () => {
    const body = { phone_number: "5491122334455", template_id: "hi", scheduled_at: at(MINUTE_MS) };
    expect((await front.sendChat(body)).status).toBe(202);
    expect(lastJob()?.dueMs).toBeGreaterThan(Date.now());
  });

  test("keeps what waits longer than 15 minutes outside the queue, unless it is tiny", async () => {
    const long = { ...anEmail(at(20 * MINUTE_MS)), data: { text: "x".repeat(300) } };
    const soon = { ...long, scheduled_at: at(10 * MINUTE_MS) };
    expect([(await front.send(long)).status, lastJob()?.payload]).toEqual([202, ""]);
    expect(front.payloads.stored.has(`acme ${lastJob()?.jobId}`)).toBe(true);
    expect([(await front.send(soon)).status, lastJob()?.stored]).toEqual([202, undefined]);
    expect([(await send(at(20 * MINUTE_MS))).status, lastJob()?.stored]).toEqual([202, undefined]);
  });
});

describe("a scheduled job", () => {
  test("shows its time while it waits", async () => {
    const jobId = await scheduled();
    const { body } = await front.request("GET", `/v1/jobs/${jobId}`);
    expect(body).toEqual({
      job_id: jobId,
      status: "pending",
      scheduled_at: new Date(lastJob()?.dueMs ?? 0).toISOString(),
    });
  });

  test("can be moved, and moved again to now", async () => {
    const jobId = await scheduled();
    const to = at(3 * DAY_MS);
    expect(await patch(jobId, { scheduled_at: to })).toMatchObject({
      status: 200,
      body: { job_id: jobId, status: "pending", scheduled_at: to },
    });
    expect((await front.request("GET", `/v1/jobs/${jobId}`)).body["scheduled_at"]).toBe(to);
    const now = await patch(jobId.toUpperCase(), { scheduled_at: "2020-01-01T00:00:00Z" });
    expect(now.status).toBe(200);
    expect(Math.abs(Date.parse(String(now.body["scheduled_at"])) - Date.now())).toBeLessThan(10_000);
  });

  test.each([
    [{}, "scheduled_at is required"],
    [{ scheduled_at: null }, "scheduled_at is required"],
    [{ scheduled_at: "soon" }, "scheduled_at must be a time with its zone in ISO 8601, such as 2026-11-21T09:30:00Z"],
    [{ scheduled_at: at(31 * DAY_MS) }, "scheduled_at must be at most 30 days ahead"],
    [{ scheduled_at: at(MINUTE_MS), html: "" }, "html is not a member of this request: known are scheduled_at"],
    [["soon"], "the body must be a JSON object"],
  ])("is not moved by %p", async (body, error) => {
    const jobId = await scheduled();
    expect(await patch(jobId, body)).toMatchObject({ status: 400, body: { error } });
    expect(front.queue.jobs.get(jobId)?.dueMs).toBe(lastJob()?.dueMs);
  });

  test("is cancelled once, and its payload leaves", async () => {
    const long = { ...anEmail(at(DAY_MS)), data: { text: "x".repeat(300) } };
    const jobId = String((await front.send(long)).body["job_id"]);
    expect(front.payloads.stored.has(`acme ${jobId}`)).toBe(true);
    for (let times = 0; times < 2; times += 1) {
      expect(await cancel(jobId)).toMatchObject({ status: 200, body: { job_id: jobId, status: "suppressed" } });
    }
    expect(front.payloads.stored.has(`acme ${jobId}`)).toBe(false);
    const { body } = await front.request("GET", `/v1/jobs/${jobId}`);
    expect(body).toEqual({ job_id: jobId, status: "suppressed", result: { reason: "canceled" } });
    expect((await patch(jobId, { scheduled_at: at(MINUTE_MS) })).status).toBe(409);
  });
});

describe("a job that cannot be changed", () => {
  test("is unknown, another tenant's, or malformed: 404", async () => {
    const other = new JobIds(systemClock, systemRandom).next();
    for (const id of [other, "x", "00000000-0000-0000-0000-000000000000"]) {
      expect((await cancel(id)).status).toBe(404);
      expect((await patch(id, { scheduled_at: at(MINUTE_MS) })).status).toBe(404);
    }
  });

  test("has ended: 409, also once only the event store knows it", async () => {
    const jobId = new JobIds(systemClock, systemRandom).next();
    const ended = { jobId, tenantId: "acme", channel: "email", status: "success", attempts: 1, result: {}, events: [] };
    front.eventStore.jobs.push({ ...ended, status: "success" });
    expect(await cancel(jobId)).toMatchObject({ status: 409, body: { error: "the job has ended" } });
    expect(await patch(jobId, { scheduled_at: at(MINUTE_MS) })).toMatchObject({ status: 409 });
    const earlier = new JobIds(systemClock, systemRandom).next();
    const result = { reason: "canceled" };
    front.eventStore.jobs.push({ ...ended, jobId: earlier, status: "suppressed", result });
    expect((await cancel(earlier)).status).toBe(200);
  });

  test("is with its owner, which does not give it up within two seconds: 409", async () => {
    const jobId = String((await front.send(anEmail(null))).body["job_id"]);
    front.queue.held.add(jobId);
    expect(await cancel(jobId)).toMatchObject({
      status: 409,
      body: { error: "the job cannot be cancelled: its delivery may have begun, or its provider has the message" },
    });
    front.queue.held.delete(jobId);
    expect((await cancel(jobId)).status).toBe(200);
  });

  test("is out of reach: the caller learns that it must ask again", async () => {
    const jobId = await scheduled();
    front.queue.failure = new TransportError("no answer");
    const { status } = await cancel(jobId);
    front.queue.failure = null;
    expect(status).toBeGreaterThanOrEqual(500);
    expect((await cancel(jobId)).status).toBe(200);
  });
});

test("a pass that is scheduled takes its token at once, and gives it back once when it is cancelled, whoever died meanwhile", async () => {
  const before = await world.balance();
  const scheduled_at = at(60 * MINUTE_MS);
  const aPass = (serial_number: string, time: string) => ({
    pass_type: "apple",
    pass_data: { serial_number, organization_name: "Acme", description: "A pass" },
    scheduled_at: time,
  });
  for (const isCut of [false, true]) {
    expect((await front.post("/v1/passes/create", aPass(`s-${isCut}`, scheduled_at))).status).toBe(202);
    const { jobId, dueMs } = world.lastJob;
    expect(dueMs).toBe(Date.parse(scheduled_at));
    expect(await world.balance()).toBe(before - 1);
    // Cancelled in the queue, by a process that died before it gave back the token.
    if (isCut) await front.queue.cancel({ tenantId: "acme", shard: 0 }, jobId);
    expect([(await cancel(jobId)).status, (await cancel(jobId)).status]).toEqual([200, 200]);
    expect(await world.balance()).toBe(before);
  }
  expect((await front.post("/v1/send/wallet", aPass("s-soon", "soon"))).status).toBe(400);
  expect(await world.balance()).toBe(before);
});
