import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import type { Calls } from "../domain/calls.ts";
import { Mirror } from "./backup/mirror.ts";
import { servePglite } from "./served-pglite.ts";

export interface EmbeddedPostgres {
  readonly db: PgDatabase<PgQueryResultHKT>;
  /** Gives another process of this start access. */
  serveTo(calls: Calls): void;
  /** Copies the data to the folder `target` while it is in use. The copy is of use once it has been finished. */
  copyTo(target: string): Promise<UnfinishedCopy>;
  close(): Promise<void>;
}

export interface UnfinishedCopy {
  /**
   * Holds every statement and transaction while `work` runs; `finish` brings the copy up to date, and rejects soon after its
   * signal has aborted.
   */
  hold<T>(work: (finish: (signal: AbortSignal) => Promise<void>) => Promise<T>): Promise<T>;
}

/**
 * Opens PostgreSQL inside this process, with its data in `folder`, which is created if missing (that takes about 5 s; later
 * starts take half a second).
 *
 * It takes no lock on the folder: two processes on one folder destroy it, so the caller must hold a lock. It also never waits
 * for the disk. A change survives the death of this process, because the operating system has it by then; a power loss can lose
 * the last seconds of changes. `close` writes a checkpoint, so the next start has nothing to replay. If that is not enough, use
 * a PostgreSQL server.
 */
export async function openPglite(folder: string): Promise<EmbeddedPostgres> {
  if (!existsSync(join(folder, "PG_VERSION"))) await create(folder);
  const client = await PGlite.create({ fs: new PrivateNodeFs(folder) });
  await client.exec("set client_min_messages = warning");
  let closed: Promise<void> | null = null;
  return {
    db: drizzle({ client }),
    serveTo: (calls) => servePglite(client, calls),
    async copyTo(target) {
      const copy = new Mirror(folder, target);
      await client.exec("checkpoint");
      await copy.update();
      return {
        hold: (work) =>
          client.transaction((held) =>
            work(async (signal) => {
              await held.exec("checkpoint");
              await copy.update(signal);
            }),
          ),
      };
    },
    close: () => {
      closed ??= closeClient(client);
      return closed;
    },
  };
}

/** Created in a sibling folder, so a process that dies meanwhile leaves nothing that looks like a database. */
async function create(folder: string): Promise<void> {
  const unfinished = `${folder}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await closeClient(await PGlite.create({ fs: new PrivateNodeFs(unfinished) }));
  await rename(unfinished, folder);
}

async function closeClient(client: PGlite): Promise<void> {
  if (client.closed) return;
  await client.exec("checkpoint");
  await client.close();
}

/** Emscripten's request to change a file's attributes in its file system over Node's. */
type SetAttributes = (file: unknown, attributes: { readonly mode?: number }) => void;

/**
 * Keeps PGlite's files on disk private to their owner. Emscripten sets a file's mode right after creating it, which overrides
 * our umask.
 */
export class PrivateNodeFs extends NodeFS {
  override async init(...args: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const { emscriptenOpts } = await super.init(...args);
    const preRun = [...(emscriptenOpts.preRun ?? []), maskModes];
    return { emscriptenOpts: { ...emscriptenOpts, preRun } };
  }
}

function maskModes({ NODEFS }: { readonly NODEFS: object }): void {
  // The two operation tables of Emscripten's library_nodefs.js, for files by name and for open files.
  const tables = NODEFS as { node_ops: { setattr: SetAttributes }; stream_ops: { setattr: SetAttributes } };
  for (const table of [tables.node_ops, tables.stream_ops]) {
    const { setattr } = table;
    table.setattr = (file, attributes) =>
      setattr(file, attributes.mode === undefined ? attributes : { ...attributes, mode: attributes.mode & ~0o077 });
  }
}
