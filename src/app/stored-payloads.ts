import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channels/channel.ts";
import type { Clock } from "../domain/clock.ts";
import type { ContentStore } from "../domain/content-store.ts";
import { isOutage } from "../domain/errors.ts";
import type { QueuedJob, StoredPayload } from "../domain/jobs/job.ts";
import type { Outcome } from "../domain/jobs/outcome.ts";
import type { PayloadRef, PayloadStore } from "../domain/jobs/payload-store.ts";
import type { FailedJobs } from "../domain/jobs/retry.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { PayloadSweep, type PayloadSweepPorts } from "../engine/dispatch/payload-sweep.ts";
import { nameOfPayload } from "../http/sending/accept-job.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { ContentFiles } from "../storage/content-files.ts";
import { openingStore } from "../storage/opening-store.ts";
import { PayloadFiles } from "../storage/payload-files.ts";
import { extended } from "./extended-channel.ts";
import type { OpenRegistry } from "./open-registry.ts";
import type { Shutdown } from "./shutdown.ts";

export interface Payloads {
  readonly store: PayloadStore;
  /** The API's stores beside the queue: large payloads, and files that jobs send. */
  readonly served: { readonly payloads: PayloadStore; readonly contents: ContentStore };
  /** Wraps a channel to fetch its jobs' large payloads. */
  over(channel: Channel): Channel;
}

interface PayloadsPorts extends Pick<PayloadSweepPorts, "queue" | "eventStore"> {
  readonly registry: Pick<OpenRegistry, "payloads" | "jobContents" | "directory">;
  /** The content of failed jobs. */
  readonly failedJobs: FailedJobs;
  /** Whether this process sweeps payloads; a process that can read the event store does. */
  readonly sweeps: boolean;
  /** Whether another process has opened the files. */
  readonly joins: boolean;
}

/** Opens the stores of large payloads and of files: rows beside the registry's, or files in the data folder if the registry is embedded. */
export async function openPayloads(
  { config, telemetry }: { readonly config: Config; readonly telemetry: Telemetry },
  shutdown: Shutdown,
  { registry, failedJobs, sweeps, joins, ...ports }: PayloadsPorts,
): Promise<Payloads> {
  const isEmbedded = config.databaseUrl === null;
  const store = isEmbedded ? await openFiles(config.home, shutdown, joins) : registry.payloads;
  const contents = isEmbedded ? await openContents(config.home, shutdown) : registry.jobContents;
  const { directory } = registry;
  if (sweeps) {
    const common = { ...ports, directory, clock: systemClock, random: systemRandom, telemetry };
    const keepsFailed = async ({ tenantId, jobId }: PayloadRef) =>
      ((await failedJobs.failedJobs(tenantId, [jobId])).get(jobId)?.content ?? null) !== null;
    for (const sweep of [
      new PayloadSweep({ ...common, payloads: store }),
      new PayloadSweep({ ...common, payloads: contents, keepsFailed, gauge: "stored_files" }),
    ]) {
      shutdown.start("history", "payload sweep", sweep);
    }
  }
  const stored = new StoredPayloads({ store, room: new PayloadRoom(systemClock), telemetry });
  return { store, served: { payloads: store, contents }, over: (channel) => stored.over(channel) };
}

function openFiles(home: string, shutdown: Shutdown, joins: boolean): Promise<PayloadFiles> {
  const folder = join(home, "payloads");
  const opened = openingStore({ store: "the store of large payloads", folder }, () =>
    joins ? PayloadFiles.join(folder) : PayloadFiles.open(folder),
  );
  return shutdown.keep("large payloads", opened);
}

function openContents(home: string, shutdown: Shutdown): Promise<ContentFiles> {
  const folder = join(home, "payloads");
  const opened = openingStore({ store: "the store of files", folder }, () => ContentFiles.open(folder));
  return shutdown.keep("files of jobs", opened);
}

export interface StoredPayloadsPorts {
  readonly store: Pick<PayloadStore, "get">;
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
    const { store, telemetry } = this.ports;
    const fields = { tenant: job.tenantId, job: job.jobId };
    try {
      const bytes = await store.get(job);
      if (bytes === null) {
        telemetry.log("error", "the payload of a job is gone", fields);
        return lost("is gone");
      }
      const found = nameOfPayload(bytes);
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

const MIB = 1024 * 1024;

/** For all large payloads being delivered. */
export const ROOM_BYTES = 64 * MIB;
/** For those of one tenant. */
export const SHARE_BYTES = 16 * MIB;
/** The part of the memory budget reserved for tenants that hold none of it. */
const RESERVE_BYTES = 16 * MIB;
/** How long a delivery waits for room before its job is rescheduled. */
export const ROOM_WAIT_MS = 5_000;

interface Waiting {
  readonly tenantId: string;
  readonly bytes: number;
  begin(): void;
}

/**
 * Room in memory for large payloads.
 *
 * R1. All admitted payloads together take at most `ROOM_BYTES`, those of one tenant at most `SHARE_BYTES`; a larger payload is
 *     admitted when there is no other.
 * R2. Payloads are admitted in order of arrival, but one that does not fit blocks no other.
 * R3. A tenant that already holds room may hold at most half of what the others leave outside the reserve: tenants with slow
 *     relays leave room for another tenant's first payload.
 */
export class PayloadRoom {
  private taken = 0;
  private readonly shares = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly clock: Clock) {}

  /** Whether there is room now or soon. Room taken must be given back. */
  take(tenantId: string, bytes: number, signal: AbortSignal): Promise<boolean> {
    if (this.fits(tenantId, bytes)) {
      this.add(tenantId, bytes);
      return Promise.resolve(true);
    }
    if (signal.aborted) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = (isIn: boolean) => {
      timer.cancel();
      signal.removeEventListener("abort", giveUp);
      this.waiting.delete(waiting);
      if (isIn) this.add(tenantId, bytes);
      resolve(isIn);
    };
    const giveUp = () => end(false);
    const waiting = { tenantId, bytes, begin: () => end(true) };
    const timer = this.clock.setTimer(ROOM_WAIT_MS, giveUp);
    signal.addEventListener("abort", giveUp);
    this.waiting.add(waiting);
    return promise;
  }

  give(tenantId: string, bytes: number): void {
    this.add(tenantId, -bytes);
    for (const next of this.waiting) if (this.fits(next.tenantId, next.bytes)) next.begin();
  }

  private fits(tenantId: string, bytes: number): boolean {
    const share = this.shares.get(tenantId) ?? 0;
    const left = ROOM_BYTES - RESERVE_BYTES - (this.taken - share);
    if (share > 0 && share + bytes > Math.min(SHARE_BYTES, left / 2)) return false;
    return this.taken === 0 || this.taken + bytes <= ROOM_BYTES;
  }

  private add(tenantId: string, bytes: number): void {
    this.taken += bytes;
    const share = (this.shares.get(tenantId) ?? 0) + bytes;
    if (share > 0) this.shares.set(tenantId, share);
    else this.shares.delete(tenantId);
  }
}
