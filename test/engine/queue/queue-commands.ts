import fc from "fast-check";
import type { EventType } from "../../../src/domain/jobs/event.ts";
import type { ChannelName } from "../../../src/domain/jobs/job.ts";
import type { LeaseRole, QueueQuota } from "../../../src/domain/jobs/queue.ts";
import type { Tag } from "../../../src/domain/jobs/tags.ts";

/** Whom a call concerns. Numbers pick from what there is when the command runs, so that any part of a list can run. */
export type Command =
  | { readonly kind: "accept"; readonly limit: number | null; readonly orders: readonly Order[] }
  | {
      readonly kind: "accept lost";
      readonly limit: number | null;
      readonly order: Order;
      readonly way: "there" | "back";
    }
  /** A repeat that comes late, behind all that has been done since. */
  | { readonly kind: "accept again"; readonly limit: number | null; readonly job: number }
  | { readonly kind: "reschedule"; readonly job: JobPick; readonly inMs: number }
  | { readonly kind: "cancel"; readonly job: JobPick }
  | { readonly kind: "admit"; readonly tenant: number; readonly limit: number }
  | {
      readonly kind: "pull";
      readonly lease: LeasePick;
      readonly survey: boolean;
      readonly tenantQueues: readonly TenantQueuePick[];
      readonly bytesMax: number;
      /** How far the owner's reckoning is from the time that it was answered last; null: it knows nothing. */
      readonly reckonsMs: number | null;
      /** Whether its last answer came promptly. */
      readonly isPrompt: boolean;
    }
  | { readonly kind: "look again"; readonly lease: LeasePick; readonly jobs: readonly number[] }
  | {
      readonly kind: "settle" | "settle lent";
      readonly lease: LeasePick;
      readonly outcomes: readonly OutcomePick[];
      readonly reckonsMs: number | null;
    }
  | {
      readonly kind: "retry";
      readonly retries: readonly RetryPick[];
      readonly quota: QueueQuota | null;
      /** The answer of a first try, or the try itself, is lost. */
      readonly lost: "there" | "back" | null;
    }
  | { readonly kind: "observe"; readonly reports: readonly Report[] }
  | { readonly kind: "record"; readonly turns: readonly TurnPick[] }
  | {
      readonly kind: "acquire";
      readonly shard: number;
      readonly role: LeaseRole;
      /** As it is now, as it was when somebody looked last, or as though it were nobody's. */
      readonly seen: "now" | "before" | "nobody";
    }
  | { readonly kind: "allow"; readonly lease: LeasePick; readonly call: AllowancePick }
  | { readonly kind: "renew" | "release"; readonly role: LeaseRole; readonly lease: LeasePick }
  | {
      readonly kind: "member";
      readonly role: LeaseRole;
      readonly owner: string;
      readonly does: "beat" | "leave" | "leave as told" | "leave as told before";
    }
  /** All that is there is sent, and all that can be is recorded. */
  | { readonly kind: "drain"; readonly shard: number }
  /** Only a clock that is set also sets the time that owners reckon by. */
  | { readonly kind: "wait" | "set clock"; readonly ms: number };

export interface JobPick {
  /** Counted from the job that was accepted last; beyond the first one: a job that never was. */
  readonly job: number;
  readonly isForeign: boolean;
}

export interface Order {
  /** When it is to be sent, from now on. */
  readonly dueInMs: number | null;
  readonly tenant: number;
  readonly channel: ChannelName;
  readonly recipient: string;
  readonly payload: string;
  /** How long before the call its id was made; a string: when an earlier job's was, counted from the last. */
  readonly ageMs: number | `as ${number}`;
  readonly needsScreening: boolean;
  readonly template: string | null;
  /** The payload's bytes where it waits elsewhere. */
  readonly storedBytes: number | null;
  /** The trace that it belongs to, where its payload has room for one. */
  readonly traceparent: string | null;
  readonly tags: readonly Tag[] | null;
  readonly topic: string | null;
  readonly quota: QueueQuota | null;
  readonly idempotency: { readonly key: string; readonly fingerprint: string } | null;
}

export interface LeasePick {
  readonly shard: number;
  /** 0: the latest lease, 1: the one before. */
  readonly age: number;
}

export interface TurnPick {
  readonly lease: LeasePick;
  readonly done: "none" | "last" | "earlier";
  /** The last batch that it had a piece of. */
  readonly refuses: boolean;
  readonly takes: boolean;
}

export interface TenantQueuePick {
  readonly tenant: number;
  readonly channel: ChannelName;
  readonly goesOn: boolean;
  readonly entriesMax: number;
  readonly bytesMax: number;
}

export interface AllowancePick {
  readonly tenant: number;
  readonly channel: ChannelName;
  readonly isTomorrow: boolean;
  readonly allowance: number;
  /** Relative to the last answer: below 0 the caller missed answers, above 0 the queue forgot. */
  readonly knowsMore: number;
  readonly wanted: number;
}

export interface OutcomePick {
  /** Counted from the job that was pulled last. */
  readonly job: number;
  readonly outcome: "sent" | "failed" | "given up" | "suppressed" | "retry" | "wait" | "held" | "start" | "lend";
  readonly delayMs: number;
  /** What the provider calls the message, where it says so. */
  readonly providerRef: string | null;
}

export interface Report {
  /** Counted from the job that was accepted last; beyond the first one: a job that never was. */
  readonly job: number;
  readonly isForeign: boolean;
  readonly type: EventType;
  readonly url: string | null;
  readonly isByMachine: boolean;
  readonly suppresses: boolean;
  readonly isKnownToEventStore: boolean;
}

export interface RetryPick {
  /** Counted from the job that was accepted last. */
  readonly job: number;
  /** As the job was seen when an operator retried it last, not as it is now. */
  readonly isLate: boolean;
  readonly isForeign: boolean;
}

/** All that a provider calls messages by. */
export const REFERENCES = ["wamid.1", "wamid.2", ""] as const;

export const TENANTS = [
  { tenantId: "acme", shard: 0 },
  { tenantId: "bolt", shard: 0 },
  { tenantId: "cove", shard: 1 },
] as const;

export const SHARDS = [0, 1] as const;

const tenant = fc.nat({ max: TENANTS.length - 1 });
const limit = fc.constantFrom(1_000, 1_000, 1_000, 6, 2);
const acceptLimit = fc.constantFrom(1_000, 1_000, 1_000, 6, 2, null);
const channel = fc.constantFrom<ChannelName>("email", "email", "email", "whatsapp");
const recipient = fc.constantFrom("ann@example.com", "böb with space@example.com");
const lease = fc.record({
  shard: fc.constantFrom(0, 0, 0, 1),
  age: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
});
const role = fc.constantFrom<LeaseRole>("dispatcher", "recorder");

const order: fc.Arbitrary<Order> = fc.record({
  tenant,
  channel,
  recipient,
  payload: fc.constantFrom("{}", '{"é":"line\\n  =r1"}', `{"long":"${"ü".repeat(400)}"}`),
  ageMs: fc.constantFrom<Order["ageMs"]>(0, 0, 0, 3, 40, 15_000, 40_000, -60_000, "as 0", "as 1", "as 3"),
  needsScreening: fc.boolean(),
  storedBytes: fc.constantFrom(null, null, null, 300_000),
  traceparent: fc.constantFrom(null, null, null, `00-${"5e".repeat(16)}-${"a1".repeat(8)}-01`),
  dueInMs: fc.constantFrom(null, null, null, 700, 30_000, 3_600_000, -5_000),
  topic: fc.constantFrom(null, null, "news", "día a día"),
  tags: fc.constantFrom(
    null,
    null,
    [{ name: "campaign", value: "spring_26" }],
    [
      { name: "a", value: "-" },
      { name: "user", value: "42" },
    ],
  ),
  quota: fc.constantFrom(
    null,
    { jobs: 100, bytes: 1_000_000 },
    { jobs: 3, bytes: 1_000_000 },
    { jobs: 100, bytes: 900 },
    { jobs: 0, bytes: 0 },
  ),
  template: fc.constantFrom(null, null, "welcome", 'a "quoted\\" 名/é\u2028 one', ""),
  idempotency: fc.option(
    fc.record({ key: fc.constantFrom("order 7", "k"), fingerprint: fc.constantFrom("aa", "bb") }),
    { freq: 3 },
  ),
});

const jobPick: fc.Arbitrary<JobPick> = fc.record({
  job: fc.nat({ max: 6 }),
  isForeign: fc.constantFrom(false, false, false, false, false, true),
});

const report: fc.Arbitrary<Report> = fc.record({
  job: fc.nat({ max: 8 }),
  isForeign: fc.constantFrom(false, false, false, false, false, true),
  type: fc.constantFrom<EventType>("delivered", "opened", "clicked", "clicked", "bounced", "sent", "failed"),
  url: fc.constantFrom(null, "https://a.test/?q=1", "https://b.test"),
  isByMachine: fc.constantFrom(false, false, true),
  suppresses: fc.boolean(),
  isKnownToEventStore: fc.boolean(),
});

const retry: fc.Arbitrary<RetryPick> = fc.record({
  job: fc.nat({ max: 5 }),
  isLate: fc.constantFrom(false, false, false, true),
  isForeign: fc.constantFrom(false, false, false, false, false, true),
});

const outcome: fc.Arbitrary<OutcomePick> = fc.record({
  job: fc.nat({ max: 5 }),
  outcome: fc.constantFrom<OutcomePick["outcome"]>(
    "sent",
    "sent",
    "failed",
    "given up",
    "suppressed",
    "retry",
    "retry",
    "wait",
    "wait",
    "held",
    "start",
    "start",
    "lend",
    "lend",
  ),
  delayMs: fc.constantFrom(0, 0, 1_500.4, 3_600_000),
  providerRef: fc.constantFrom(null, ...REFERENCES),
});

const turn: fc.Arbitrary<TurnPick> = fc.record({
  lease: fc.record({ shard: fc.constantFrom(0, 1), age: fc.constantFrom(0, 0, 0, 0, 0, 0, 1) }),
  done: fc.constantFrom("last" as const, "last" as const, "none" as const, "earlier" as const),
  refuses: fc.constantFrom(false, false, false, true),
  takes: fc.constantFrom(true, true, true, false),
});

const tenantQueue: fc.Arbitrary<TenantQueuePick> = fc.record({
  tenant,
  channel,
  goesOn: fc.boolean(),
  entriesMax: fc.constantFrom(1, 2, 64),
  bytesMax: fc.constantFrom(1_000_000, 1_000_000, 1_000, 100),
});

const allowance: fc.Arbitrary<AllowancePick> = fc.record({
  tenant: fc.constantFrom(0, 0, 2),
  channel: fc.constantFrom<ChannelName>("email", "email", "whatsapp"),
  isTomorrow: fc.constantFrom(false, false, true),
  allowance: fc.constantFrom(50, 50, 3, 0),
  knowsMore: fc.constantFrom(0, 0, 0, -1, 4),
  wanted: fc.constantFrom(0, 1, 2, 64),
});

const several = <T>(items: fc.Arbitrary<T>, maxLength: number) => fc.array(items, { minLength: 1, maxLength });

/** A tenant that keeps asking, at all paces, and what its window says. */
export const requests: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("admit" as const),
        tenant: fc.constant(0),
        limit: fc.constantFrom(2, 3),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("wait" as const),
        ms: fc.oneof(
          fc.integer({ min: 1, max: 1_500 }),
          fc.integer({ min: 1_500, max: 20_000 }),
          fc.integer({ min: 55_000, max: 65_000 }),
          // A clock can be set back.
          fc.integer({ min: -90_000, max: -1 }),
        ),
      }),
    },
  ),
  { maxLength: 100, size: "max" },
);

/** Lists of commands, most of them about work, some about leases, a few that let much time pass. */
export const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({ kind: fc.constant("accept" as const), limit: acceptLimit, orders: several(order, 4) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("accept lost" as const),
        limit: acceptLimit,
        order,
        way: fc.constantFrom("there" as const, "back" as const),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("accept again" as const),
        limit: acceptLimit,
        job: fc.nat({ max: 5 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("admit" as const), tenant, limit }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("reschedule" as const),
        job: jobPick,
        inMs: fc.constantFrom(0, -1_000, 500, 20_000, 7_200_000),
      }),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant("cancel" as const), job: jobPick }) },
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant("pull" as const),
        lease,
        survey: fc.boolean(),
        tenantQueues: fc.array(tenantQueue, { maxLength: 3 }),
        bytesMax: fc.constantFrom(1_000_000, 1_000_000, 2_000, 200),
        reckonsMs: fc.constantFrom(null, 0, 0, 0, -400, -3_000, 700.5, 90_000),
        isPrompt: fc.boolean(),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant("look again" as const), lease, jobs: several(fc.nat({ max: 5 }), 5) }),
    },
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constantFrom("settle" as const, "settle" as const, "settle lent" as const),
        lease,
        outcomes: several(outcome, 4),
        reckonsMs: fc.constantFrom(null, 0, 0, -400, 700.5, 90_000),
      }),
    },
    {
      weight: 7,
      arbitrary: fc.record({
        kind: fc.constant("retry" as const),
        retries: fc.uniqueArray(retry, { minLength: 1, maxLength: 3, selector: ({ job }) => job }),
        quota: fc.constantFrom(null, null, { jobs: 2, bytes: 1_000_000 }, { jobs: 100, bytes: 900 }),
        lost: fc.constantFrom(null, null, "there" as const, "back" as const),
      }),
    },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant("observe" as const), reports: several(report, 3) }) },
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("record" as const),
        turns: fc.uniqueArray(turn, { minLength: 1, maxLength: 2, selector: ({ lease: { shard } }) => shard }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("acquire" as const),
        shard: fc.constantFrom(0, 0, 1),
        role,
        seen: fc.constantFrom("now" as const, "now" as const, "before" as const, "nobody" as const),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("allow" as const), lease, call: allowance }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom("renew" as const, "release" as const), role, lease }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("member" as const),
        role,
        owner: fc.constantFrom("one", "two"),
        does: fc.constantFrom(
          "beat" as const,
          "beat" as const,
          "leave" as const,
          "leave as told" as const,
          "leave as told before" as const,
        ),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("drain" as const), shard: fc.constantFrom(0, 0, 1) }) },
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constantFrom("wait" as const, "wait" as const, "wait" as const, "set clock" as const),
        ms: fc.oneof(
          { weight: 6, arbitrary: fc.integer({ min: 1, max: 2_000 }) },
          { weight: 5, arbitrary: fc.integer({ min: 2_000, max: 62_500 }) },
          { weight: 1, arbitrary: fc.constantFrom(16 * 60_000, 25 * 3_600_000, -16 * 60_000) },
        ),
      }),
    },
  ),
  { maxLength: 60, size: "max" },
);
