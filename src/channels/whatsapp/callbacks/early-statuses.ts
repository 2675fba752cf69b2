import { BackOff } from "../../../domain/back-off.ts";
import { sleep } from "../../../domain/clock.ts";
import type { JobAddress, ProviderReferences } from "../../../domain/jobs/queue.ts";
import { limits } from "../../../domain/limits.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import { logFailure } from "../../../domain/telemetry.ts";
import { chatLimits } from "../limits.ts";
import type { WhatsappStatus } from "./webhook.ts";

export interface EarlyStatusesPorts extends RuntimePorts {
  readonly references: ProviderReferences;
  /** Takes a status whose job is now known. Rejects while a store is unavailable; the status is then offered again. */
  onKnown(status: WhatsappStatus, job: JobAddress): Promise<void>;
}

/** The statuses kept for one message. */
interface Held {
  /** In order of arrival, one per type. */
  statuses: readonly WhatsappStatus[];
  readonly untilMs: number;
  readonly waits: BackOff;
  nextMs: number;
}

/**
 * Keeps statuses of messages that are not known yet. The provider may report on a message before it replies to our own
 * call, and so before we know the message's id; it may also report on messages that others sent from the same number.
 *
 * E1. At most `earlyStatusesMax` are kept, each once.
 * E2. A message is looked up repeatedly, at growing intervals, until it is known or `earlyStatusMs` have passed since
 *     its first status; then all its statuses are counted and dropped.
 * E3. Statuses whose message became known are kept until they are taken, even while a store is unavailable.
 * E4. Statuses of one message are taken in order of arrival.
 */
export class EarlyStatuses {
  /** By message. */
  private readonly held = new Map<string, Held>();
  private count = 0;
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;

  constructor(private readonly ports: EarlyStatusesPorts) {}

  get size(): number {
    return this.count;
  }

  /** Returns at once: false if the store is full and the status was not kept. */
  hold(status: WhatsappStatus): boolean {
    const known = this.held.get(status.messageId);
    if (known?.statuses.some(({ type }) => type === status.type)) return true;
    if (this.count >= chatLimits.earlyStatusesMax || this.stopping.signal.aborted) return false;
    this.count += 1;
    if (known === undefined) this.held.set(status.messageId, this.newlyHeld(status));
    else known.statuses = [...known.statuses, status];
    this.running ??= this.run();
    return true;
  }

  /**
   * Hands on the statuses of a message that is now known. Resolves once they are taken; rejects if a store is
   * unavailable.
   */
  async release(messageId: string, job: JobAddress): Promise<void> {
    const held = this.held.get(messageId);
    if (held !== undefined) await this.pass(messageId, held, job);
  }

  /** Tries the kept statuses once more and drops the rest. Safe to call twice. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Ends when no statuses are left, or on `stop`. */
  private async run(): Promise<void> {
    const { clock, telemetry } = this.ports;
    while (this.held.size > 0) {
      await sleep(clock, chatLimits.earlyStatusRetry.firstMs, this.stopping.signal);
      const isLast = this.stopping.signal.aborted;
      const nowMs = clock.monotonicMs();
      const due = [...this.held].filter(([, { nextMs }]) => isLast || nextMs <= nowMs);
      for (let at = 0; at < due.length; at += chatLimits.webhookStatusesMax) {
        await this.look(due.slice(at, at + chatLimits.webhookStatusesMax));
      }
      telemetry.gauge("early_statuses", this.count);
      if (isLast) break;
    }
    this.running = null;
  }

  private async look(due: readonly (readonly [string, Held])[]): Promise<void> {
    try {
      const jobs = await this.ports.references.findReferencedJobs(due.map(([messageId]) => messageId));
      await Promise.all(due.map(([messageId, held], i) => this.settle(messageId, held, jobs[i] ?? null)));
    } catch (error) {
      this.report(error);
    }
    const nowMs = this.ports.clock.monotonicMs();
    for (const [, held] of due) {
      held.nextMs = nowMs + held.waits.nextMs();
    }
  }

  private async settle(messageId: string, held: Held, job: JobAddress | null): Promise<void> {
    if (job === null) {
      if (this.ports.clock.monotonicMs() < held.untilMs) return;
      for (const { type } of held.statuses) {
        this.ports.telemetry.count("delivery_reports", { type, result: "unknown" });
      }
      this.forget(messageId, held, held.statuses);
      return;
    }
    try {
      await this.pass(messageId, held, job);
    } catch (error) {
      this.report(error);
    }
  }

  /** Safe to repeat, even while it runs: the queue accepts a report once. */
  private async pass(messageId: string, held: Held, job: JobAddress): Promise<void> {
    const { statuses } = held;
    const outcomes = await Promise.allSettled(statuses.map((status) => this.ports.onKnown(status, job)));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    this.forget(messageId, held, statuses);
  }

  /** Keeps statuses that arrived in the meantime. */
  private forget(messageId: string, held: Held, over: readonly WhatsappStatus[]): void {
    const rest = held.statuses.filter((status) => !over.includes(status));
    this.count -= held.statuses.length - rest.length;
    held.statuses = rest;
    if (rest.length === 0 && this.held.get(messageId) === held) this.held.delete(messageId);
  }

  private newlyHeld(status: WhatsappStatus): Held {
    const { clock, random } = this.ports;
    const nowMs = clock.monotonicMs();
    const waits = new BackOff(chatLimits.earlyStatusRetry, random);
    return { statuses: [status], untilMs: nowMs + limits.earlyStatusMs, waits, nextMs: nowMs + waits.nextMs() };
  }

  private report(error: unknown): void {
    logFailure(this.ports.telemetry, "an early status was not recorded and is repeated", error);
  }
}
