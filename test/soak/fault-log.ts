import type { SoakChannel } from "./book.ts";

/**
 * The reason why a message may be handed over again (README, "Delivery guarantee").
 *
 * - `died`: a process ended without its drain, with the message at the provider or its outcome not yet stored.
 * - `unanswered`: the provider's answer did not arrive.
 * - `cut_off`: one process alone was silent for longer than a lease, and another took its shard over.
 */
export type Excuse = "died" | "unanswered" | "cut_off";

/** A fault, from its beginning to the moment when the system has recovered. */
export interface FaultSpan {
  readonly kind: string;
  readonly target: string;
  readonly fromMs: number;
  toMs: number;
  readonly excuse: Excuse | null;
  /** The channel whose messages the excuse covers; null: all. */
  readonly channel: SoakChannel | null;
  /** How long it took until the service was ready again; null: not measured. */
  recoveryMs: number | null;
  /** By how much the processes' clocks were wrong (ms). */
  shiftMs: number;
  /** Further details. */
  note: string;
}

/** A delivery ends within its time limit, and its outcome waits for a Redis that is silent or full meanwhile. */
const IN_FLIGHT_MS = 65_000;
/**
 * The difference between two clocks' readings of one moment, and the delay until an operating system closes a killed
 * process's descriptors.
 */
const SLACK_MS = 1_500;
/** The delay from a request until its job is in the queue: a call without an answer is repeated for five seconds. */
const TOLD_MS = 6_000;

/** The faults that were injected, and when. */
export class FaultLog {
  readonly spans: FaultSpan[] = [];

  constructor(private readonly nowMs: () => number = Date.now) {}

  begin(kind: string, target: string, excuse: Excuse | null = null, channel: SoakChannel | null = null): FaultSpan {
    const fromMs = this.nowMs();
    const span = {
      kind,
      target,
      fromMs,
      toMs: Number.POSITIVE_INFINITY,
      excuse,
      channel,
      recoveryMs: null,
      shiftMs: 0,
      note: "",
    };
    this.spans.push(span);
    return span;
  }

  end(span: FaultSpan): void {
    span.toMs = this.nowMs();
  }

  /** Notes an instantaneous fault, such as the end of a process. */
  at(kind: string, target: string, excuse: Excuse | null = null): FaultSpan {
    const span = this.begin(kind, target, excuse);
    span.toMs = span.fromMs;
    return span;
  }

  /** Whether a fault lasts now. */
  get isQuiet(): boolean {
    return this.spans.every(({ toMs }) => Number.isFinite(toMs));
  }

  /**
   * Returns the fault that explains why a message was handed over at `firstMs` and again at `againMs`; null: none does.
   */
  excuseFor(channel: SoakChannel, firstMs: number, againMs: number): FaultSpan | null {
    return (
      this.spans.findLast(
        (span) =>
          span.excuse !== null &&
          (span.channel === null || span.channel === channel) &&
          // It began while the message was in flight, or the message left while it lasted, and the repeat came after it
          // began.
          span.fromMs <= firstMs + IN_FLIGHT_MS &&
          span.toMs >= firstMs - SLACK_MS &&
          span.fromMs <= againMs + SLACK_MS,
      ) ?? null
    );
  }

  /** The most by which a time that the service received at that moment can be wrong (ms), because its clock was. */
  timeErrorMs(atMs: number): number {
    const errors = this.spans
      .filter(({ fromMs, toMs }) => fromMs <= atMs + TOLD_MS && toMs >= atMs - TOLD_MS)
      .map(({ shiftMs }) => Math.abs(shiftMs));
    return Math.max(0, ...errors);
  }

  /** The faults that lasted at that time or ended shortly before. */
  around(atMs: number, withinMs = 30_000): readonly FaultSpan[] {
    return this.spans.filter(({ fromMs, toMs }) => fromMs <= atMs && toMs >= atMs - withinMs);
  }
}
