import { describe, expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import {
  type ActorEvent,
  ActorState,
  decide,
  hasRoom,
  isDone,
  type Now,
  putBack,
} from "../../../src/engine/dispatch/actor-decision.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { aTenant } from "../../support/tenants.ts";

/** The UTC day has twelve hours left. */
const NOW: Now = { unixMs: Date.UTC(2026, 5, 1, 12), monotonicMs: 5_000 };
const HOUR_MS = 60 * 60_000;
const [OLD_MS, PURGED_MS] = [NOW.unixMs - 10_000, NOW.unixMs - 5_000];

const tenant = steered({});
const paused = steered({ paused: new Set(["email"]) });
const purging = steered({ purgedBefore: new Map([["email", PURGED_MS]]) });
const both = steered({ paused: new Set(["email"]), purgedBefore: new Map([["email", PURGED_MS]]) });

const running = (more = true) => ({ kind: "running", lastRead: "7-0", more }) as const;
const resting = (more = true, isStale = false) => ({ kind: "resting", lastRead: "7-0", more, isStale }) as const;

function steered(steering: Partial<NonNullable<Tenant["steering"]>>): Tenant {
  const none = { paused: new Set(), held: new Set(), purgedBefore: new Map(), resumedAt: new Map() };
  return aTenant({ steering: { ...none, ...steering } as NonNullable<Tenant["steering"]> });
}

/** Its entry has this number; its id contains the time of its acceptance. */
function job(
  entry: number,
  { atMs = NOW.unixMs - 1_000, ...members }: Partial<QueuedJob> & { atMs?: number } = {},
): QueuedJob {
  const time = atMs.toString(16).padStart(12, "0");
  const jobId = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(entry).padStart(12, "0")}`;
  const common = { tenantId: "acme", channel: "email", attempts: 0, recipient: "ann@example.com" } as const;
  return { ...common, jobId, entryId: `${entry}-0`, suppressed: null, payload: "{}", ...members };
}

const jobs = (count: number) => Array.from({ length: count }, (_, i) => job(i + 1));
const buildState = (state: Partial<ActorState>): ActorState => ({ ...new ActorState(), ...state });
const found = (known: Tenant | null, mayEnd = true): ActorEvent => ({
  kind: "found",
  tenant: known,
  channel: "email",
  mayEnd,
});
const read = (left = Number.POSITIVE_INFINITY, bytesRoom = 10_000): ActorEvent => ({ kind: "read", left, bytesRoom });
const offered = (event: Partial<ActorEvent & { kind: "offered" }> = {}): ActorEvent => ({
  kind: "offered",
  left: Number.POSITIVE_INFINITY,
  isOld: false,
  planMs: 0,
  ...event,
});

interface Row {
  readonly title: string;
  readonly state: Partial<ActorState>;
  readonly event: ActorEvent;
  readonly change?: Partial<ActorState>;
  readonly actions?: readonly unknown[];
}

/** Members that a row does not name stay unchanged, and no other action follows. */
function holds({ state, event, change = {}, actions = [] }: Row): void {
  const before = buildState(state);
  const copy = structuredClone(before);
  const decision = decide(before, event, NOW);
  expect(before).toEqual(copy);
  expect(buildState({ ...before, ...decision.change })).toEqual(buildState({ ...before, ...change }));
  expect(decision.actions).toEqual([...actions] as typeof decision.actions);
}

const [oldJob, newJob] = [job(1, { atMs: OLD_MS }), job(2)];
const [over, reported] = [job(8, { suppressed: "bounced" }), job(9, { isReported: true })];
const UNSEEN = { isSifted: false, heldUntilMs: null };
const GIVEN_UP = expect.objectContaining({ kind: "give_up", settlement: expect.objectContaining({ job: oldJob }) });
const LEAVES = { kind: "leave", forMs: engineLimits.pausedLookMs };
const RESTED = {
  phase: { kind: "resting", lastRead: null, more: true, isStale: false },
  waiting: [],
  open: 0,
  openBytes: 0,
} as const;

describe("jobs that were pulled", () => {
  const table: readonly Row[] = [
    {
      title: "wait behind the others, and the next pull begins after the last",
      state: { waiting: [oldJob], open: 3, openBytes: 6, pullAskedMs: 1, heldUntilMs: 5 },
      event: { kind: "pulled", jobs: [newJob, job(5)], more: false },
      change: {
        ...UNSEEN,
        phase: { kind: "running", lastRead: "5-0", more: false },
        pullAskedMs: null,
        waiting: [oldJob, newJob, job(5)],
        open: 5,
        openBytes: 10,
      },
    },
    {
      title: "end at once if they are suppressed or reported",
      state: { pullAskedMs: 1 },
      event: { kind: "pulled", jobs: [over, reported], more: true },
      change: { phase: { kind: "running", lastRead: "9-0", more: true }, pullAskedMs: null, open: 2, openBytes: 4 },
      actions: [
        { kind: "end", job: over },
        { kind: "end", job: reported },
      ],
    },
    {
      title: "are left where they are by an actor that rests, unless they are purged",
      state: { phase: resting(), pullAskedMs: 1, purgedBeforeMs: PURGED_MS },
      event: { kind: "pulled", jobs: [oldJob, newJob], more: true },
      change: {
        ...UNSEEN,
        phase: { ...resting(), lastRead: "2-0" },
        pullAskedMs: null,
        waiting: [oldJob],
        open: 1,
        openBytes: 2,
      },
    },
    {
      title: "none: the place in the tenant queue stays",
      state: { phase: running(), pullAskedMs: 1 },
      event: { kind: "pulled", jobs: [], more: false },
      change: { phase: running(false), pullAskedMs: null },
    },
  ];
  test.each(table)("$title", holds);
});

describe("a tenant that is known", () => {
  const waits = { waiting: [oldJob, newJob], open: 2, openBytes: 4 };
  const purge = { purgedBeforeMs: PURGED_MS };
  const table: readonly Row[] = [
    { title: "changes nothing if no operator has decided anything", state: waits, event: found(tenant) },
    { title: "that is gone is neither paused nor purged", state: waits, event: found(null) },
    {
      title: "lets its purged jobs end",
      state: waits,
      event: found(purging),
      change: { ...purge, waiting: [newJob] },
      actions: [GIVEN_UP],
    },
    {
      title: "lets them end once the lease is sure",
      state: waits,
      event: found(purging, false),
      change: { ...purge, isSifted: false },
    },
    { title: "has its waiting jobs compared once", state: { ...waits, ...purge }, event: found(purging) },
    {
      title: "has those compared that joined since",
      state: { ...waits, ...purge, isSifted: false },
      event: found(purging),
      change: { waiting: [newJob], isSifted: true },
      actions: [GIVEN_UP],
    },
    {
      title: "that is purged anew has passed purged jobs while it rested",
      state: { phase: resting() },
      event: found(purging),
      change: { ...purge, phase: resting(true, true) },
    },
    {
      title: "that is paused leaves its waiting jobs to the tenant queue",
      state: waits,
      event: found(paused),
      change: { ...RESTED, hold: { kind: "paused" } },
      actions: [LEAVES],
    },
    {
      title: "that is paused during a pull knows that its place in the tenant queue is stale",
      state: { ...waits, pullAskedMs: 1 },
      event: found(paused),
      change: { ...RESTED, phase: { ...RESTED.phase, isStale: true }, hold: { kind: "paused" } },
      actions: [LEAVES],
    },
    {
      title: "that is paused keeps its waiting jobs while one is in flight",
      state: { ...waits, open: 3, delivering: 1 },
      event: found(paused),
      change: { hold: { kind: "paused" } },
      actions: [LEAVES],
    },
    {
      title: "that is paused and purged keeps the others until the purged ones have ended",
      state: waits,
      event: found(both),
      change: { ...purge, waiting: [newJob], hold: { kind: "paused" } },
      actions: [GIVEN_UP, LEAVES],
    },
    {
      title: "that is paused with nothing to read does not rest: it can end",
      state: { phase: running(false) },
      event: found(paused),
      change: { hold: { kind: "paused" } },
      actions: [LEAVES],
    },
    {
      title: "that is paused still looks again, and goes on resting",
      state: { phase: resting(), hold: { kind: "paused" } },
      event: found(paused),
      actions: [LEAVES],
    },
    {
      title: "that is no longer paused is not held up",
      state: { phase: resting(), hold: { kind: "paused" } },
      event: found(tenant),
      change: { hold: { kind: "none" } },
    },
  ];
  test.each(table)("$title", holds);
});

describe("an actor that may read", () => {
  const reads = (
    after: string | null,
    entriesMax: number = engineLimits.pullEntriesPerTenantQueueMax,
    bytesMax = 10_000,
  ) => ({
    kind: "read",
    pull: { after, entriesMax, bytesMax },
  });
  const spentDay = { kind: "wait", forMs: engineLimits.planLookMs };
  const recent = { purgedBeforeMs: PURGED_MS };
  const sweeping = { kind: "resting", lastRead: null, more: true, isStale: false } as const;
  const table: readonly Row[] = [
    {
      title: "reads from the start while none of its jobs is open",
      state: { phase: running() },
      event: read(),
      actions: [reads(null)],
    },
    {
      title: "reads on while jobs are open",
      state: { phase: running(), open: 3 },
      event: read(),
      actions: [reads("7-0")],
    },
    {
      title: "reads no more than may be open",
      state: { phase: running(), open: engineLimits.tenantQueueOpenMax - 5 },
      event: read(),
      actions: [reads("7-0", 5)],
    },
    {
      title: "reads no more than the day lets it start beside those that wait",
      state: { phase: running(), waiting: jobs(3), open: 3 },
      event: read(10),
      actions: [reads("7-0", 7)],
    },
    {
      title: "reads nothing if all of the day's go to those that wait",
      state: { waiting: jobs(3), open: 3 },
      event: read(3),
    },
    {
      title: "reads a single entry if the process is full and it has none",
      state: { phase: running() },
      event: read(Number.POSITIVE_INFINITY, -5),
      actions: [reads(null, 1, 1)],
    },
    {
      title: "reads nothing if the process is full and it has some",
      state: { open: 1 },
      event: read(Number.POSITIVE_INFINITY, 0.5),
    },
    {
      title: "looks again within a minute once the day is spent",
      state: { phase: running() },
      event: read(0),
      change: { hold: { kind: "day_spent" } },
      actions: [spentDay],
    },
    {
      title: "is no longer held up by a spent day",
      state: { phase: running(), hold: { kind: "day_spent" } },
      event: read(5),
      change: { hold: { kind: "none" } },
      actions: [reads(null, 5)],
    },
    {
      title: "sweeps after a purge once the day is spent",
      state: { ...recent, phase: running() },
      event: read(0),
      change: { hold: { kind: "day_spent" }, phase: sweeping },
      actions: [spentDay, reads(null)],
    },
    {
      title: "begins no sweep while what it has read is unsettled",
      state: { ...recent, open: 1 },
      event: read(0),
      change: { hold: { kind: "day_spent" } },
      actions: [spentDay],
    },
    {
      title: "sweeps on after a purge while it is paused",
      state: { ...recent, phase: resting(), hold: { kind: "paused" } },
      event: read(0),
      actions: [reads("7-0")],
    },
    {
      title: "sweeps no further than to the end",
      state: { ...recent, phase: resting(false), hold: { kind: "paused" } },
      event: read(0),
    },
    {
      title: "sweeps again from the start if it may have passed purged jobs",
      state: { ...recent, phase: resting(false, true), hold: { kind: "paused" } },
      event: read(0),
      change: { phase: sweeping },
      actions: [reads(null)],
    },
    {
      title: "waits with that until those that it has read are settled",
      state: { ...recent, phase: resting(false, true), hold: { kind: "paused" }, open: 1 },
      event: read(0),
    },
    {
      title: "sweeps for a day only",
      state: { phase: resting(), purgedBeforeMs: NOW.unixMs - engineLimits.purgeSweepMs - 1, hold: { kind: "paused" } },
      event: read(0),
    },
    {
      title: "reads nothing while it is paused and was never purged",
      state: { phase: resting(), hold: { kind: "paused" } },
      event: read(0),
    },
    {
      title: "runs again from the start after its rest",
      state: { phase: resting(false) },
      event: read(),
      change: { phase: { kind: "running", lastRead: null, more: true } },
      actions: [reads(null)],
    },
    {
      title: "rests on until the purged ones that it has read are settled",
      state: { phase: resting(), open: 1 },
      event: read(),
    },
  ];
  test.each(table)("$title", holds);

  test("has room unless it pulls, has enough waiting or open, or nothing is left to read", () => {
    const rows: readonly [Partial<ActorState>, boolean][] = [
      [{}, true],
      [{ pullAskedMs: 0 }, false],
      [{ waiting: jobs(engineLimits.refillEntries - 1) }, true],
      [{ waiting: jobs(engineLimits.refillEntries) }, false],
      [{ open: engineLimits.tenantQueueOpenMax }, false],
      [{ phase: running(false) }, false],
      [{ phase: resting(false) }, true],
      [{ phase: { kind: "closed", lastRead: null, more: false } }, false],
    ];
    for (const [state, expected] of rows) expect(hasRoom(buildState(state))).toBe(expected);
  });

  test("is done when nothing is open or left to read, but not while it rests", () => {
    const rows: readonly [Partial<ActorState>, boolean][] = [
      [{ phase: running(false) }, true],
      [{ phase: running(true) }, false],
      [{ phase: running(false), open: 1 }, false],
      [{ phase: resting(false) }, false],
    ];
    for (const [state, expected] of rows) expect(isDone(buildState(state))).toBe(expected);
  });
});

describe("a slot for the next job", () => {
  const START = { kind: "start" };
  const table: readonly Row[] = [
    { title: "is taken", state: {}, event: offered(), actions: [START] },
    { title: "is taken for an old job", state: {}, event: offered({ isOld: true }), actions: [START] },
    {
      title: "is taken once no pace holds it up",
      state: { hold: { kind: "throttled", untilMs: 1 } },
      event: offered({ left: 1 }),
      change: { hold: { kind: "none" } },
      actions: [START],
    },
    {
      title: "is not taken when the day is spent",
      state: {},
      event: offered({ left: 0, planMs: 70 }),
      change: { hold: { kind: "day_spent" } },
      actions: [{ kind: "wait", forMs: engineLimits.planLookMs }],
    },
    {
      title: "is not taken for an old job that the queue was silent about",
      state: { unansweredUntilMs: NOW.monotonicMs + 300 },
      event: offered({ isOld: true }),
      actions: [{ kind: "wait", forMs: 300 }],
    },
    {
      title: "is taken for a new one beside it",
      state: { unansweredUntilMs: NOW.monotonicMs + 300 },
      event: offered(),
      actions: [START],
    },
    {
      title: "is not taken before the plan's pace allows it",
      state: {},
      event: offered({ planMs: 70 }),
      change: { hold: { kind: "plan_pace", untilMs: NOW.monotonicMs + 70 } },
      actions: [{ kind: "wait", forMs: 70 }],
    },
    {
      title: "is looked for again within a minute, as the plan may have become faster",
      state: {},
      event: offered({ planMs: HOUR_MS }),
      change: { hold: { kind: "plan_pace", untilMs: NOW.monotonicMs + HOUR_MS } },
      actions: [{ kind: "wait", forMs: engineLimits.planLookMs }],
    },
    {
      title: "is not taken before the channel's pace allows it",
      state: {},
      event: { kind: "throttled", forMs: 250 },
      change: { hold: { kind: "throttled", untilMs: NOW.monotonicMs + 250 } },
      actions: [{ kind: "wait", forMs: 250 }],
    },
  ];
  test.each(table)("$title", holds);
});

describe("a relay that is away", () => {
  const holdMs = 2 * HOUR_MS;
  const holding = aTenant({ plan: { ...aTenant().plan, holdMs } });
  const [first, second] = [job(1, { atMs: NOW.unixMs - holdMs }), job(2, { atMs: NOW.unixMs - holdMs + 1 })];
  const away = (awayMs: number): ActorEvent => ({ kind: "away", tenant: holding, why: "it is away", awayMs });
  const waits = { waiting: [first, second], open: 2 };
  const table: readonly Row[] = [
    {
      title: "ends the jobs whose hold is over",
      state: waits,
      event: away(HOUR_MS),
      change: { waiting: [second] },
      actions: [expect.objectContaining({ kind: "give_up", settlement: expect.objectContaining({ job: first }) })],
    },
    {
      title: "ends none before it was away for an hour",
      state: waits,
      event: away(HOUR_MS - 1),
      change: { heldUntilMs: NOW.unixMs },
    },
    {
      title: "ends none before its hold is over",
      state: { ...waits, waiting: [second] },
      event: away(HOUR_MS),
      change: { heldUntilMs: NOW.unixMs + 1 },
    },
  ];
  test.each(table)("$title", holds);
});

test("a job that is put back keeps its place, and a probe's goes to the end", () => {
  const list = [job(9), job(12)];
  expect(putBack(list, job(10), false).map(({ entryId }) => entryId)).toEqual(["9-0", "10-0", "12-0"]);
  expect(putBack(list, job(8), false).map(({ entryId }) => entryId)).toEqual(["8-0", "9-0", "12-0"]);
  expect(putBack(list, job(10), true).map(({ entryId }) => entryId)).toEqual(["9-0", "12-0", "10-0"]);
});
