import type { ChannelName } from "./job.ts";

/**
 * The reason why an unfinished job waits.
 *
 * | reason | waits for |
 * |---|---|
 * | `turn` | its turn among its tenant's jobs and those of others |
 * | `plan_pace` | the deliveries per second of its tenant's plan |
 * | `reputation` | the slower pace that its tenant's bounces or complaints have brought |
 * | `warm_up` | another day: its tenant's new sender has used up this day's allowance |
 * | `destination_pace` | the recipient's mail server, which accepts mail more slowly than it arrives |
 * | `throttled` | the provider, which asked its sender to go slower or to pause |
 * | `relay_away` | its mail server or provider, which does not answer |
 * | `schedule` | the time that it was scheduled for |
 * | `retry` | its next try |
 * | `paused` | an operator, who paused its tenant's deliveries |
 */
export const WAITS = [
  "turn",
  "plan_pace",
  "reputation",
  "warm_up",
  "destination_pace",
  "throttled",
  "relay_away",
  "schedule",
  "retry",
  "paused",
] as const;
export type WaitsFor = (typeof WAITS)[number];

export interface AskedJob {
  readonly tenantId: string;
  readonly channel: ChannelName;
  readonly jobId: string;
}

/** The part of a job's state that only the process that delivers its shard has. */
export interface OwnersAnswer {
  /** Null: its delivery is in flight. */
  readonly waitsFor: WaitsFor | null;
  /** Milliseconds until the next of its tenant queue's jobs may start; null: not known. */
  readonly forMs: number | null;
  /** For `relay_away`: the server's last reply, or a description of its failure. */
  readonly why?: string;
}

/** Questions between processes. */
export interface JobQuestions {
  /**
   * Asks the owner of the shard. Null: no owner answered in time. Rejects with `UnavailableError` or `TransportError`.
   */
  ask(shard: number, job: AskedJob): Promise<OwnersAnswer | null>;
  /** Registers this process's answer; it returns null if it does not own the shard or does not have the job. */
  onQuestion(answer: (shard: number, job: AskedJob) => OwnersAnswer | null): () => void;
}
