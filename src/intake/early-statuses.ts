import { type Clock, sleep } from "../core/clock.ts";
import { isOutage } from "../core/errors.ts";
import type { JobAddress, ProviderReferences } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { WhatsappStatus } from "./whatsapp-webhook.ts";

export interface EarlyStatusesPorts {
  readonly references: ProviderReferences;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Takes a status whose job is known by now. Rejects when a store is away: it is offered again. */
  onKnown(status: WhatsappStatus, job: JobAddress): Promise<void>;
}

interface Held {
  readonly status: WhatsappStatus;
  readonly untilMs: number;
  waitMs: number;
  nextMs: number;
}

/**
 * Statuses of messages that nobody knows yet. The provider may report on a message before our own call has its answer,
 * and so before the message's id is known here; and it may report on messages that others sent from the same number.
 *
 * E1. At most `earlyStatusesMax` are held, each once. E2. A status is looked for again and again, ever more seldom, until
 * its message is known or `earlyStatusMs` have passed; then it is counted and dropped. E3. One that became known is kept
 * until it was taken, also while a store is away.
 */
export class EarlyStatuses {
  private readonly held = new Map<string, Held>();
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;

  constructor(private readonly ports: EarlyStatusesPorts) {}

  get size(): number {
    return this.held.size;
  }

  /** False: there is no room, and the status is not held. Returns at once. */
  hold(status: WhatsappStatus): boolean {
    const name = `${status.type} ${status.messageId}`;
    if (this.held.has(name)) return true;
    if (this.held.size >= limits.earlyStatusesMax || this.stopping.signal.aborted) return false;
    const nowMs = this.ports.clock.monotonicMs();
    const waitMs = limits.earlyStatusRetryMs;
    this.held.set(name, { status, untilMs: nowMs + limits.earlyStatusMs, waitMs, nextMs: nowMs + waitMs });
    this.running ??= this.run();
    return true;
  }

  /** Looks once more for what is held, and drops the rest. Safe to repeat. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Ends when nothing is held any more, or with `stop`. */
  private async run(): Promise<void> {
    const { clock, telemetry } = this.ports;
    while (this.held.size > 0) {
      await sleep(clock, limits.earlyStatusRetryMs, this.stopping.signal);
      const isLast = this.stopping.signal.aborted;
      const nowMs = clock.monotonicMs();
      const due = [...this.held].filter(([, { nextMs }]) => isLast || nextMs <= nowMs);
      for (let at = 0; at < due.length; at += limits.webhookStatusesMax) {
        await this.look(due.slice(at, at + limits.webhookStatusesMax));
      }
      telemetry.gauge("early_statuses", this.held.size);
      if (isLast) break;
    }
    this.running = null;
  }

  private async look(due: readonly (readonly [string, Held])[]): Promise<void> {
    try {
      const jobs = await this.ports.references.jobsOf(due.map(([, { status }]) => status.messageId));
      await Promise.all(due.map(([name, held], i) => this.settle(name, held, jobs[i] ?? null)));
    } catch (error) {
      this.report(error);
    }
    const nowMs = this.ports.clock.monotonicMs();
    for (const [, held] of due) {
      held.nextMs = nowMs + held.waitMs;
      held.waitMs = Math.min(2 * held.waitMs, limits.earlyStatusRetryMsMax);
    }
  }

  private async settle(name: string, { status, untilMs }: Held, job: JobAddress | null): Promise<void> {
    if (job === null) {
      if (this.ports.clock.monotonicMs() < untilMs) return;
      this.ports.telemetry.count("delivery_reports", { type: status.type, result: "unknown" });
      this.held.delete(name);
      return;
    }
    try {
      await this.ports.onKnown(status, job);
      this.held.delete(name);
    } catch (error) {
      this.report(error);
    }
  }

  private report(error: unknown): void {
    const level = isOutage(error) ? "warn" : "error";
    this.ports.telemetry.log(level, "an early status was not recorded and is repeated", { error: String(error) });
  }
}
