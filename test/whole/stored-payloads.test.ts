import { beforeEach, describe, expect, test } from "bun:test";
import type { Channel } from "../../src/domain/channels/channel.ts";
import { UnavailableError } from "../../src/domain/errors.ts";
import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import { PayloadRoom, ROOM_BYTES, ROOM_WAIT_MS, SHARE_BYTES } from "../../src/engine/channels/payload-room.ts";
import { StoredPayloads } from "../../src/engine/channels/stored-payloads.ts";
import { nameOfPayload } from "../../src/http/sending/accept-job.ts";
import { MemoryPayloads } from "../http/support/memory-payloads.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { RecordingChannel } from "../support/recording-channel.ts";
import { aTenant } from "../support/tenants.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const TEXT = `{"to":"ada@example.com","text":"größer 😀"}`;
const PAYLOAD = Buffer.from(TEXT);
const MIB = 1024 * 1024;
const NEVER = new AbortController().signal;

const JOB: QueuedJob = {
  jobId: "job-1",
  tenantId: "acme",
  channel: "email",
  entryId: "1-0",
  attempts: 0,
  recipient: "ada@example.com",
  suppressed: null,
  payload: "",
  stored: nameOfPayload(PAYLOAD),
};

let clock: VirtualClock;
let store: MemoryPayloads;
let telemetry: QuietTelemetry;
let seen: QueuedJob[];
let channel: Channel;

beforeEach(async () => {
  clock = new VirtualClock();
  store = new MemoryPayloads();
  telemetry = new QuietTelemetry();
  seen = [];
  const inner = new RecordingChannel((job) => {
    seen.push(job);
    return { kind: "delivered", result: {} };
  });
  channel = new StoredPayloads({ nameOf: nameOfPayload, store, room: new PayloadRoom(clock), telemetry }).over(inner);
  await store.put(JOB, PAYLOAD);
});

const deliver = (job: QueuedJob = JOB, signal: AbortSignal = NEVER) => channel.deliver(job, aTenant(), signal);

describe("a job whose payload is stored outside the queue", () => {
  test("is delivered with it, and is otherwise unchanged", async () => {
    expect(await deliver()).toEqual({ kind: "delivered", result: {} });
    expect(seen).toEqual([{ ...JOB, payload: TEXT }]);
    expect([channel.name, channel.slots, channel.screen, channel.paceMs]).toEqual(["email", 512, undefined, undefined]);
  });

  test("is checked with it", async () => {
    const inner = Object.assign(new RecordingChannel(() => ({ kind: "delivered", result: {} })), {
      screen: async (job: QueuedJob) => {
        seen.push(job);
        return null;
      },
    });
    const both = new StoredPayloads({ nameOf: nameOfPayload, store, room: new PayloadRoom(clock), telemetry }).over(
      inner,
    );
    expect(await both.screen?.(JOB, aTenant(), NEVER)).toBeNull();
    expect(seen).toEqual([{ ...JOB, payload: TEXT }]);
  });

  test("fails when the payload is gone, and that is logged", async () => {
    await store.remove(JOB);
    const error = "the message could not be sent: its stored content is gone";
    expect(await deliver()).toEqual({ kind: "failed", error });
    expect(telemetry.lines).toEqual(["error: the payload of a job is gone"]);
    expect(seen).toEqual([]);
  });

  test.each([
    ["changed", Buffer.from(TEXT.replace("ada", "eve"))],
    ["cut", PAYLOAD.subarray(0, 10)],
    ["empty", new Uint8Array()],
  ])("fails when the payload is not what was accepted, and that is logged: %s", async (_how, found) => {
    await store.put(JOB, found);
    const error = "the message could not be sent: its stored content is damaged";
    expect(await deliver()).toEqual({ kind: "failed", error });
    expect(telemetry.lines).toEqual(["error: the payload of a job is not what was accepted"]);
    expect(seen).toEqual([]);
  });

  test("waits without counting an attempt while the store is away", async () => {
    store.failure = new UnavailableError("away");
    expect(await deliver()).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true, afterMs: 1_000 });
    store.failure = null;
    expect(await deliver()).toMatchObject({ kind: "delivered" });
  });

  test("is handed to its relay once there is room and its payload is loaded", async () => {
    const room = new PayloadRoom(clock);
    const events: string[] = [];
    const inner = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
    const over = new StoredPayloads({ nameOf: nameOfPayload, store, room, telemetry }).over(inner);
    await room.take("other", ROOM_BYTES, NEVER);
    const delivery = over.deliver(JOB, aTenant(), NEVER, () => events.push("handed over"));
    await clock.advance(ROOM_WAIT_MS - 1);
    events.push("room");
    room.give("other", ROOM_BYTES);
    await delivery;
    expect(events).toEqual(["room", "handed over"]);
    // A payload that was never stored, for lack of space, does not count.
    await room.take("other", ROOM_BYTES, NEVER);
    const late = over.deliver(JOB, aTenant(), NEVER, () => events.push("handed over"));
    await clock.advance(ROOM_WAIT_MS);
    expect(await late).toMatchObject({ kind: "retry", isUncounted: true });
    expect(events).toHaveLength(2);
  });

  test("leaves jobs alone that carry their payload", async () => {
    store.failure = new UnavailableError("away");
    const { stored: _, ...small } = { ...JOB, payload: "{}" };
    expect(await deliver(small)).toMatchObject({ kind: "delivered" });
    expect(seen).toEqual([small]);
  });
});

describe("room for large payloads", () => {
  const isIn = async (taking: Promise<boolean>) => Promise.race([taking, Promise.resolve(null)]);

  test("is bounded in total and per tenant, and a tenant that waits for its own share delays no other", async () => {
    const room = new PayloadRoom(clock);
    const half = SHARE_BYTES / 2;
    expect([await room.take("a", half, NEVER), await room.take("a", half, NEVER)]).toEqual([true, true]);
    const third = room.take("a", half, NEVER);
    expect(await isIn(third)).toBeNull();
    for (const tenant of ["b", "c", "d"]) expect(await isIn(room.take(tenant, SHARE_BYTES, NEVER))).toBeTrue();
    const fifth = room.take("e", 1, NEVER);
    expect(await isIn(fifth)).toBeNull();
    room.give("b", SHARE_BYTES);
    for (const tenant of ["c", "d"]) room.give(tenant, SHARE_BYTES);
    expect([await isIn(fifth), await isIn(third)]).toEqual([true, null]);
    room.give("a", half);
    expect(await isIn(third)).toBeTrue();
  });

  test("is left for tenants that hold nothing, however much others with slow relays want", async () => {
    const room = new PayloadRoom(clock);
    const piece = SHARE_BYTES / 2;
    const slow = ["a", "b", "c", "d", "e"];
    for (let i = 0; i < 4; i += 1) for (const tenant of slow) void room.take(tenant, piece, NEVER);
    // They hold their space for good.
    const quiet = ["q", "r"].map((tenant) => room.take(tenant, piece, NEVER));
    expect(await Promise.all(quiet.map(isIn))).toEqual([true, true]);
  });

  test("gives a tenant that holds something half of what the others leave, and none of the reserve", async () => {
    const room = new PayloadRoom(clock);
    for (const tenant of ["a", "b"]) expect(await isIn(room.take(tenant, SHARE_BYTES, NEVER))).toBeTrue();
    // 48 MiB are not the reserve, and 16 of them are left: 8 for the third, then 4 for the fourth.
    const halves: readonly [string, number][] = [
      ["c", 4],
      ["c", 4],
      ["c", 1],
      ["d", 2],
      ["d", 2],
      ["d", 1],
    ];
    const isInEach = await Promise.all(halves.map(([tenant, mib]) => isIn(room.take(tenant, mib * MIB, NEVER))));
    expect(isInEach).toEqual([true, true, null, true, true, null]);
  });

  test("admits a payload larger than all of it, alone", async () => {
    const room = new PayloadRoom(clock);
    expect(await room.take("a", 2 * ROOM_BYTES, NEVER)).toBeTrue();
    const next = room.take("b", 1, NEVER);
    expect(await isIn(next)).toBeNull();
    room.give("a", 2 * ROOM_BYTES);
    expect(await next).toBeTrue();
  });

  test("is awaited for no longer than some seconds, or than the delivery", async () => {
    const room = new PayloadRoom(clock);
    await room.take("a", ROOM_BYTES, NEVER);
    const late = room.take("b", 1, NEVER);
    await clock.advance(ROOM_WAIT_MS);
    expect(await late).toBeFalse();
    const delivery = new AbortController();
    const aborted = room.take("b", 1, delivery.signal);
    delivery.abort();
    expect([await aborted, await room.take("b", 1, delivery.signal)]).toEqual([false, false]);
    room.give("a", ROOM_BYTES);
    expect(await room.take("c", ROOM_BYTES, NEVER)).toBeTrue();
  });

  test("is freed whatever the delivery's outcome", async () => {
    const room = new PayloadRoom(clock);
    const broken = new RecordingChannel(() => Promise.reject(new Error("a mistake of ours")));
    const over = new StoredPayloads({ nameOf: nameOfPayload, store, room, telemetry }).over(broken);
    await expect(over.deliver(JOB, aTenant(), NEVER)).rejects.toThrow("a mistake of ours");
    await store.remove(JOB);
    await over.deliver(JOB, aTenant(), NEVER);
    expect(await isIn(room.take("b", ROOM_BYTES, NEVER))).toBeTrue();
    const waiting = over.deliver({ ...JOB, tenantId: "c" }, aTenant(), NEVER);
    await clock.advance(ROOM_WAIT_MS);
    expect(await waiting).toMatchObject({ kind: "retry", isUncounted: true });
  });
});
