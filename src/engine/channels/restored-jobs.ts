import type { Channel } from "../../domain/channels/channel.ts";
import { acceptedMs } from "../../domain/ids.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { NotSentBefore } from "../queue/restored-queue.ts";
import { extended } from "./extended-channel.ts";

const NOT_SENT: Outcome = {
  kind: "failed",
  error:
    "the message was queued when a backup was taken, which was restored since; it may have been sent and is not sent again",
};

/**
 * Fails the jobs that a restored backup had queued, if the operator decided so: they may have been sent after the backup. Their
 * charges are refunded, as for any job that fails.
 */
export class RestoredJobs {
  /**
   * @param before Jobs accepted before are not sent, by the time in their ids, unless they were retried since, or scheduled for
   * a time that had not come when the backup was restored; null: all are.
   */
  constructor(private readonly before: NotSentBefore | null) {}

  over(channel: Channel): Channel {
    const { before } = this;
    if (before === null) return channel;
    const isOld = (job: QueuedJob) => acceptedMs(job) <= before.acceptedMs && (job.dueMs ?? 0) <= before.dueMs;
    const screen = channel.screen?.bind(channel);
    return extended(channel, {
      deliver: async (job, ...others) => (isOld(job) ? NOT_SENT : channel.deliver(job, ...others)),
      ...(screen === undefined
        ? {}
        : { screen: async (job, ...others) => (isOld(job) ? NOT_SENT : screen(job, ...others)) }),
    });
  }
}
