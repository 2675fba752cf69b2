import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channels/channel.ts";
import type { ContentStore } from "../domain/content-store.ts";
import type { PayloadRef, PayloadStore } from "../domain/jobs/payload-store.ts";
import type { FailedJobs } from "../domain/jobs/retry.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { PayloadRoom } from "../engine/channels/payload-room.ts";
import { StoredPayloads } from "../engine/channels/stored-payloads.ts";
import { PayloadSweep, type PayloadSweepPorts } from "../engine/dispatch/payload-sweep.ts";
import { nameOfPayload } from "../http/sending/accept-job.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { ContentFiles } from "../storage/content-files.ts";
import { openingStore } from "../storage/opening-store.ts";
import { PayloadFiles } from "../storage/payload-files.ts";
import type { OpenRegistry } from "./open-registry.ts";

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
  const stored = new StoredPayloads({ store, nameOf: nameOfPayload, room: new PayloadRoom(systemClock), telemetry });
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
