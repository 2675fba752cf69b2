import type { Channel } from "../../domain/channels/channel.ts";
import { isOutage } from "../../domain/errors.ts";
import type { QueuedJob, StoredPayload } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { PayloadStore } from "../../domain/jobs/payload-store.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { extended } from "./extended-channel.ts";
import type { PayloadRoom } from "./payload-room.ts";

export interface StoredPayloadsPorts {
  readonly store: Pick<PayloadStore, "get">;
  /** Names a payload by its content, as it was when it was accepted. */
  nameOf(payload: Uint8Array): StoredPayload;
  readonly room: PayloadRoom;
  readonly telemetry: Telemetry;
}

/**
 * Wraps channels to deliver jobs whose payload is stored outside the queue: the payload is in memory only while the channel
 * handles the job.
 *
 * L1. The payloads that a process has fetched are bounded in bytes (`PayloadRoom`).
 * L2. A payload that is missing, or is not what was accepted, fails its job and is logged as our own error: retrying will not
 *     bring it back.
 * L3. While the store is unavailable or there is no room, the job waits, and no attempt is counted.
 */
export class StoredPayloads {
  constructor(private readonly ports: StoredPayloadsPorts) {}

  /** The channel, extended to take such jobs. */
  over(channel: Channel): Channel {
    const deliver: Channel["deliver"] = (job, tenant, signal, onHandOver) =>
      job.stored === undefined
        ? channel.deliver(job, tenant, signal, onHandOver)
        : this.fetched(job, job.stored, signal, (whole) => {
            // Waiting for room and for the store must not count as the relay's time.
            onHandOver?.();
            return channel.deliver(whole, tenant, signal, onHandOver);
          });
    const inner = channel.screen?.bind(channel);
    const screen: Channel["screen"] =
      inner === undefined
        ? undefined
        : (job, tenant, signal) =>
            job.stored === undefined
              ? inner(job, tenant, signal)
              : this.fetched(job, job.stored, signal, (whole) => inner(whole, tenant, signal));
    return extended(channel, screen === undefined ? { deliver } : { deliver, screen });
  }

  private async fetched<T extends Outcome | null>(
    job: QueuedJob,
    stored: StoredPayload,
    signal: AbortSignal,
    work: (whole: QueuedJob) => Promise<T>,
  ): Promise<T | Outcome> {
    const { room } = this.ports;
    const { tenantId } = job;
    if (!(await room.take(tenantId, stored.bytes, signal))) return LATER;
    try {
      const payload = await this.readPayload(job, stored);
      return typeof payload === "string" ? await work({ ...job, payload }) : payload;
    } finally {
      room.give(tenantId, stored.bytes);
    }
  }

  /** The payload's text, or the job's outcome without it. */
  private async readPayload(job: QueuedJob, stored: StoredPayload): Promise<string | Outcome> {
    const { store, nameOf, telemetry } = this.ports;
    const fields = { tenant: job.tenantId, job: job.jobId };
    try {
      const bytes = await store.get(job);
      if (bytes === null) {
        telemetry.log("error", "the payload of a job is gone", fields);
        return lost("is gone");
      }
      const found = nameOf(bytes);
      if (found.sha256 === stored.sha256) return UTF8.decode(bytes);
      telemetry.log("error", "the payload of a job is not what was accepted", {
        ...fields,
        bytes: found.bytes,
        accepted_bytes: stored.bytes,
      });
      return lost("is damaged");
    } catch (error) {
      if (!isOutage(error)) throw error;
      telemetry.log("warn", "the payload of a job could not be fetched", { ...fields, error: String(error) });
      return LATER;
    }
  }
}

const UTF8 = new TextDecoder();
const LATER_MS = 1_000;

const LATER: Outcome = {
  kind: "retry",
  why: "the message's content could not be fetched",
  afterMs: LATER_MS,
  isUncounted: true,
  isUnsent: true,
};

function lost(how: string): Outcome {
  return { kind: "failed", error: `the message could not be sent: its stored content ${how}` };
}
