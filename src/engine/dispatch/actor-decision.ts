import { acceptedMs } from "../../domain/ids.ts";
import type { ChannelName, QueuedJob } from "../../domain/jobs/job.ts";
import type { Settlement, TenantQueuePull } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { untilNextUtcDayMs } from "../../domain/tenants/warm-up.ts";
import { engineLimits } from "../limits.ts";
import { PULL_BYTES_MAX } from "./backlog.ts";
import { gaveUpHeld, heldUntilMs, outageMsMin } from "./held-jobs.ts";
import { isPaused, purged, purgedBeforeMs } from "./steered-jobs.ts";

/** How an actor reads its tenant queue: the last entry read, and whether unread ones may follow. */
export type Phase =
  /** While running, it keeps every job that it reads. */
  | { readonly kind: "running" | "closed"; readonly lastRead: string | null; readonly more: boolean }
  /**
   * It has left its unsettled jobs in the tenant queue. It reads on only for purged ones, and from the start once it
   * runs again. `isStale`: purged ones may be among the entries that it has passed.
   */
  | { readonly kind: "resting"; readonly lastRead: string | null; readonly more: boolean; readonly isStale: boolean };

/** Why its next job did not start at the last check. `day_spent`: the allowance is used up, or not known yet. */
export type Hold =
  | { readonly kind: "none" | "paused" | "day_spent" }
  /** Until then (monotonic ms). */
  | { readonly kind: "plan_pace" | "throttled"; readonly untilMs: number };

export class ActorState {
  readonly phase: Phase = { kind: "running", lastRead: null, more: true };
  readonly hold: Hold = { kind: "none" };
  /** In the order of their starts. */
  readonly waiting: readonly QueuedJob[] = [];
  readonly delivering: number = 0;
  /** Jobs that are waiting, being delivered or being settled; and the bytes of their payloads. */
  readonly open: number = 0;
  readonly openBytes: number = 0;
  /** When the pull in flight was requested (monotonic ms); null: none is. */
  readonly pullAskedMs: number | null = null;
  /** Jobs accepted before this time (unix ms) are purged, as of the last tenant lookup. */
  readonly purgedBeforeMs: number | null = null;
  /** No waiting job is purged. */
  readonly isSifted: boolean = true;
  /** No old job starts before this time (monotonic): the queue did not answer whether it may still be sent. */
  readonly unansweredUntilMs: number = 0;
  /** No hold of a waiting job ends before this time (unix ms); null: not determined since the last one joined. */
  readonly heldUntilMs: number | null = null;
}

export type ActorEvent =
  | { readonly kind: "pulled"; readonly jobs: readonly QueuedJob[]; readonly more: boolean }
  /** The tenant was looked up (null: it is gone). Comes before "read" and "offered". `mayEnd`: jobs may end. */
  | { readonly kind: "found"; readonly tenant: Tenant | null; readonly channel: ChannelName; readonly mayEnd: boolean }
  /** It may read. `left`: deliveries that the day's allowance still permits, including those of waiting jobs. */
  | { readonly kind: "read"; readonly left: number; readonly bytesRoom: number }
  /** It may start its next job. `planMs`: milliseconds until the plan's pace permits that. */
  | { readonly kind: "offered"; readonly left: number; readonly isOld: boolean; readonly planMs: number }
  | { readonly kind: "throttled"; readonly forMs: number }
  /** The relay of all waiting jobs has been away for this long. */
  | { readonly kind: "away"; readonly tenant: Tenant; readonly why: string; readonly awayMs: number };

export type Action =
  /** Its end is known, so it needs no slot. */
  | { readonly kind: "end"; readonly job: QueuedJob }
  | { readonly kind: "give_up"; readonly settlement: Settlement }
  /** Checks again after this time; "leave": and does not compete for a slot until then. */
  | { readonly kind: "wait" | "leave"; readonly forMs: number }
  | { readonly kind: "read"; readonly pull: Omit<TenantQueuePull, "tenantQueue"> }
  /** The next job starts, if its channel permits it. */
  | { readonly kind: "start" };

/** The new state, and the actions that follow. */
export interface Decision {
  readonly change: Partial<ActorState>;
  readonly actions: readonly Action[];
}

export interface Now {
  readonly unixMs: number;
  readonly monotonicMs: number;
}

/** The members that are unknown for a list that a job has just joined. */
export const UNSEEN = { isSifted: false, heldUntilMs: null } as const;
const NOTHING: Decision = { change: {}, actions: [] };
const NO_HOLD: Hold = { kind: "none" };

export function decide(state: ActorState, event: ActorEvent, now: Now): Decision {
  switch (event.kind) {
    case "pulled":
      return keep(state, event);
    case "found":
      return steer(state, event);
    case "read":
      return read(state, event, now);
    case "offered":
      return start(state, event, now);
    case "throttled":
      return wait(event.forMs, { kind: "throttled", untilMs: now.monotonicMs + event.forMs });
    case "away":
      return giveUpHeld(state, event, now);
  }
}

/** Whether it would read, provided that its tenant permits it. */
export function hasRoom({ phase, pullAskedMs, waiting, open }: ActorState): boolean {
  if (pullAskedMs !== null || (!phase.more && phase.kind !== "resting")) return false;
  return waiting.length < engineLimits.refillEntries && open < engineLimits.tenantQueueOpenMax;
}

/** Whether no job is open, and there are none to read, now or later. */
export function isDone({ phase, open }: ActorState): boolean {
  return open === 0 && !phase.more && phase.kind !== "resting";
}

/** Returns the list with the job before the ones read after it, or at the end. */
export function putBack(waiting: readonly QueuedJob[], job: QueuedJob, isLast: boolean): readonly QueuedJob[] {
  const at = isLast ? -1 : waiting.findIndex((other) => isReadBefore(job, other));
  return waiting.toSpliced(at === -1 ? waiting.length : at, 0, job);
}

function keep(state: ActorState, { jobs, more }: ActorEvent & { kind: "pulled" }): Decision {
  const { phase, purgedBeforeMs } = state;
  const kept = phase.kind === "running" ? jobs : jobs.filter(isPurgedBefore(purgedBeforeMs));
  const isOver = ({ suppressed, isReported }: QueuedJob) => suppressed !== null || isReported === true;
  const joining = kept.filter((job) => !isOver(job));
  return {
    change: {
      phase: { ...phase, lastRead: jobs.at(-1)?.entryId ?? phase.lastRead, more },
      pullAskedMs: null,
      open: state.open + kept.length,
      openBytes: kept.reduce((bytes, { payload }) => bytes + payload.length, state.openBytes),
      ...(joining.length > 0 && { ...UNSEEN, waiting: [...state.waiting, ...joining] }),
    },
    actions: kept.filter(isOver).map((job) => ({ kind: "end", job })),
  };
}

/** Carries out operators' decisions about the tenant's jobs. */
function steer(state: ActorState, { tenant, channel, mayEnd }: ActorEvent & { kind: "found" }): Decision {
  const { hold, waiting } = state;
  const beforeMs = purgedBeforeMs(tenant, channel);
  const isNews = beforeMs !== state.purgedBeforeMs;
  const isToPause = isPaused(tenant, channel);
  if (!isNews && state.isSifted && !isToPause && hold.kind !== "paused") return NOTHING;
  const isToSift = isNews || !state.isSifted;
  const isEnding = isToSift && mayEnd ? isPurgedBefore(beforeMs) : () => false;
  const change = {
    phase: isNews && state.phase.kind === "resting" ? { ...state.phase, isStale: true } : state.phase,
    hold: hold.kind === "paused" ? NO_HOLD : hold,
    waiting: waiting.filter((job) => !isEnding(job)),
    purgedBeforeMs: beforeMs,
    isSifted: !isToSift || mayEnd || beforeMs === null || waiting.length === 0,
  };
  const actions: readonly Action[] = waiting
    .filter(isEnding)
    .map((job) => ({ kind: "give_up", settlement: purged(job) }));
  if (!isToPause) return { change, actions };
  return {
    change: { ...change, hold: { kind: "paused" }, ...(mayRest({ ...change, open: state.open }) && rested(state)) },
    actions: [...actions, { kind: "leave", forMs: engineLimits.pausedLookMs }],
  };
}

function read(state: ActorState, { left, bytesRoom }: ActorEvent & { kind: "read" }, now: Now): Decision {
  const { open, waiting } = state;
  const isStill = state.hold.kind === "paused";
  const { change, actions } = isStill ? NOTHING : spend(state, left, now);
  const startRoom = isStill ? 0 : left - waiting.length;
  const phase = startRoom > 0 ? runOn(state) : sweep(state, now);
  const bytesMax = Math.min(PULL_BYTES_MAX, Math.floor(bytesRoom));
  if (phase === null || (bytesMax <= 0 && open > 0)) return { change, actions };
  const { pullEntriesPerTenantQueueMax, tenantQueueOpenMax } = engineLimits;
  const room = Math.min(pullEntriesPerTenantQueueMax, tenantQueueOpenMax - open, startRoom > 0 ? startRoom : Infinity);
  const pull = {
    after: open > 0 || phase.kind === "resting" ? phase.lastRead : null,
    // A single entry if the process's backlog is already full.
    entriesMax: bytesMax > 0 ? room : 1,
    bytesMax: Math.max(1, bytesMax),
  };
  return { change: { ...change, phase }, actions: [...actions, { kind: "read", pull }] };
}

/** Reads jobs that it can start; null: jobs that it read while it rested have still to end. */
function runOn({ phase, open }: ActorState): Phase | null {
  if (phase.kind !== "resting") return phase;
  return open > 0 ? null : { kind: "running", lastRead: null, more: true };
}

/** Reads only purged jobs, because no other may start; null: there are none to read. */
function sweep({ phase, open, waiting, purgedBeforeMs: beforeMs }: ActorState, { unixMs }: Now): Phase | null {
  if (beforeMs === null || unixMs - beforeMs > engineLimits.purgeSweepMs || waiting.length > 0) return null;
  if (phase.kind === "resting" && !phase.isStale) return phase.more ? phase : null;
  // Jobs that were read and not settled would be read a second time.
  return open > 0 ? null : { kind: "resting", lastRead: null, more: true, isStale: false };
}

function start(state: ActorState, { left, isOld, planMs }: ActorEvent & { kind: "offered" }, now: Now): Decision {
  const unansweredMs = isOld ? state.unansweredUntilMs - now.monotonicMs : 0;
  if (left === 0) return spend(state, left, now);
  if (unansweredMs > 0) return wait(unansweredMs, NO_HOLD);
  if (planMs === 0) return { change: { hold: NO_HOLD }, actions: [{ kind: "start" }] };
  const hold: Hold = { kind: "plan_pace", untilMs: now.monotonicMs + planMs };
  return wait(Math.min(planMs, engineLimits.planLookMs), hold);
}

function spend({ hold }: ActorState, left: number, { unixMs }: Now): Decision {
  if (left === 0) return wait(Math.min(untilNextUtcDayMs(unixMs), engineLimits.planLookMs), { kind: "day_spent" });
  return hold.kind === "day_spent" ? { change: { hold: NO_HOLD }, actions: [] } : NOTHING;
}

function wait(forMs: number, hold: Hold): Decision {
  return { change: { hold }, actions: [{ kind: "wait", forMs }] };
}

function giveUpHeld(state: ActorState, { tenant, why, awayMs }: ActorEvent & { kind: "away" }, now: Now): Decision {
  const { waiting } = state;
  const { holdMs } = tenant.plan;
  const untilMs = state.heldUntilMs ?? Math.min(...waiting.map((job) => heldUntilMs(job, tenant)));
  if (now.unixMs < untilMs || awayMs < outageMsMin(holdMs)) return { change: { heldUntilMs: untilMs }, actions: [] };
  const isSpent = (job: QueuedJob) => now.unixMs >= heldUntilMs(job, tenant);
  return {
    change: { waiting: waiting.filter((job) => !isSpent(job)), heldUntilMs: null },
    actions: waiting.filter(isSpent).map((job) => ({ kind: "give_up", settlement: gaveUpHeld(job, why, holdMs) })),
  };
}

/** Whether the waiting jobs can be left to the tenant queue: a job in flight, read again, could start twice. */
function mayRest({ phase, open, waiting }: Pick<ActorState, "phase" | "open" | "waiting">): boolean {
  return open <= waiting.length && (open > 0 || (phase.kind === "running" && phase.more));
}

function rested({ pullAskedMs }: ActorState): Partial<ActorState> {
  const phase: Phase = { kind: "resting", lastRead: null, more: true, isStale: pullAskedMs !== null };
  return { phase, waiting: [], open: 0, openBytes: 0 };
}

function isPurgedBefore(beforeMs: number | null): (job: QueuedJob) => boolean {
  return (job) => beforeMs !== null && acceptedMs(job) < beforeMs;
}

/** Entry ids have the form `<n>-<m>`, and rise. */
function isReadBefore({ entryId: a }: QueuedJob, { entryId: b }: QueuedJob): boolean {
  return a.length === b.length ? a < b : a.length < b.length;
}
