import type { Clock, Timer } from "../../domain/clock.ts";
import type { OverviewBody } from "./schema.ts";

const LOOK_MS = 2_000;
const HEARTBEAT_MS = 15_000;
const LISTENERS_MAX = 100;
/** A listener that reads no event for this long is disconnected. */
const STALLED_MS = 60_000;

export interface LiveOverviewPorts {
  readonly overview: { now(): Promise<OverviewBody> };
  readonly clock: Clock;
  /** Aborts when the process begins to stop. */
  readonly whenDraining: AbortSignal | undefined;
}

export interface NewListener {
  /** Whether it may still listen; checked before every event. */
  isAdmitted(): boolean;
  /** Called once. */
  onEnd(): void;
}

/**
 * The overview as server-sent events (WHATWG HTML, 9.2): at once, and again when it has changed.
 *
 * Invariants:
 * L1. Stores are read only while there are listeners; many listeners cost one read every two seconds.
 * L2. At most one event waits for a listener: a slow one gets the latest instead of all. A listener that reads no event for
 *     a minute is disconnected.
 * L3. A listener ends within a few seconds once its operator is no longer admitted, and at once when the process begins to stop.
 */
export class LiveOverview {
  private readonly listeners = new Set<Listener>();
  private look: Timer | null = null;
  private told = "";
  private event: Uint8Array<ArrayBuffer> = new Uint8Array();

  constructor(private readonly ports: LiveOverviewPorts) {
    ports.whenDraining?.addEventListener("abort", () => this.endAll(), { once: true });
  }

  get listening(): number {
    return this.listeners.size;
  }

  /** Null: the maximum number of listeners is reached, or the process is stopping. */
  async listen(wanted: NewListener): Promise<ReadableStream<Uint8Array> | null> {
    const { overview, whenDraining } = this.ports;
    if (this.listeners.size >= LISTENERS_MAX) return null;
    const listener = new Listener(this.ports.clock, wanted, () => this.left(listener));
    this.listeners.add(listener);
    this.take(await overview.now());
    if (whenDraining?.aborted) listener.end();
    if (listener.hasEnded) return null;
    listener.offer(this.event);
    this.lookSoon();
    return listener.stream;
  }

  private lookSoon(): void {
    this.look ??= this.ports.clock.setTimer(LOOK_MS, () => void this.lookAgain());
  }

  private async lookAgain(): Promise<void> {
    for (const listener of this.listeners) if (!listener.isAdmitted()) listener.end();
    if (this.listeners.size > 0) {
      const hasChanged = this.take(await this.ports.overview.now());
      for (const listener of this.listeners) {
        if (hasChanged) listener.offer(this.event);
        else listener.beat();
      }
    }
    this.look = null;
    if (this.listeners.size > 0) this.lookSoon();
  }

  /** Whether it differs from the last event. */
  private take(body: OverviewBody): boolean {
    const essence = summarise(body);
    if (essence === this.told) return false;
    this.told = essence;
    this.event = new TextEncoder().encode(`data: ${JSON.stringify(body)}\n\n`);
    return true;
  }

  private left(listener: Listener): void {
    this.listeners.delete(listener);
    if (this.listeners.size > 0) return;
    this.look?.cancel();
    this.look = null;
  }

  private endAll(): void {
    for (const listener of this.listeners) listener.end();
  }
}

const BEAT = new TextEncoder().encode(": still here\n\n");

/** One listener, which receives an event once it has read the previous one. */
class Listener {
  hasEnded = false;
  readonly stream: ReadableStream<Uint8Array>;
  private controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** The latest unread event, and the time since when one has been waiting (monotonic). */
  private next: { readonly bytes: Uint8Array; readonly sinceMs: number } | null = null;
  private onOffer: (() => void) | null = null;
  private tookAtMs: number;

  constructor(
    private readonly clock: Clock,
    private readonly wanted: NewListener,
    private readonly onLeft: () => void,
  ) {
    this.tookAtMs = clock.monotonicMs();
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.controller = controller),
        pull: () => this.give(),
        cancel: () => this.leave(),
      },
      { highWaterMark: 0 },
    );
  }

  isAdmitted(): boolean {
    return this.wanted.isAdmitted();
  }

  offer(bytes: Uint8Array): void {
    const nowMs = this.clock.monotonicMs();
    const sinceMs = this.next?.sinceMs ?? nowMs;
    if (nowMs - sinceMs > STALLED_MS) return this.breakOff();
    this.next = { bytes, sinceMs };
    this.onOffer?.();
  }

  /** Sends a keep-alive after a long silence, which also detects that the listener is gone. */
  beat(): void {
    if (this.clock.monotonicMs() - this.tookAtMs >= HEARTBEAT_MS) this.offer(this.next?.bytes ?? BEAT);
  }

  /** Ends the stream. */
  end(): void {
    if (this.hasEnded) return;
    this.leave();
    this.controller?.close();
  }

  private breakOff(): void {
    if (this.hasEnded) return;
    this.leave();
    this.controller?.error(new Error("the listener takes nothing"));
  }

  private async give(): Promise<void> {
    if (this.next === null) await new Promise<void>((resolve) => (this.onOffer = resolve));
    this.onOffer = null;
    if (this.hasEnded || this.next === null) return;
    this.controller?.enqueue(this.next.bytes);
    this.next = null;
    this.tookAtMs = this.clock.monotonicMs();
  }

  private leave(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.next = null;
    this.onOffer?.();
    this.onLeft();
    this.wanted.onEnd();
  }
}

const MEGABYTE = 1_000_000;
const LOOP_DELAY_STEP_MS = 100;

/** Summarises an overview for comparison, without the time and with constantly moving figures rounded. */
function summarise(body: OverviewBody): string {
  const { at: _, queue, processes, ...rest } = body;
  const memory = queue.redis_memory_bytes === null ? null : Math.round(queue.redis_memory_bytes / MEGABYTE);
  return JSON.stringify({
    ...rest,
    queue: { ...queue, redis_memory_bytes: memory },
    processes: processes.map((process) => ({
      ...process,
      loop_delay_ms: Math.round(process.loop_delay_ms / LOOP_DELAY_STEP_MS),
      event_store_lag_seconds: Math.round(process.event_store_lag_seconds ?? -1),
    })),
  });
}
