import { closeSync, existsSync, fsyncSync, openSync, readdirSync, writeSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PGlite, types } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import type { Calls } from "../../domain/calls.ts";
import { Mirror } from "../backup/mirror.ts";
import { openingStore } from "../opening-store.ts";
import { servePglite } from "./served-pglite.ts";

export interface EmbeddedPostgres {
  readonly db: PgDatabase<PgQueryResultHKT>;
  /** Gives another process of this start access. */
  serveTo(calls: Calls): void;
  /** Copies the data to the folder `target` while it is in use. The copy is usable once it has been finished. */
  copyTo(target: string): Promise<UnfinishedCopy>;
  close(): Promise<void>;
}

/**
 * PGlite's own parsers work digit by digit: four megabytes of a pass would block the process for half a second instead
 * of a twentieth.
 */
const BYTES = {
  parsers: { [types.BYTEA]: (text: string) => Uint8Array.fromHex(text.slice(2)) },
  serializers: { [types.BYTEA]: (bytes: Uint8Array) => `\\x${bytes.toHex()}` },
};

export interface UnfinishedCopy {
  /**
   * Blocks all statements and transactions while `work` runs; `finish` brings the copy up to date, and rejects soon
   * after its signal has aborted.
   */
  hold<T>(work: (finish: (signal: AbortSignal) => Promise<void>) => Promise<T>): Promise<T>;
}

/**
 * Opens PostgreSQL inside this process, with its data in `folder`, which is created if missing (that takes about 5 s,
 * longer on a disk that syncs slowly; later starts take half a second).
 *
 * It takes no lock on the folder: two processes on one folder destroy it, so the caller must hold a lock. It also waits
 * for the disk only at checkpoints. A change survives the death of this process, because the operating system has it by
 * then; a power loss can lose the last seconds of changes. `close` writes a checkpoint, so the next start has no log to
 * replay. If that is not enough, use a PostgreSQL server.
 *
 * Where PostgreSQL would end its server (PANIC: the disk is full at a checkpoint, or where the write-ahead log grows),
 * this process ends, as if it was killed.
 */
export async function openPglite(folder: string): Promise<EmbeddedPostgres> {
  const complaints = new Complaints(folder);
  const lastWords = () => complaints.latest();
  return await openingStore({ store: "the registry (PostgreSQL)", folder, lastWords }, async () => {
    if (!existsSync(folder) || readdirSync(folder).length === 0) await create(folder, complaints);
    else if (!existsSync(join(folder, "PG_VERSION"))) throw new Error("it has no file PG_VERSION");
    const client = await PGlite.create({ fs: new PrivateNodeFs(folder), onStderr: complaints.hear, ...BYTES });
    onPanic(client, endProcess);
    await client.exec("set client_min_messages = warning");
    complaints.stop();
    return over(client, folder);
  });
}

/** PostgreSQL's output while it starts. If it fails, its error does not show the reason. */
class Complaints {
  private readonly lines: string[] = [];
  private isDone = false;

  constructor(private readonly folder: string) {}

  /** Stores a line of output. */
  readonly hear = (line: string): boolean => {
    if (this.isDone || !COMPLAINT.test(line)) return true;
    this.lines.push(line.replace(COMPLAINT, "").replaceAll(PLACE_INSIDE, this.folder).trim());
    if (this.lines.length > COMPLAINTS_MAX) this.lines.shift();
    return true;
  };

  /** Returns the last ones; null: there was no output. */
  latest(): string | null {
    return this.lines.length === 0 ? null : this.lines.join("; ");
  }

  stop(): void {
    this.isDone = true;
  }
}

const COMPLAINT = /^.*?\b(?:ERROR|FATAL|PANIC|DETAIL): */;
const COMPLAINTS_MAX = 3;
/** The folder's path in the engine's own file system. */
const PLACE_INSIDE = "/pglite/data";

function over(client: PGlite, folder: string): EmbeddedPostgres {
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

/**
 * Calls `end` at once when PostgreSQL panics. PGlite reports that like any other error, and would spin in the event
 * loop forever at the next statement: timers and signals would never be handled again.
 */
export function onPanic(client: PGlite, end: (error: Error) => void): void {
  const heeding =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      try {
        return await call(...args);
      } catch (error) {
        if (error instanceof Error && "severity" in error && error.severity === "PANIC") end(error);
        throw error;
      }
    };
  // All statements use one of the two.
  client.execProtocol = heeding(client.execProtocol.bind(client));
  client.execProtocolStream = heeding(client.execProtocolStream.bind(client));
}

/** Kills the process. An orderly end is not reliable: other engines in this process write to the same disk. */
function endProcess({ message }: Error): void {
  writeSync(2, `the embedded PostgreSQL has ended: ${message}\n`);
  process.kill(process.pid, "SIGKILL");
}

/**
 * Creates the database in a sibling folder, so a process that dies meanwhile leaves no folder that looks like a
 * database.
 */
async function create(folder: string, { hear }: Complaints): Promise<void> {
  const unfinished = `${folder}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  const client = await PGlite.create({ fs: new PrivateNodeFs(unfinished), onStderr: hear });
  onPanic(client, endProcess);
  await closeClient(client);
  await rename(unfinished, folder);
}

async function closeClient(client: PGlite): Promise<void> {
  if (client.closed) return;
  await client.exec("checkpoint");
  await client.close();
}

/** Emscripten's request to change a file's attributes in its file system over Node's. */
type SetAttributes = (file: unknown, attributes: { readonly mode?: number }) => void;
/** A file in it, and a file that is open. */
interface File {
  readonly name: string;
}
interface OpenFile {
  readonly node: File;
}
type Write = (file: OpenFile, ...what: readonly unknown[]) => number;

interface NodeFiles {
  /** The operations of library_nodefs.js, for files by name and for open files. */
  readonly node_ops: { setattr: SetAttributes };
  readonly stream_ops: { setattr: SetAttributes; write: Write };
  realPath(file: File): string;
}

/**
 * Keeps PGlite's files on disk private to their owner: Emscripten sets a file's mode right after creating it, which
 * overrides our umask. Also syncs them when PostgreSQL declares them complete (`sync` gets their paths): PGlite runs it
 * without fsync.
 */
export class PrivateNodeFs extends NodeFS {
  constructor(
    folder: string,
    private readonly sync: (path: string) => void = onDisk,
  ) {
    super(folder);
  }

  override async init(...args: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const { emscriptenOpts } = await super.init(...args);
    const syncs = ({ NODEFS }: { readonly NODEFS: object }) => syncBeforeControl(NODEFS as NodeFiles, this.sync);
    const preRun = [...(emscriptenOpts.preRun ?? []), maskModes, syncs];
    return { emscriptenOpts: { ...emscriptenOpts, preRun } };
  }
}

function maskModes({ NODEFS }: { readonly NODEFS: object }): void {
  const { node_ops, stream_ops } = NODEFS as NodeFiles;
  for (const table of [node_ops, stream_ops]) {
    const { setattr } = table;
    table.setattr = (file, attributes) =>
      setattr(file, attributes.mode === undefined ? attributes : { ...attributes, mode: attributes.mode & ~0o077 });
  }
}

/**
 * Syncs earlier writes before `pg_control`, which names the checkpoint from which to replay. If it reached the disk
 * before the data it refers to, it would name a checkpoint that a power loss has taken, and the database would no
 * longer open.
 */
function syncBeforeControl(files: NodeFiles, sync: (path: string) => void): void {
  const written = new Set<File>();
  const { write } = files.stream_ops;
  files.stream_ops.write = (file, ...what) => {
    const { node } = file;
    if (node.name !== "pg_control") {
      written.add(node);
      return write(file, ...what);
    }
    for (const each of written) attempt(() => sync(files.realPath(each)));
    written.clear();
    const bytes = write(file, ...what);
    attempt(() => sync(files.realPath(node)));
    return bytes;
  };
}

/**
 * Ignores a failure to sync a file, which may have been removed since it was written. One that cannot be synced is as
 * safe as PGlite itself leaves it. PostgreSQL would end its only session over the error, and the registry with it; a
 * failing disk shows at the next read or write.
 */
function attempt(work: () => void): void {
  try {
    work();
  } catch {}
}

function onDisk(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
