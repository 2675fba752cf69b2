import type { ChannelName } from "../jobs/job.ts";

/** The levels that operators and the tenant are told of. */
export const GOVERNED_LEVELS = ["warned", "slowed", "held"] as const;
export type GovernedLevel = (typeof GOVERNED_LEVELS)[number];
/** The levels of a tenant's e-mail, mildest first. */
export const REPUTATION_LEVELS = ["good", ...GOVERNED_LEVELS] as const;
export type ReputationLevel = (typeof REPUTATION_LEVELS)[number];

/** `on`: acts; `warn`: only warns; `off`: is inactive. */
export const GOVERNOR_MODES = ["on", "warn", "off"] as const;
export type GovernorMode = (typeof GOVERNOR_MODES)[number];

/** A tenant's e-mail events of the last 24 hours, or since its release. */
export type MailCounts = {
  /** Taken by a mail server. */
  readonly sent: number;
  /** Refused for good, at once or after it was taken: the address does not exist. */
  readonly bounced: number;
  /** Reported as spam. */
  readonly complained: number;
};

/** Shares (0 to 1) above which each level begins. */
export type Thresholds = Readonly<Record<GovernedLevel, number>>;

export interface ReputationRules {
  /** The mode for tenants without one of their own. */
  readonly mode: GovernorMode;
  readonly bounces: Thresholds;
  readonly complaints: Thresholds;
}

/** The fewest e-mails that a rate is judged by. */
export const REPUTATION_FLOORS = { bounces: 200, complaints: 1_000 } as const;
export const REPUTATION_WINDOW_MS = 24 * 60 * 60 * 1000;
/** How long the process that changed a level has to report it before another one does. */
const TELL_MS = 2 * 60 * 1000;
const LEAST_PER_SECOND = 1;

/** The governor's state for a tenant; times in unix ms. */
export type Reputation = {
  readonly level: ReputationLevel;
  /** When the level began; null: it never changed. */
  readonly sinceMs: number | null;
  /** Since when the rates have been better than the level. */
  readonly goodSinceMs: number | null;
  /** Earlier events do not count. */
  readonly releasedAtMs: number | null;
  /** The tenant's own mode; null: the platform's. */
  readonly mode: GovernorMode | null;
  /** The counts that led to the level. */
  readonly counts: MailCounts | null;
  /** A change of the level that has to be reported, from this time on by any process. */
  readonly untold: { readonly from: ReputationLevel; readonly atMs: number; readonly isAudited: boolean } | null;
};

export const UNGOVERNED: Reputation = {
  level: "good",
  sinceMs: null,
  goodSinceMs: null,
  releasedAtMs: null,
  mode: null,
  counts: null,
  untold: null,
};

export const NO_MAIL: MailCounts = { sent: 0, bounced: 0, complained: 0 };

/** Sums of tenants' e-mail events. */
export interface MailHistory {
  /**
   * Returns the counts since `fromMs` (rounded down to the hour), but for tenants in `releases` not before their exact
   * time. Without `tenantId`: of all tenants that have a bounce or a complaint. Rejects with `UnavailableError` or
   * `TransportError`.
   */
  mailCounts(query: {
    readonly fromMs: number;
    readonly releases: ReadonlyMap<string, number>;
    readonly tenantId?: string;
  }): Promise<ReadonlyMap<string, MailCounts>>;
}

export interface Evidence {
  readonly counts: MailCounts;
  readonly rules: ReputationRules;
  readonly nowMs: number;
}

/**
 * Returns the state that the evidence leads to; the same object: no change.
 *
 * | rates | level |
 * |---|---|
 * | worse than the level | rises at once |
 * | better than the level for 24 hours | falls to that of the rates, except from `held` |
 * | the mode does not allow the level | falls at once to the highest that it allows |
 *
 * A tenant on hold sends no mail that could show that it has improved, so only an operator ends that.
 */
export function judge(state: Reputation, { counts, rules, nowMs }: Evidence): Reputation {
  const mode = state.mode ?? rules.mode;
  const found = limitLevel(findLevel(counts, rules), mode);
  const level = limitLevel(state.level, mode);
  if (isWorse(found, level)) return moveTo(state, found, { counts, nowMs });
  if (level !== state.level) return moveTo(state, level, { counts, nowMs });
  if (found === level || level === "held") return settle(state, nowMs);
  if (state.goodSinceMs === null) return { ...state, goodSinceMs: nowMs };
  return nowMs - state.goodSinceMs < REPUTATION_WINDOW_MS ? state : moveTo(state, found, { counts, nowMs });
}

/** Returns the state after an operator's release: only later events count. */
export function release(state: Reputation, nowMs: number): Reputation {
  const { level: from, mode, untold } = state;
  const news = from === "good" ? untold : { from, atMs: nowMs, isAudited: true };
  return { ...UNGOVERNED, mode, sinceMs: nowMs, releasedAtMs: nowMs, untold: news };
}

/** Returns the rates (0 to 1); null: there is no mail to compute them from. */
export function computeRates(counts: MailCounts): {
  readonly bounces: number | null;
  readonly complaints: number | null;
} {
  const { sent, bounced, complained } = counts;
  // Mail that was refused at once is not in `sent`.
  const tried = sent + bounced;
  return { bounces: tried === 0 ? null : bounced / tried, complaints: sent === 0 ? null : complained / sent };
}

/** Returns the level of the worse of the two rates. A rate below its floor counts as good. */
export function findLevel(counts: MailCounts, { bounces, complaints }: ReputationRules): ReputationLevel {
  const rates = computeRates(counts);
  const byBounces =
    counts.sent + counts.bounced < REPUTATION_FLOORS.bounces ? "good" : levelAt(rates.bounces ?? 0, bounces);
  const byComplaints = counts.sent < REPUTATION_FLOORS.complaints ? "good" : levelAt(rates.complaints ?? 0, complaints);
  return isWorse(byBounces, byComplaints) ? byBounces : byComplaints;
}

/**
 * Returns the tenant's pace on a channel, in deliveries per second; null: unlimited. Slowed e-mail has a tenth of the
 * plan's pace, but one a second at least if the plan allows that.
 */
export function paceFor(
  {
    plan,
    reputation,
  }: { readonly plan: { readonly deliveriesPerSecond: number | null }; readonly reputation?: GovernedLevel },
  channel: ChannelName,
): number | null {
  const { deliveriesPerSecond: perSecond } = plan;
  if (channel !== "email" || reputation === undefined || reputation === "warned") return perSecond;
  const slow = Math.max(LEAST_PER_SECOND, (perSecond ?? 0) / 10);
  return perSecond === null ? slow : Math.min(perSecond, slow);
}

function levelAt(rate: number, thresholds: Thresholds): ReputationLevel {
  if (rate > thresholds.held) return "held";
  if (rate > thresholds.slowed) return "slowed";
  return rate > thresholds.warned ? "warned" : "good";
}

function limitLevel(level: ReputationLevel, mode: GovernorMode): ReputationLevel {
  if (mode === "off") return "good";
  return mode === "warn" && isWorse(level, "warned") ? "warned" : level;
}

function isWorse(one: ReputationLevel, other: ReputationLevel): boolean {
  return REPUTATION_LEVELS.indexOf(one) > REPUTATION_LEVELS.indexOf(other);
}

function moveTo(
  state: Reputation,
  level: ReputationLevel,
  { counts, nowMs }: Pick<Evidence, "counts" | "nowMs">,
): Reputation {
  const untold = { from: state.level, atMs: nowMs + TELL_MS, isAudited: false };
  return { ...state, level, sinceMs: nowMs, goodSinceMs: null, counts, untold };
}

/** Forgets what no longer matters. */
function settle(state: Reputation, nowMs: number): Reputation {
  const { level, mode, releasedAtMs, untold } = state;
  const isOver = releasedAtMs === null || nowMs - releasedAtMs > REPUTATION_WINDOW_MS;
  if (level === "good" && mode === null && untold === null && isOver) return UNGOVERNED;
  return state.goodSinceMs === null ? state : { ...state, goodSinceMs: null };
}
