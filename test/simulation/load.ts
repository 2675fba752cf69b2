import type { BatchResult } from "../../src/domain/jobs/batch.ts";
import type { AcceptResult } from "../../src/domain/jobs/queue.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import type { JsonObject } from "../../src/domain/texts/json.ts";
import type { Dice } from "./dice.ts";
import type { Network } from "./network.ts";
import type { SimClock } from "./sim-clock.ts";
import type { BatchRequest, SendRequest, SimCluster } from "./sim-cluster.ts";

const PATIENCE_MS = 8_000;
const SCHEDULE_MS_MAX = 90_000;
const FALLBACK_MS_MAX = 60_000;
const CHANGE_MS_MAX = 40_000;
const TRIES_MAX = 6;

/** How tenants schedule. */
export interface Scheduling {
  readonly dice: Dice;
  /** Of messages that are scheduled, and of all that are moved or cancelled later. */
  readonly share: number;
}

export interface LoadParts {
  readonly clock: SimClock;
  readonly dice: Dice;
  readonly network: Network;
  /** A process that takes requests, or null where all are gone. */
  aHouse(): SimCluster | null;
  /** Tenants that send as large messages as they may. */
  readonly heavy: ReadonlySet<string>;
  /** A client has read that its message is accepted. */
  acknowledged(jobId: string): void;
}

/** The tenants' clients: they send, and repeat unanswered requests that carry an idempotency key. */
export class Load {
  /** Sends that are not answered and not given up. */
  inFlight = 0;
  acknowledgedCount = 0;
  /** Requests that were answered with a share of the queue that is used up. */
  refusedCount = 0;
  /** Messages that their tenants have moved or cancelled, or tried to. */
  changes = 0;
  private keys = 0;
  private scheduling: Scheduling | null = null;
  private fallbacks: Scheduling | null = null;

  constructor(private readonly parts: LoadParts) {}

  send(tenant: Tenant, recipient: string, afterMs = 0): void {
    const { dice, clock } = this.parts;
    const isLong = dice.chance(0.1);
    const html = this.parts.heavy.has(tenant.tenantId) ? HEAVY_HTML : isLong ? LONG_HTML : SHORT_HTML;
    // Messages from a template are not screened and may overtake those that are: a tenant sends only one kind.
    const [template = null] = tenant.emailTemplates.keys();
    const content = template === null ? { html } : { template_id: template, data: { html } };
    const body: JsonObject = { to_address: recipient, ...content };
    const idempotencyKey = dice.chance(0.3) ? `key-${(this.keys += 1)}` : null;
    const { scheduling } = this;
    const isScheduled = scheduling?.dice.chance(scheduling.share) ?? false;
    const inMs = isScheduled ? (scheduling?.dice.skewed(SCHEDULE_MS_MAX) ?? null) : null;
    const hasFallback = this.fallbacks !== null && this.fallbacks.dice.chance(this.fallbacks.share);
    const fallbackAfterMs = hasFallback ? (this.fallbacks?.dice.between(500, FALLBACK_MS_MAX) ?? null) : null;
    this.inFlight += 1;
    clock.at(afterMs, () => this.attempt({ tenant, body, idempotencyKey, inMs, fallbackAfterMs }, TRIES_MAX));
  }

  /** From now on some messages are scheduled, and some of all are moved or cancelled later. */
  schedule(scheduling: Scheduling): void {
    this.scheduling = scheduling;
  }

  /** From now on some messages have a fallback. */
  fallBack(fallbacks: Scheduling): void {
    this.fallbacks = fallbacks;
  }

  /** The client's later changes to an accepted message. */
  private changeLater({ tenant }: SendRequest, jobId: string): void {
    const { scheduling } = this;
    const { clock, aHouse } = this.parts;
    if (scheduling === null || !scheduling.dice.chance(scheduling.share)) return;
    const { dice } = scheduling;
    clock.at(dice.skewed(CHANGE_MS_MAX), () => {
      const house = aHouse();
      if (house === null) return;
      const change = dice.chance(0.6) ? "cancel" : { inMs: dice.skewed(SCHEDULE_MS_MAX) };
      // One that asks twice gets the same answer.
      const times = dice.chance(0.2) ? 2 : 1;
      this.changes += 1;
      house.process.enter(() => {
        for (let i = 0; i < times; i += 1) void house.change(tenant, jobId, change);
      }, "answer");
    });
  }

  /** Some of a batch's messages are wrong, and one of two batches has a key. */
  sendBatch(tenant: Tenant, dice: Dice, afterMs: number): void {
    const size = dice.between(1, 9);
    const bodies = Array.from({ length: size }, (_, i): JsonObject => {
      const to_address = dice.chance(0.2) ? "nobody" : `cy${i}@example.com`;
      const [template = null] = tenant.emailTemplates.keys();
      return template === null ? { to_address, html: SHORT_HTML } : { to_address, template_id: template };
    });
    const idempotencyKey = dice.chance(0.7) ? `batch-${(this.keys += 1)}` : null;
    this.inFlight += 1;
    this.parts.clock.at(afterMs, () => this.attemptBatch({ tenant, bodies, idempotencyKey }, TRIES_MAX));
  }

  private attemptBatch(request: BatchRequest, triesLeft: number): void {
    const { clock, network, aHouse } = this.parts;
    const house = aHouse();
    let isOver = false;
    const end = (result: BatchResult | null) => {
      if (isOver) return;
      isOver = true;
      patience.cancel();
      if (result?.kind === "answered") {
        for (const outcome of result.outcomes) {
          if ("jobId" in outcome) this.parts.acknowledged(outcome.jobId);
        }
      } else if (result === null && request.idempotencyKey !== null && triesLeft > 1) {
        clock.at(1_000, () => this.attemptBatch(request, triesLeft - 1));
        return;
      }
      this.inFlight -= 1;
    };
    const patience = clock.at(PATIENCE_MS, () => end(null));
    if (house === null) return;
    const answer = (result: BatchResult | null) => clock.at(network.legMs(), () => end(result));
    house.process.enter(() => {
      house.sendBatch(request).then(answer, () => answer(null));
    }, "answer");
  }

  private attempt(request: SendRequest, triesLeft: number): void {
    const { clock, network, aHouse } = this.parts;
    const house = aHouse();
    let isOver = false;
    const end = (result: AcceptResult | null) => {
      if (isOver) return;
      isOver = true;
      patience.cancel();
      if (result?.kind === "queue_full") this.refusedCount += 1;
      if (result?.kind === "accepted" || result?.kind === "replayed") {
        this.acknowledgedCount += 1;
        this.parts.acknowledged(result.jobId);
        this.changeLater(request, result.jobId);
      } else if (request.idempotencyKey !== null && triesLeft > 1) {
        clock.at(1_000, () => this.attempt(request, triesLeft - 1));
        return;
      }
      this.inFlight -= 1;
    };
    const patience = clock.at(PATIENCE_MS, () => end(null));
    if (house === null) return;
    const answer = (result: AcceptResult | null) => clock.at(network.legMs(), () => end(result));
    house.process.enter(() => {
      house.send(request).then(answer, () => answer(null));
    }, "answer");
  }
}

const SHORT_HTML = "<p>Hello</p>";
/** Costs its tenant more than one turn's worth of a slot. */
const LONG_HTML = `<p>${"Hello ".repeat(7_000)}</p>`;
/** As much as waits in the queue itself. */
const HEAVY_HTML = `<p>${"Hello ".repeat(40_000)}</p>`;
