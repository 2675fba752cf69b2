import { afterAll, beforeAll, expect, test } from "bun:test";
import { LiveOverview } from "../../src/operators/overview/live-overview.ts";
import { OVERVIEW_EXAMPLE, type OverviewBody } from "../../src/operators/overview/schema.ts";
import { Front, OPERATOR_TOKEN } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";
import { ManualClock } from "../support/manual-clock.ts";

const clock = new ManualClock();
const draining = new AbortController();
let body: OverviewBody = OVERVIEW_EXAMPLE;
let front: Front;

beforeAll(async () => {
  front = await Front.start({ clock, overview: { now: async () => body }, whenDraining: draining.signal });
});
afterAll(() => front.stop(), 90_000);

function changed(depth: number): OverviewBody {
  return { ...OVERVIEW_EXAMPLE, queue: { ...OVERVIEW_EXAMPLE.queue, depth } };
}

/** A listener's own view of an overview that a test changes. */
function world() {
  const time = new ManualClock();
  const stopping = new AbortController();
  const state = { body: changed(0), looks: 0, ended: 0, isAdmitted: true };
  const overview = {
    now: async () => {
      state.looks += 1;
      return state.body;
    },
  };
  const live = new LiveOverview({ overview, clock: time, whenDraining: stopping.signal });
  const listen = () => live.listen({ isAdmitted: () => state.isAdmitted, onEnd: () => (state.ended += 1) });
  /** After two checks of the feed. */
  const looked = async () => {
    const from = state.looks;
    await eventually("it looked", () => {
      time.forward(2_000);
      return state.looks >= from + 2 ? true : undefined;
    });
  };
  return { live, listen, looked, state, time, stopping };
}

async function openReader(stream: Promise<ReadableStream<Uint8Array> | null>) {
  const reader = (await stream)?.getReader();
  if (reader === undefined) throw new Error("nobody may listen");
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? "end" : new TextDecoder().decode(value);
    },
    cancel: () => reader.cancel(),
  };
}

const depthIn = (event: string): unknown => JSON.parse(event.replace(/^data: /, "")).queue.depth;

test("a listener gets the overview at once, then what has changed, and the latest of what it missed", async () => {
  const { listen, looked, state } = world();
  const reader = await openReader(listen());
  expect(depthIn(await reader.next())).toBe(0);
  for (const depth of [1, 2, 3]) {
    state.body = changed(depth);
    await looked();
  }
  expect(depthIn(await reader.next())).toBe(3);
  const following = reader.next();
  // The time alone is no change, nor is a constantly changing figure.
  state.body = { ...changed(3), at: "2026-11-22T21:00:00.000Z" };
  await looked();
  state.body = changed(4);
  await looked();
  expect(depthIn(await following)).toBe(4);
});

test("while nothing changes a comment shows that the connection lives", async () => {
  const { listen, looked, time } = world();
  const reader = await openReader(listen());
  await reader.next();
  const following = reader.next();
  time.forward(15_000);
  await looked();
  expect(await following).toBe(": still here\n\n");
});

test("nothing is read while nobody listens, and many listeners cost one look", async () => {
  const { live, listen, looked, state, time } = world();
  const readers = await Promise.all(Array.from({ length: 20 }, () => openReader(listen())));
  const before = state.looks;
  await looked();
  expect(state.looks - before).toBeLessThan(20);
  for (const reader of readers) await reader.cancel();
  expect([live.listening, state.ended]).toEqual([0, 20]);
  const after = state.looks;
  for (let round = 0; round < 5; round += 1) {
    time.forward(10_000);
    await Bun.sleep(6);
  }
  expect(state.looks).toBe(after);
});

test("a listener that takes nothing for a minute is let go, and a hundred may listen at once", async () => {
  const { live, listen, looked, state } = world();
  const streams = await Promise.all(Array.from({ length: 100 }, () => listen()));
  expect(streams.every((stream) => stream !== null)).toBe(true);
  expect(await listen()).toBeNull();
  const reading = await openReader(Promise.resolve(streams[0] ?? null));
  for (let depth = 1; live.listening > 1; depth += 1) {
    expect(depth).toBeLessThan(60);
    state.body = changed(depth);
    await looked();
    await reading.next();
  }
  expect([live.listening, state.ended]).toEqual([1, 99]);
  expect(await listen()).not.toBeNull();
});

test("it ends when the operator is no longer admitted, or the process stops", async () => {
  const first = world();
  const reader = await openReader(first.listen());
  await reader.next();
  first.state.isAdmitted = false;
  const last = reader.next();
  await eventually("it is over", () => {
    first.time.forward(2_000);
    return first.live.listening === 0 ? true : undefined;
  });
  expect(await last).toBe("end");

  const second = world();
  const other = await openReader(second.listen());
  await other.next();
  second.stopping.abort();
  expect(await other.next()).toBe("end");
  expect(await second.listen()).toBeNull();
});

/** The events of a call, over a socket. */
async function follow(token: string) {
  const answer = await fetch(`${front.url}/dash/api/overview/live`, { headers: { authorization: `Bearer ${token}` } });
  return { answer, reader: await openReader(Promise.resolve(answer.body)) };
}

test("a deleted operator hears no more within seconds, others do, and a stop ends them all", async () => {
  const made = await front.operate("POST", "/operators", { name: "eve", role: "read" });
  const eve = await follow(String(made.body["token"]));
  const root = await follow(OPERATOR_TOKEN);
  expect([eve.answer.status, eve.answer.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  for (const { reader } of [eve, root]) expect(depthIn(await reader.next())).toBe(17);
  const [lastOfEve, nextOfRoot] = [eve.reader.next(), root.reader.next()];
  await front.operate("DELETE", `/operators/${String(made.body["operator_id"])}`);
  body = changed(18);
  clock.forward(2_000);
  expect(await lastOfEve).toBe("end");
  expect(depthIn(await nextOfRoot)).toBe(18);
  const lastOfRoot = root.reader.next();
  draining.abort();
  expect(await lastOfRoot).toBe("end");
  const refused = await front.operate("GET", "/overview/live");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
});
