import { BackOff } from "../../domain/back-off.ts";
import type { Channel } from "../../domain/channels/channel.ts";
import { sleep } from "../../domain/clock.ts";
import type { ChannelName, QueuedJob } from "../../domain/jobs/job.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { logFailure } from "../../domain/telemetry.ts";
import { engineLimits } from "../limits.ts";

export interface GiveBackPorts extends RuntimePorts {
  readonly channels: ReadonlyMap<ChannelName, Channel>;
}

/** Limits how long a job's failure may be prepared: `ended` aborts when the term's deliveries must end. */
export interface GivingTerm {
  readonly ended: AbortSignal;
  /** Whether no other owner may work on the job. While that is in doubt, giving back waits. */
  isSurelyHeld(): boolean;
}

/**
 * Calls the channel's `giveBack` for the job, and repeats that until it succeeds. False: the term ended first. Then the
 * job must not be recorded as failed: its next owner does both. Never rejects.
 */
export async function giveBack(
  { channels, clock, random, telemetry }: GiveBackPorts,
  job: QueuedJob,
  term: GivingTerm,
) {
  const channel = channels.get(job.channel);
  if (channel?.giveBack === undefined) return true;
  const { promise: ended, resolve } = Promise.withResolvers<false>();
  const end = () => resolve(false);
  const waits = new BackOff(engineLimits.giveBackRetry, random);
  // The term is long, so its listeners must not outlive the job.
  term.ended.addEventListener("abort", end, { once: true });
  try {
    while (!term.ended.aborted) {
      try {
        if (term.isSurelyHeld()) return await Promise.race([channel.giveBack(job).then(() => true), ended]);
      } catch (error) {
        telemetry.count("give_backs_failed", { channel: job.channel });
        logFailure(telemetry, "giving back failed and is repeated", error, { job: job.jobId });
      }
      await sleep(clock, waits.nextMs(), term.ended);
    }
    return false;
  } finally {
    term.ended.removeEventListener("abort", end);
  }
}
