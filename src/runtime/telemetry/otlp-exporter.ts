import { type BackOffBounds, backOffMs } from "../../domain/back-off.ts";
import { sleep } from "../../domain/clock.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { type EndedSpan, encodeSpans, type TracedService } from "./otlp-json.ts";

/** Spans that wait, including those of the request in flight, and the most of one owner. */
export const BUFFER_SPANS_MAX = 4_096;
export const OWNER_SPANS_MAX = BUFFER_SPANS_MAX / 4;
const BATCH_SPANS_MAX = 512;
/** How long a span waits for others. */
const LINGER_MS = 1_000;
const DEADLINE_MS = 5_000;
const RETRY: BackOffBounds = { firstMs: 1_000, maxMs: 30_000 };
const TRIES_MAX = 5;
/** Answers after which the specification allows a repeat. */
const REPEATABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** `refused`: for good. `away`: another try may succeed. `stopped`: it was not tried. */
type Sent = "taken" | "refused" | "away" | "stopped";

export interface OtlpExporterOptions extends RuntimePorts {
  /** The endpoint that accepts traces by OTLP over HTTP, `/v1/traces` included. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly service: TracedService;
}

/**
 * Sends ended spans to a collector, as JSON.
 *
 * E1. `BUFFER_SPANS_MAX` spans wait at most, `OWNER_SPANS_MAX` of one owner; further ones are dropped and counted.
 * E2. At most one request is in flight, for at most `DEADLINE_MS`. One that may be repeated is tried `TRIES_MAX` times
 *     with growing pauses; then its spans are dropped and counted.
 * E3. Only `stop` waits for the collector, for a bounded time.
 */
export class OtlpExporter {
  /** The spans in flight are the first of them. */
  private waiting: Waiting[] = [];
  private readonly owners = new Map<string, number>();
  private sending: Promise<void> | null = null;
  private isAway = false;
  /** Ends the pause in which spans wait for others. */
  private lingering = new AbortController();
  /** Ends all pauses. */
  private readonly stopping = new AbortController();
  /** Ends all sending. */
  private readonly stopped = new AbortController();

  constructor(private readonly options: OtlpExporterOptions) {}

  /** Returns at once. */
  take(span: EndedSpan, owner: string): void {
    const ofOwner = this.owners.get(owner) ?? 0;
    if (this.stopped.signal.aborted) return this.drop("stopped", 1);
    if (this.waiting.length >= BUFFER_SPANS_MAX) return this.drop("full", 1);
    if (ofOwner >= OWNER_SPANS_MAX) return this.drop("share", 1);
    this.owners.set(owner, ofOwner + 1);
    this.waiting.push({ span, owner });
    if (this.waiting.length >= BATCH_SPANS_MAX) this.lingering.abort();
    this.sending ??= this.sendAll();
  }

  /** Sends the waiting spans, and drops those not sent after `ms`. Safe to call twice. */
  async stop(ms: number): Promise<void> {
    this.stopping.abort();
    this.lingering.abort();
    const late = this.options.clock.setTimer(ms, () => this.stopped.abort());
    await this.sending;
    late.cancel();
    this.stopped.abort();
  }

  private async sendAll(): Promise<void> {
    while (this.waiting.length > 0) {
      if (this.waiting.length < BATCH_SPANS_MAX && !this.stopping.signal.aborted) {
        this.lingering = new AbortController();
        await sleep(this.options.clock, LINGER_MS, this.lingering.signal);
      }
      const batch = this.waiting.slice(0, BATCH_SPANS_MAX);
      const sent = await this.sendUntilTaken(batch.map(({ span }) => span));
      if (sent === "taken") this.options.telemetry.count("trace_spans_exported", {}, batch.length);
      else this.drop(sent, batch.length);
      this.leave(batch);
    }
    this.sending = null;
  }

  private leave(batch: readonly Waiting[]): void {
    this.waiting = this.waiting.slice(batch.length);
    for (const { owner } of batch) {
      const left = (this.owners.get(owner) ?? 0) - 1;
      if (left > 0) this.owners.set(owner, left);
      else this.owners.delete(owner);
    }
  }

  private async sendUntilTaken(spans: readonly EndedSpan[]): Promise<Sent> {
    const { clock, random, service } = this.options;
    const body = encodeSpans(service, spans);
    for (let tries = 1; ; tries += 1) {
      if (this.stopped.signal.aborted) return "stopped";
      const { sent, why } = await this.send(body);
      this.note(sent, why);
      if (sent !== "away" || tries === TRIES_MAX) return sent;
      await sleep(clock, backOffMs(RETRY, tries - 1, random), this.stopping.signal);
      // Without pauses, a stop permits only one more try.
      if (this.stopping.signal.aborted) tries = Math.max(tries, TRIES_MAX - 1);
    }
  }

  private async send(body: string): Promise<{ readonly sent: Sent; readonly why: string }> {
    const { url, headers, clock } = this.options;
    const late = new AbortController();
    const deadline = clock.setTimer(DEADLINE_MS, () => late.abort());
    try {
      const { status, body: answer } = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        redirect: "manual",
        signal: AbortSignal.any([late.signal, this.stopped.signal]),
      });
      // Ignores the body, whatever its content and length.
      await answer?.cancel();
      if (status >= 200 && status < 300) return { sent: "taken", why: "" };
      return { sent: REPEATABLE.has(status) ? "away" : "refused", why: `it answered ${status}` };
    } catch (error) {
      return { sent: "away", why: late.signal.aborted ? "it did not answer in time" : String(error) };
    } finally {
      deadline.cancel();
    }
  }

  private note(sent: Sent, error: string): void {
    const { telemetry } = this.options;
    const isAway = sent !== "taken";
    if (isAway && !this.isAway) telemetry.log("warn", "traces cannot be exported", { error });
    if (!isAway && this.isAway) telemetry.log("info", "traces are exported again");
    this.isAway = isAway;
  }

  private drop(reason: "full" | "share" | "stopped" | "refused" | "away", spans: number): void {
    this.options.telemetry.count("trace_spans_dropped", { reason }, spans);
  }
}

interface Waiting {
  readonly span: EndedSpan;
  readonly owner: string;
}
