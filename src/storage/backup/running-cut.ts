import { Database } from "bun:sqlite";
import { copyFile, link, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { Redis } from "ioredis";
import type { Clock } from "../../domain/clock.ts";
import { UnavailableError } from "../../domain/errors.ts";
import type { EmbeddedPostgres } from "../postgres/pglite.ts";
import type { RedisChild } from "../redis/redis-child.ts";
import { HoldLimit } from "./hold-limit.ts";
import { isMissing, unlessMissing } from "./missing.ts";
import { appendOnlyNames, isKept, isLeftOut, STAGING } from "./parts.ts";
import { endNotes, PayloadLinks } from "./payload-links.ts";

/**
 * The longest time for which a store is held; a cut that takes longer fails. Well below a lease's term and a command's
 * deadline.
 */
const PAUSE_MS = 4_000;
const FREEZE = "backup";
const TOO_BUSY = `the machine is too busy: the stores could not be copied within ${PAUSE_MS / 1000} s; nothing was backed up`;

/**
 * Waits until no writes to the event store are in progress, and permits none while `work` runs except through the
 * client of `work`. Reads go on.
 */
export type HoldEvents = <T>(work: (client: ClickHouseClient) => Promise<T>) => Promise<T>;

export interface CutPorts {
  readonly home: string;
  readonly postgres: Pick<EmbeddedPostgres, "copyTo">;
  readonly holdEvents: HoldEvents;
  /** The event store's database. */
  readonly database: string;
  readonly redis: RedisChild["address"];
  readonly clock: Clock;
}

/** A copy of the data folder at one point in time. */
export interface Cut {
  /** Laid out like the data folder. */
  readonly folder: string;
  readonly cutMs: number;
  /** Lengths of its files that still grow. */
  readonly lengths: ReadonlyMap<string, number>;
  /** How long writes were blocked. */
  readonly heldMs: number;
}

/**
 * Prepares a backup of a running start: a copy of its data folder at one point in time, beside the data, mostly of hard
 * links.
 *
 * Invariants:
 * B1. The copy equals the disk's contents if every process of the start had died at that time. Redis takes no writes
 *     while all other parts are copied, and every change that one store makes because of another passes through Redis
 *     or follows it. So a start on the copy recovers as it does after a crash, with every promise for crashes.
 * B2. No insert into the event store is in progress at that time, and the tokens that its tables remember are copied
 *     too: a batch that is still in the queue is either stored completely, or not at all, or is completed under its
 *     token.
 * B3. No store is held longer than `PAUSE_MS` (the event store from the end of its running statements), even if other
 *     parts do not answer: work that takes longer is left to end by itself, while the stores go on. Redis ends its
 *     pause even if this process dies.
 * B4. Only the staging folder changes, except that the event store hard-links its parts there.
 * B5. It rejects only when all work that was left to end by itself has ended.
 */
export async function takeCut(ports: CutPorts): Promise<Cut> {
  const { home, postgres, holdEvents, clock } = ports;
  const folder = join(home, STAGING);
  await removeStaging(home);
  await mkdir(folder, { mode: 0o700 });
  // Read again from an earlier position, the mail log produces no duplicates: so it may be copied before the rest.
  await copyFirstLevel(home, folder);
  // Before the registry, so that less has changed since its copy when the stores are held.
  const payloads = await PayloadLinks.begin(home, folder);
  const copy = await postgres.copyTo(join(folder, "postgres"));
  const limit = new HoldLimit(clock, PAUSE_MS, () => new UnavailableError(TOO_BUSY));
  try {
    // In this order: callers of the registry are served again soon, while the recorder can wait.
    const cut = await holdEvents((events) =>
      limit.within(async () => {
        const tables = await mergeTrees(events, ports.database);
        const work: HeldWork = { ports, folder, payloads, events, tables, signal: limit.signal };
        return copy.hold((finish) => limit.within(() => copyHeld(work, finish)));
      }),
    );
    await payloads.finish();
    return cut;
  } finally {
    await limit.settled();
  }
}

interface HeldWork {
  readonly ports: CutPorts;
  readonly folder: string;
  readonly payloads: PayloadLinks;
  readonly events: ClickHouseClient;
  /** The event store's tables. */
  readonly tables: readonly string[];
  /** Aborts when the stores go on. */
  readonly signal: AbortSignal;
}

/** Copies the parts for which registry and event store are held; also pauses Redis. */
async function copyHeld(work: HeldWork, finishPostgres: (signal: AbortSignal) => Promise<void>): Promise<Cut> {
  const { ports, folder, payloads, signal } = work;
  const { home, clock } = ports;
  const pause = await Pause.begin(ports.redis, clock);
  try {
    const cutMs = clock.nowMs();
    await payloads.cut();
    const lengths = await linkAppendOnly(home, folder);
    const parts = [finishPostgres(signal), copyEventStore(work)];
    // Waits for the other one, too, if one fails.
    await Promise.allSettled(parts);
    await Promise.all(parts);
    return { folder, cutMs, lengths, heldMs: await pause.end() };
  } finally {
    pause.close();
  }
}

/** Removes the remains of a backup, finished or not. Only for the process that holds the folder's lock. */
export async function removeStaging(home: string): Promise<void> {
  await endNotes(join(home, STAGING));
  await rm(join(home, STAGING), { recursive: true, force: true });
  await rm(join(home, "clickhouse", "shadow", FREEZE), { recursive: true, force: true });
}

/** The period in which Redis takes no writes. */
class Pause {
  private constructor(
    private readonly redis: Redis,
    private readonly clock: Clock,
    private readonly begunMs: number,
  ) {}

  /** Resolves when every acknowledged write is in the append-only file, and no more are acknowledged. */
  static async begin(address: RedisChild["address"], clock: Clock): Promise<Pause> {
    const options = {
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      connectTimeout: PAUSE_MS,
      commandTimeout: PAUSE_MS,
    };
    const redis =
      address.kind === "socket" ? new Redis({ ...options, path: address.path }) : new Redis(address.url, options);
    // Each command rejects by itself.
    redis.on("error", () => undefined);
    try {
      await redis.connect();
      const begunMs = clock.monotonicMs();
      await redis.call("CLIENT", "PAUSE", PAUSE_MS, "WRITE");
      return new Pause(redis, clock, begunMs);
    } catch (error) {
      redis.disconnect();
      throw new UnavailableError("Redis could not be held for the backup", { cause: error });
    }
  }

  /**
   * Ends the pause; returns how long it lasted. Rejects if it was over before, or if Redis was restarted meanwhile.
   */
  async end(): Promise<number> {
    try {
      await this.redis.call("CLIENT", "UNPAUSE");
    } catch (error) {
      throw new UnavailableError("Redis ended during the backup; nothing was backed up", { cause: error });
    }
    const heldMs = this.clock.monotonicMs() - this.begunMs;
    if (heldMs < PAUSE_MS) return heldMs;
    throw new UnavailableError(TOO_BUSY);
  }

  /** A pause that was not ended is over after `PAUSE_MS`. */
  close(): void {
    if (this.redis.status === "ready") this.redis.call("CLIENT", "UNPAUSE").catch(() => undefined);
    this.redis.disconnect();
  }
}

async function copyFirstLevel(home: string, folder: string): Promise<void> {
  for (const entry of await readdir(home, { withFileTypes: true })) {
    const [from, to] = [join(home, entry.name), join(folder, entry.name)];
    // The copy of its database includes the contents of this file.
    if (!isKept(entry) || entry.name.endsWith("-wal")) continue;
    if (entry.name.endsWith(".sqlite")) copyDatabase(from, to);
    else await copyFile(from, to);
  }
}

/** Copies a database that is in use consistently. */
function copyDatabase(from: string, to: string): void {
  const database = new Database(from, { readonly: true });
  try {
    database.run("VACUUM INTO ?", [to]);
  } finally {
    database.close();
  }
}

/**
 * Links files that only grow, or never change, so their first bytes stay as they are: a rewrite makes new files. If a
 * rewrite ends meanwhile, it removes files that the manifest named; then the new manifest is read.
 */
async function linkAppendOnly(home: string, folder: string): Promise<ReadonlyMap<string, number>> {
  const path = "redis/appendonlydir";
  const manifestFile = `${path}/appendonly.aof.manifest`;
  for (let left = 5; ; left -= 1) {
    const target = join(folder, path);
    await rm(target, { recursive: true, force: true });
    await mkdir(target, { recursive: true, mode: 0o700 });
    const manifest = await readFile(join(home, manifestFile), "utf8");
    try {
      const lengths = new Map<string, number>();
      for (const name of appendOnlyNames(manifest)) {
        await link(join(home, path, name), join(target, name));
        lengths.set(`${path}/${name}`, (await lstat(join(target, name))).size);
      }
      await writeFile(join(folder, manifestFile), manifest, { mode: 0o600 });
      return lengths;
    } catch (error) {
      if (left === 0 || !isMissing(error)) throw error;
    }
  }
}

/** Includes their databases, also that of sealed contents. */
async function mergeTrees(events: ClickHouseClient, database: string): Promise<readonly string[]> {
  const result = await events.query({
    query: `SELECT concat(database, '.\`', name, '\`') FROM system.tables
WHERE database IN ('${database}', '${database}_sealed') AND engine LIKE '%MergeTree'`,
    format: "JSONCompact",
  });
  const { data } = await result.json<readonly [string]>();
  return data.map(([name]) => name);
}

/**
 * Copies the event store. The engine hard-links the parts of a table, which never change; everything else in its folder
 * is small and is copied.
 */
async function copyEventStore({ ports: { home }, folder, events, tables, signal }: HeldWork): Promise<void> {
  // One after the other: they count their calls in one file, which the engine does not lock.
  for (const table of tables) {
    signal.throwIfAborted();
    await events.command({ query: `ALTER TABLE ${table} FREEZE WITH NAME '${FREEZE}'` });
  }
  const target = join(folder, "clickhouse");
  await mkdir(target, { mode: 0o700 });
  const frozen = join(home, "clickhouse", "shadow", FREEZE, "store");
  await rename(frozen, join(target, "store")).catch(unlessMissing);
  await copyAround(join(home, "clickhouse"), target, { path: "clickhouse", signal });
}

/** Copies the files around the parts: definitions, and the tokens that a table remembers. */
async function copyAround(
  from: string,
  to: string,
  { path, signal }: { readonly path: string; readonly signal: AbortSignal },
): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  const entries = await readdir(from, { withFileTypes: true }).catch(() => []);
  const isTable = entries.some(({ name }) => name === "format_version.txt");
  for (const entry of entries) {
    const inside = `${path}/${entry.name}`;
    if (isLeftOut(inside)) continue;
    signal.throwIfAborted();
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isFile()) await copyFile(source, target).catch(unlessMissing);
    else if (entry.isDirectory() && (!isTable || NOT_PARTS.has(entry.name))) {
      await copyAround(source, target, { path: inside, signal });
    }
  }
}

const NOT_PARTS: ReadonlySet<string> = new Set(["deduplication_logs", "detached"]);
