import type { Channel } from "../../domain/channels/channel.ts";
import type { Clock, Timer } from "../../domain/clock.ts";
import type { ChannelName, QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { limits } from "../../domain/limits.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { Tracer } from "../../domain/tracing.ts";
import { traceAttempt } from "./job-traces.ts";

export interface DeliverPorts {
  readonly channels: ReadonlyMap<ChannelName, Channel>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Absent: tracing is off. */
  readonly tracer?: Tracer;
}

/** A delivery in flight. */
interface Attempt {
  readonly aborter: AbortController;
  /** Names the relay in metrics. */
  readonly provider: string;
  /** Called when the relay starts to receive the message. */
  onHandOver(): void;
}

const UNANSWERED = { kind: "retry", why: "the provider did not answer in time" } as const;

/**
 * Runs one delivery. Always resolves to an outcome, within its channel's `deliveryMsMax` plus the grace period after
 * the abort.
 */
export async function deliver(
  ports: DeliverPorts,
  job: QueuedJob,
  tenant: Tenant | null,
  { aborter, provider, onHandOver }: Attempt,
): Promise<Outcome> {
  const { channels, clock, telemetry } = ports;
  if (tenant === null) return { kind: "failed", error: "the tenant no longer exists", cause: "gone" };
  const channel = channels.get(job.channel);
  if (channel === undefined) {
    return { kind: "failed", error: `the channel ${job.channel} is not available`, cause: "gone" };
  }

  if (job.stored === undefined) onHandOver();
  const startedAtMs = clock.monotonicMs();
  const ended = traceAttempt(ports.tracer, job, provider);
  const outcome = await awaitOutcome(ports, job, aborter, {
    call: () => channel.deliver(job, tenant, aborter.signal, onHandOver),
    brokenOff: { kind: "retry", why: "the delivery broke off" },
    msMax: channel.deliveryMsMax,
  });
  ended?.(outcome);
  const seconds = (clock.monotonicMs() - startedAtMs) / 1000;
  telemetry.count("deliveries", { channel: job.channel, outcome: outcome.kind });
  telemetry.time("delivery_seconds", seconds, { channel: job.channel });
  const isError = outcome.kind === "retry" ? outcome.isUncounted !== true : outcome.kind === "away";
  const result = isError ? "error" : "answered";
  telemetry.time("provider_call_seconds", seconds, { channel: job.channel, provider, result });
  return outcome;
}

/** Checks a job's content before its delivery. Null: it may be delivered. Always resolves, like `deliver`. */
export async function screen(
  ports: DeliverPorts,
  job: QueuedJob,
  tenant: Tenant | null,
  aborter: AbortController,
): Promise<Outcome | null> {
  const channel = ports.channels.get(job.channel);
  if (tenant === null || channel?.screen === undefined) return null;
  const look = channel.screen.bind(channel);
  const brokenOff = { kind: "retry", why: "the content could not be looked at", isUncounted: true } as const;
  return awaitOutcome(ports, job, aborter, { call: () => look(job, tenant, aborter.signal), brokenOff });
}

interface Ending<T> {
  readonly call: () => Promise<T>;
  /** The outcome if the channel throws. */
  readonly brokenOff: Outcome;
  readonly msMax?: number | undefined;
}

/** Returns a channel's answer, or a substitute if the channel throws or does not answer in time. */
async function awaitOutcome<T>(
  { clock, telemetry }: DeliverPorts,
  job: QueuedJob,
  aborter: AbortController,
  { call, brokenOff, msMax = limits.deliveryTimeoutMs }: Ending<T>,
): Promise<T | Outcome> {
  const cutOff = new CutOff(clock, aborter, msMax);
  try {
    const end = await Promise.race([call(), cutOff.passed]);
    return cutOff.isLate ? asSilence(end) : end;
  } catch (error) {
    telemetry.log("error", "a channel threw an error", { channel: job.channel, job: job.jobId, error: String(error) });
    return brokenOff;
  } finally {
    cutOff.cancel();
  }
}

/** Marks a delivery that was aborted at its deadline as unanswered by its relay, however its channel words it. */
function asSilence<T>(end: T | Outcome): T | Outcome {
  const isRetry = typeof end === "object" && end !== null && "kind" in end && end.kind === "retry";
  if (!isRetry || end.isUncounted) return end;
  // A channel that ignores its abort does not report which relay it contacted.
  return end.relay !== undefined || end === UNANSWERED ? { ...end, isSilence: true } : end;
}

/** Aborts a delivery at its deadline, and stops waiting for it some time after any abort. */
class CutOff {
  readonly passed: Promise<Outcome>;
  /** Whether the deadline has passed. */
  isLate = false;
  private readonly deadline: Timer;
  private grace: Timer | null = null;

  constructor(clock: Clock, aborter: AbortController, msMax: number) {
    this.deadline = clock.setTimer(msMax, () => {
      this.isLate = !aborter.signal.aborted;
      aborter.abort();
    });
    this.passed = new Promise((resolve) => {
      aborter.signal.onabort = () => {
        this.grace = clock.setTimer(limits.abortGraceMs, () => resolve(UNANSWERED));
      };
    });
  }

  cancel(): void {
    this.deadline.cancel();
    this.grace?.cancel();
  }
}
