import { expect, test } from "bun:test";
import { Backlog, PULL_BYTES_MAX } from "../../src/actors/backlog.ts";
import type { Lease, PullRequest } from "../../src/core/journal.ts";
import { limits } from "../../src/core/limits.ts";
import { MemoryJournal } from "../simulation/memory-journal.ts";
import { REFUSES, RelayWorld, TAKES } from "./relay-world.ts";

const LARGE = "x".repeat(200 * 1024);

test("a tenant holds no more than its share, and what it leaves is never nothing", () => {
  const backlog = new Backlog();
  for (let tenant = 0; tenant < 5_000; tenant += 1) {
    const room = backlog.roomFor(0);
    expect(room).toBeGreaterThan(0);
    expect(room).toBeLessThanOrEqual(8 * 1024 * 1024);
    backlog.add(room);
  }
  expect(backlog.bytes).toBeLessThan(limits.backlogBytesMax);
});

test("few pulls are in flight at one time, and who waits for its turn gets it or hears of its end", async () => {
  const backlog = new Backlog();
  const going = new AbortController();
  for (let i = 0; i < 8; i += 1) expect(await backlog.beginPull(going.signal)).toBe(true);
  const ending = new AbortController();
  const turns: boolean[] = [];
  const given = backlog.beginPull(ending.signal).then((turn) => turns.push(turn));
  const next = backlog.beginPull(going.signal).then((turn) => turns.push(turn));
  ending.abort();
  await given;
  expect(turns).toEqual([false]);
  backlog.endPull();
  await next;
  expect(turns).toEqual([false, true]);
});

test("the bytes that are held are those of open jobs, while they are held up, start, end and are dropped", async () => {
  let isUp = false;
  const world = new RelayWorld(() => (isUp ? TAKES : REFUSES));
  const tenants = Array.from({ length: 3 }, (_, i) => world.tenant(`t-${i}`));
  const jobs = tenants.map((tenant) => world.accept(tenant, 100, { payload: LARGE }));
  const dispatcher = world.start();
  await world.advance(30_000);
  expect(dispatcher.backlogBytes).toBeGreaterThan(3 * 4 * 1024 * 1024);
  // One more pull than its share at most.
  expect(dispatcher.backlogBytes).toBeLessThan(3 * (8 * 1024 * 1024 + PULL_BYTES_MAX));
  expect(dispatcher.backlogBytes % LARGE.length).toBe(0);
  isUp = true;
  await world.advance(60_000);
  for (const [i, tenant] of tenants.entries()) {
    expect(world.statuses(tenant, jobs[i] ?? [])).toEqual({ "success after 1": 100 });
  }
  expect(dispatcher.backlogBytes).toBe(0);
  isUp = false;
  for (const tenant of tenants) world.accept(tenant, 20, { payload: LARGE });
  await world.advance(10_000);
  expect(dispatcher.backlogBytes).toBeGreaterThan(0);
  await world.stop(dispatcher);
  expect(dispatcher.backlogBytes).toBe(0);
}, 30_000);

test("large messages of many tenants pass through small pulls, and keep no small one from its turn", async () => {
  const world = new RelayWorld(() => TAKES);
  const requests: PullRequest[] = [];
  const journal = new (class extends MemoryJournal {
    override async pull(lease: Lease, request: PullRequest) {
      requests.push(request);
      return super.pull(lease, request);
    }
  })(world.state);
  const large = Array.from({ length: 60 }, (_, i) => world.tenant(`large-${i}`));
  for (const tenant of large) world.accept(tenant, 20, { payload: LARGE });
  const small = world.tenant("small");
  const dispatcher = world.start({ journal });
  const jobs: string[] = [];
  for (let i = 0; i < 50; i += 1) {
    jobs.push(...world.accept(small));
    await world.advance(100);
  }
  await world.advance(60_000);
  expect(world.longestWaitMs(jobs)).toBeLessThan(1_000);
  expect(new Set(world.channel.calls.map(({ job }) => job.jobId)).size).toBe(60 * 20 + 50);
  expect(Math.max(...requests.map(({ bytesMax }) => bytesMax))).toBe(PULL_BYTES_MAX);
  expect(dispatcher.backlogBytes).toBe(0);
  await world.stop(dispatcher);
}, 30_000);
