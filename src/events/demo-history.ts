import { JobIds } from "../domain/ids.ts";
import { type EventType, nextEventId } from "../domain/jobs/event.ts";
import type { FinishedJob, StoredEventRow } from "../domain/jobs/event-store.ts";
import type { Attempt, ChannelName } from "../domain/jobs/job.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import type { JsonObject } from "../domain/texts/json.ts";

/** Every tenant of a demonstration has a name that begins so. */
export const DEMO_PREFIX = "demo-";

export interface DemoOptions {
  readonly seed: number;
  /** The first instant after the history, the beginning of a UTC day. */
  readonly untilMs: number;
  readonly days: number;
  /** Messages of all tenants on a usual working day. */
  readonly perDay: number;
}

export interface DemoTenant {
  readonly id: string;
  readonly name: string;
  /** Share of all messages. */
  readonly share: number;
  /** Messages on a Saturday or Sunday, against a working day. */
  readonly weekend: number;
  /** Messages of each hour of a UTC day, against each other. */
  readonly hours: readonly number[];
  /** E-mails and chat messages in a hundred; the rest are passes. */
  readonly email: number;
  readonly whatsapp: number;
}

/** The tenants and the incidents of an invented history. */
export interface DemoScene {
  readonly tenants: readonly DemoTenant[];
  /** The day on which a tenant's mail server was away. */
  readonly outage: Incident & { readonly fromHour: number; readonly toHour: number };
  /** The day on which a list full of dead addresses went out. */
  readonly badList: Incident;
  /** The day on which a mailbox provider began to refuse a tenant's mail, and from which hour; absent: none did. */
  readonly refusal?: Incident & { readonly domain: string; readonly fromHour: number };
}

interface Incident {
  /** Before the end of the history. */
  readonly daysBefore: number;
  readonly tenant: string;
}

export const OFFICE = [0, 0, 0, 0, 0, 1, 3, 6, 10, 12, 11, 9, 6, 8, 10, 9, 7, 5, 2, 1, 1, 0, 0, 0];
export const EVENING = [2, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 6, 7, 9, 12, 14, 13, 10, 6, 4];
const NIGHTLY = [0, 0, 60, 20, 0, 0, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0];

export const DEMO_TENANTS: readonly DemoTenant[] = [
  { id: "demo-harbor", name: "Harbor Books", share: 0.45, weekend: 1.3, hours: EVENING, email: 78, whatsapp: 20 },
  { id: "demo-clinic", name: "Northside Clinic", share: 0.25, weekend: 0.1, hours: OFFICE, email: 35, whatsapp: 65 },
  { id: "demo-ledger", name: "Ledger & Co", share: 0.2, weekend: 0.4, hours: NIGHTLY, email: 100, whatsapp: 0 },
  { id: "demo-stadium", name: "Stadium Tickets", share: 0.1, weekend: 3, hours: EVENING, email: 40, whatsapp: 10 },
];

const DAY_MS = 86_400_000;

const DEMO: DemoScene = {
  tenants: DEMO_TENANTS,
  outage: { daysBefore: 9, tenant: "demo-harbor", fromHour: 15, toHour: 19 },
  badList: { daysBefore: 16, tenant: "demo-ledger" },
};

/**
 * Builds a history like that of a month of real sending: with hours, weekends, failures, a day on which a mail server was away,
 * and one with many bounces. The same options give the same history, down to the ids. Rows are in the order of their events.
 */
export function demoHistory(options: DemoOptions, scene = DEMO): readonly StoredEventRow[] {
  const facts = new DemoFacts(options, scene).all();
  const last = new Map<string, number>();
  return facts
    .filter(({ atMs }) => atMs < options.untilMs)
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ atMs, ...row }) => {
      const eventId = nextEventId(last.get(row.tenantId) ?? 0, atMs);
      last.set(row.tenantId, eventId);
      return { ...row, eventId };
    });
}

type Fact = Omit<StoredEventRow, "eventId"> & { readonly atMs: number };

interface Job {
  readonly tenantId: string;
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly template: string;
  readonly acceptedAtMs: number;
  readonly daysBefore: number;
}

class DemoFacts {
  private readonly random: SeededRandom;
  private readonly ids: JobIds;
  private nowMs = 0;

  constructor(
    private readonly options: DemoOptions,
    private readonly scene: DemoScene,
  ) {
    this.random = new SeededRandom(options.seed);
    const nowMs = () => this.nowMs;
    this.ids = new JobIds({ nowMs, monotonicMs: nowMs, setTimer: () => ({ cancel() {} }) }, this.random);
  }

  all(): Fact[] {
    const { untilMs, days, perDay } = this.options;
    const facts: Fact[] = [];
    for (let daysBefore = days; daysBefore >= 1; daysBefore -= 1) {
      const dayMs = untilMs - daysBefore * DAY_MS;
      const isWeekend = [0, 6].includes(new Date(dayMs).getUTCDay());
      for (const tenant of this.scene.tenants) {
        const usual = perDay * tenant.share * (isWeekend ? tenant.weekend : 1) * this.between(0.85, 1.15);
        const count = isOn(this.scene.badList, tenant.id, daysBefore) ? 3 * usual : usual;
        for (let n = 0; n < Math.round(count); n += 1) facts.push(...this.factsOfJob(tenant, dayMs, daysBefore));
      }
    }
    return facts;
  }

  private factsOfJob({ id, hours, email, whatsapp }: DemoTenant, dayMs: number, daysBefore: number): readonly Fact[] {
    this.nowMs = Math.floor(dayMs + (this.weighted(hours) + this.random.next()) * 3_600_000);
    const dice = this.random.next() * 100;
    const channel = dice < email ? "email" : dice < email + whatsapp ? "whatsapp" : "wallet";
    const template = this.pick(TEMPLATES[channel]);
    const job = { tenantId: id, jobId: this.ids.next(), channel, template, acceptedAtMs: this.nowMs, daysBefore };
    if (channel === "wallet") return [ended(job, "sent", this.between(300, 1_500), success(1))];
    return channel === "email" ? this.factsOfEmail(job) : this.factsOfChat(job);
  }

  private factsOfEmail(job: Job): readonly Fact[] {
    if (this.chance(1.5)) {
      const reason = this.pick(["unsubscribed", "unsubscribed", "bounced", "complained", "manual"]);
      return [ended(job, "suppressed", 200, { status: "suppressed", attempts: 0, result: { reason } })];
    }
    if (this.chance(0.8)) {
      const error = this.pick(["550 5.7.1 relaying denied", "spam score 7.2 is above 5", "552 5.3.4 message too big"]);
      return [ended(job, "failed", 700, { status: "failed", attempts: 1, result: { error } })];
    }
    const attempts = this.chance(94) ? 1 : Math.round(this.between(2, 4));
    const sent = ended(
      job,
      "sent",
      this.heldMs(job) + this.between(250, 2_500) + (attempts - 1) * 20_000,
      success(attempts),
    );
    if (this.isRefused(job)) {
      const error = `550 5.7.1 <${createAddress(job)}>: mail from this sender is blocked for its reputation`;
      return [sent, later(sent, "failed", this.between(1_000, 30_000), { error })];
    }
    if (this.chance(isOn(this.scene.badList, job.tenantId, job.daysBefore) ? 34 : 1.2)) {
      const { words, ...codes } = this.pick(BOUNCES);
      const diagnostic = `${codes.code} ${codes.enhanced_code} <${createAddress(job)}>: ${words}`;
      return [sent, later(sent, "bounced", this.between(1_000, 60_000), { ...codes, diagnostic })];
    }
    const delivered = later(sent, "delivered", this.chance(96) ? this.between(800, 9_000) : this.between(4e5, 5.4e6));
    const facts = [sent, delivered];
    // Some recipients open the message at once, most within hours.
    if (this.chance(42)) facts.push(later(delivered, "opened", this.between(0.05, 1) ** 3 * 10 * 3_600_000));
    const opened = facts[2];
    if (opened !== undefined && this.chance(24)) {
      const url = `https://example.com/${this.pick(["order", "offer", "account", "help"])}`;
      facts.push(later(opened, "clicked", this.between(3_000, 300_000), { url }));
    }
    if (this.chance(0.1)) facts.push(later(delivered, "complained", this.between(3.6e6, 4e7)));
    return facts;
  }

  private factsOfChat(job: Job): readonly Fact[] {
    if (this.chance(2.5)) {
      const error = this.pick(["131026 message undeliverable", "131049 not delivered to keep engagement healthy"]);
      return [ended(job, "failed", 600, { status: "failed", attempts: 1, result: { error } })];
    }
    const sent = ended(job, "sent", this.between(300, 1_800), success(1));
    const delivered = later(sent, "delivered", this.between(500, 4_000));
    return this.chance(74)
      ? [sent, delivered, later(delivered, "read", this.between(5_000, 3_600_000))]
      : [sent, delivered];
  }

  /** Returns how long the job was delayed because its mail server was unavailable. */
  private heldMs({ tenantId, acceptedAtMs, daysBefore }: Job): number {
    const { outage } = this.scene;
    if (!isOn(outage, tenantId, daysBefore)) return 0;
    const dayMs = this.options.untilMs - daysBefore * DAY_MS;
    const [fromMs, toMs] = [dayMs + outage.fromHour * 3_600_000, dayMs + outage.toHour * 3_600_000];
    return acceptedAtMs < fromMs || acceptedAtMs >= toMs ? 0 : toMs - acceptedAtMs + this.between(0, 60_000);
  }

  private isRefused(job: Job): boolean {
    const { refusal } = this.scene;
    if (refusal === undefined || refusal.tenant !== job.tenantId) return false;
    const sinceMs = this.options.untilMs - refusal.daysBefore * DAY_MS + refusal.fromHour * 3_600_000;
    return job.acceptedAtMs >= sinceMs && createAddress(job).endsWith(`@${refusal.domain}`);
  }

  /** Returns true with this probability in percent. */
  private chance(percent: number): boolean {
    return this.random.next() * 100 < percent;
  }

  private between(from: number, to: number): number {
    return from + this.random.next() * (to - from);
  }

  private pick<T>(values: readonly [T, ...(readonly T[])]): T {
    return values[Math.floor(this.random.next() * values.length)] ?? values[0];
  }

  /** Returns a random index, weighted. */
  private weighted(weights: readonly number[]): number {
    let left = this.random.next() * weights.reduce((sum, weight) => sum + weight, 0);
    return Math.max(
      0,
      weights.findIndex((weight) => {
        left -= weight;
        return left < 0;
      }),
    );
  }
}

const TEMPLATES = {
  email: ["receipt", "receipt", "welcome", "newsletter", "password-reset"],
  whatsapp: ["appointment", "appointment", "order_shipped"],
  wallet: ["ticket"],
} as const;

const BOUNCES = [
  { code: 550, enhanced_code: "5.1.1", words: "no such user" },
  { code: 550, enhanced_code: "5.1.1", words: "no such user" },
  { code: 550, enhanced_code: "5.2.1", words: "mailbox disabled" },
] as const;

const DOMAINS = ["example.com", "example.com", "example.net", "example.org"] as const;

/** Derives the address from the job's id, so that it does not affect the other random values. */
function createAddress({ jobId }: Job): string {
  const reader = Number.parseInt(jobId.slice(-4), 16);
  return `reader${reader}@${DOMAINS[reader % DOMAINS.length] ?? DOMAINS[0]}`;
}

function isOn(of: Incident, tenantId: string, daysBefore: number): boolean {
  return of.daysBefore === daysBefore && of.tenant === tenantId;
}

const success = (attempts: number) => ({ status: "success", attempts, result: {} }) as const;

function ended(job: Job, type: EventType, afterMs: number, finished: FinishedJob): Fact {
  const { acceptedAtMs, template, daysBefore: _, ...own } = job;
  const recipient = job.channel === "email" ? { recipient: createAddress(job) } : {};
  const atMs = Math.floor(acceptedAtMs + afterMs);
  return {
    ...own,
    type,
    result: finished.result,
    finished: { ...finished, template, ...recipient, ...createTries(job, finished, atMs), ...TAGS[template] },
    atMs,
  };
}

const RELAYS: Readonly<Record<ChannelName, string>> = {
  email: "smtp.example.com:587",
  whatsapp: "graph.facebook.com",
  wallet: "walletobjects.googleapis.com",
};

const TAGS: Readonly<Record<string, Pick<FinishedJob, "tags">>> = {
  newsletter: { tags: [{ name: "kind", value: "marketing" }] },
  receipt: { tags: [{ name: "kind", value: "transactional" }] },
};

/** Creates one try per counted attempt, 20 seconds apart, from the job's id alone. */
function createTries({ jobId, channel }: Job, { status, attempts, result }: FinishedJob, endedAtMs: number) {
  if (attempts === 0) return {};
  const relay = RELAYS[channel] ?? "";
  const ms = 20 + (Number.parseInt(jobId.slice(-3), 16) % 400);
  const retried = Array.from({ length: attempts - 1 }, (_, n): Attempt => {
    const next = endedAtMs - (attempts - 2 - n) * 20_000;
    return {
      at: next - 20_000,
      outcome: "retry",
      relay,
      reply: "451 4.7.1 too many messages, try again later",
      next,
      ms,
    };
  });
  const last: Attempt =
    status === "success"
      ? { at: endedAtMs, outcome: "sent", relay, ms }
      : { at: endedAtMs, outcome: "failed", relay, reply: String(result["error"]), ms };
  return { tries: [...retried, last] };
}

function later({ atMs, ...fact }: Fact, type: EventType, afterMs: number, result: JsonObject = {}): Fact {
  return { ...fact, type, result, finished: null, atMs: Math.floor(atMs + afterMs) };
}
