import { type EventType, nextEventId } from "../src/domain/event.ts";
import type { FinishedJob, StoredEventRow } from "../src/domain/event-store.ts";
import { JobIds } from "../src/domain/ids.ts";
import type { ChannelName } from "../src/domain/job.ts";
import type { JsonObject } from "../src/domain/json.ts";
import { SeededRandom } from "../test/support/seeded-random.ts";

/** Three tenants' messages of the first week of November 2026, the same in every run. */
export function analystsData(): readonly StoredEventRow[] {
  const facts = DAYS.flatMap((day) =>
    TENANTS.flatMap(({ id, perDay }) => Array.from({ length: perDay }, () => factsOfJob(id, day)).flat()),
  );
  const last = new Map<string, number>();
  return facts
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(({ atMs, ...row }) => {
      const eventId = nextEventId(last.get(row.tenantId) ?? 0, atMs);
      last.set(row.tenantId, eventId);
      return { ...row, eventId };
    });
}

const DAYS = Array.from({ length: 7 }, (_, n) => Date.UTC(2026, 10, 2 + n));
const TENANTS = [
  { id: "acme", perDay: 60 },
  { id: "globex", perDay: 25 },
  { id: "initech", perDay: 5 },
] as const;

const random = new SeededRandom(2026);
let nowMs = 0;
const ids = new JobIds({ nowMs: () => nowMs, monotonicMs: () => nowMs, setTimer: () => ({ cancel() {} }) }, random);

/** True so often in a hundred. */
const chance = (percent: number) => random.next() * 100 < percent;
const between = (from: number, to: number) => Math.round(from + random.next() * (to - from));
const pick = <T>(first: T, ...others: readonly T[]): T =>
  others[Math.floor(random.next() * (others.length + 1))] ?? first;

type Fact = Omit<StoredEventRow, "eventId"> & { readonly atMs: number };

interface Job {
  readonly tenantId: string;
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly template: string;
  readonly acceptedAtMs: number;
}

function factsOfJob(tenantId: string, day: number): readonly Fact[] {
  // Working hours, with a quiet one at noon.
  const hour = pick(6, 7, 8, 9, 9, 10, 10, 11, 13, 14, 14, 15, 16, 17, 19);
  nowMs = day + hour * 3_600_000 + between(0, 3_599_999);
  const channel: ChannelName = chance(75) ? "email" : chance(85) ? "whatsapp" : "wallet";
  const job = { tenantId, jobId: ids.next(), channel, template: templateOf(channel), acceptedAtMs: nowMs };
  if (channel === "wallet") return [ended(job, "sent", 900, { status: "success", attempts: 1, result: {} })];
  return channel === "email" ? factsOfEmail(job) : factsOfChat(job);
}

function templateOf(channel: ChannelName): string {
  if (channel === "email") return pick("welcome", "receipt", "receipt", "password-reset", "");
  return channel === "whatsapp" ? pick("order_shipped", "order_shipped", "appointment") : "loyalty-card";
}

function factsOfEmail(job: Job): readonly Fact[] {
  if (chance(3)) {
    const reason = pick("unsubscribed", "unsubscribed", "bounced", "complained", "manual");
    return [ended(job, "suppressed", 200, { status: "suppressed", attempts: 0, result: { reason } })];
  }
  if (chance(3)) {
    const error = pick("550 5.7.1 relaying denied", "spam score 7.2 is above 5", "552 5.3.4 message too big");
    return [ended(job, "failed", 700, { status: "failed", attempts: 1, result: { error } })];
  }
  const attempts = chance(88) ? 1 : between(2, 4);
  const sent = ended(job, "sent", between(250, 2_500) + (attempts - 1) * 20_000, success(attempts));
  if (chance(2)) {
    const diagnostic = "550 5.1.1 no such user";
    return [sent, later(sent, "bounced", 4_000, { code: 550, enhanced_code: "5.1.1", diagnostic })];
  }
  const delivered = later(sent, "delivered", chance(95) ? between(800, 9_000) : between(400_000, 5_400_000));
  const facts = [sent, delivered];
  if (chance(45)) facts.push(later(delivered, "opened", between(60_000, 7_200_000)));
  if (chance(12))
    facts.push(later(delivered, "clicked", between(7_200_000, 9_000_000), { url: "https://example.com/" }));
  if (chance(1)) facts.push(later(delivered, "complained", 10_800_000));
  return facts;
}

function factsOfChat(job: Job): readonly Fact[] {
  if (chance(4)) {
    const error = pick("131026 message undeliverable", "131049 not delivered to keep engagement healthy");
    return [ended(job, "failed", 600, { status: "failed", attempts: 1, result: { error } })];
  }
  const sent = ended(job, "sent", between(300, 1_800), success(1));
  const delivered = later(sent, "delivered", between(500, 4_000));
  return chance(70) ? [sent, delivered, later(delivered, "read", between(20_000, 3_600_000))] : [sent, delivered];
}

const success = (attempts: number) => ({ status: "success", attempts, result: {} }) as const;

function ended(job: Job, type: EventType, afterMs: number, finished: FinishedJob): Fact {
  const { acceptedAtMs, template, ...own } = job;
  const withTemplate = template === "" ? finished : { ...finished, template };
  return { ...own, type, result: finished.result, finished: withTemplate, atMs: acceptedAtMs + afterMs };
}

function later({ atMs, ...fact }: Fact, type: EventType, afterMs: number, result: JsonObject = {}): Fact {
  return { ...fact, type, result, finished: null, atMs: atMs + afterMs };
}
