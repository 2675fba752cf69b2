import { Cluster, type Redis } from "ioredis";
import { ConfigurationError } from "../../domain/errors.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { engineLimits } from "../limits.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
import { META_KEY } from "./keys.ts";
import metaLua from "./meta.lua" with { type: "text" };
import { Script } from "./script.ts";
import migrateLua from "./verbs/migrate.lua" with { type: "text" };

/**
 * The format of the queue in Redis. A process that does not support a queue's format does not touch it: it would miss
 * data, and write data that others cannot read. Format 1 had no marker; its leases expired, its records left by the
 * bucket, and payloads of failed jobs stayed. Format 2 kept tenants' loads and rate windows in two hashes.
 */
export const QUEUE_FORMAT = 3;

/**
 * How to treat a queue of an older format: `refuse` leaves it alone, because other processes may be using it.
 * `unmarked`: the same, but a queue without a marker counts as emptied while this release was working on it.
 */
export type FormatMode = "migrate" | "refuse" | "unmarked";

const script = new Script(migrateLua, "run");
const metaScript = new Script(metaLua, "run");
const FORMAT = "format";

/** Explains why a queue of another format is left alone. */
export function foreignFormat(format: number): ConfigurationError {
  const remedy =
    format < QUEUE_FORMAT
      ? "Stop all processes of the former release and run `waybill migrate` (npm start -- migrate)."
      : "Start a release that reads it.";
  return new ConfigurationError(`The queue has format ${format}, and this release reads ${QUEUE_FORMAT}. ${remedy}`);
}

/** Settings that all processes of a queue must agree on. */
export class Meta {
  constructor(
    private readonly connection: RedisConnection,
    private readonly telemetry: Telemetry,
  ) {}

  read(): Promise<Record<string, string>> {
    return this.connection.hgetall(META_KEY).catch(fail);
  }

  /**
   * Sets a field unless it is set already; returns its value afterwards. Reads first: a full Redis refuses this write
   * even if it would not change the value, and a process that could not start could not drain it.
   */
  async claim(field: string, value: string): Promise<string> {
    const claimed = await this.connection.hget(META_KEY, field).catch(fail);
    if (claimed !== null) return claimed;
    await this.connection.hsetnx(META_KEY, field, value).catch(fail);
    return (await this.connection.hget(META_KEY, field).catch(fail)) ?? value;
  }

  async set(field: string, value: string): Promise<void> {
    await this.setAll({ [field]: value });
  }

  /** Sets all fields or none. */
  async setAll(fields: Readonly<Record<string, string>>): Promise<void> {
    await this.connection.hset(META_KEY, fields).catch(fail);
  }

  /** Returns the queue's id, which becomes the given one if it has none yet. */
  async name(id: string): Promise<string> {
    return String(await metaScript.run(this.connection, [META_KEY], ["name", id]));
  }

  /**
   * Raises the mark of the queue with this id, records the current marks of other stores, and returns its own. Null:
   * the queue was replaced by another, or by an empty one.
   */
  async mark(id: string, by: number, others: Readonly<Record<string, number>>): Promise<number | null> {
    const args = ["mark", id, by, ...Object.entries(others).flat()];
    const mark = await metaScript.run(this.connection, [META_KEY], args);
    return mark === null ? null : Number(mark);
  }

  /** Returns the queue's format; an empty queue will be written in this release's format. */
  async format(): Promise<number> {
    return Number((await this.read())[FORMAT] ?? (await this.formatOfUnmarked()));
  }

  /**
   * Ensures that the queue has the format that this release writes: a new queue gets it, an older one is migrated if
   * `mode` allows it. Rejects with `ConfigurationError` if the queue must not be touched. Call before anything else.
   */
  async openFormat(mode: FormatMode): Promise<void> {
    if (mode === "unmarked") await this.claim(FORMAT, String(QUEUE_FORMAT));
    const format = await this.format();
    if (format === QUEUE_FORMAT) {
      await this.claim(FORMAT, String(QUEUE_FORMAT));
      return;
    }
    if (format > QUEUE_FORMAT || mode !== "migrate") throw foreignFormat(format);
    await this.migrate(format);
  }

  /** Returns the format of a queue without a marker; an empty queue gets this release's. */
  private async formatOfUnmarked(): Promise<number> {
    for await (const keys of this.keys()) if (keys.length > 0) return 1;
    return QUEUE_FORMAT;
  }

  /** Works in pieces, each safe to repeat: an interrupted migration starts over. The marker comes last. */
  private async migrate(from: number): Promise<void> {
    this.telemetry.log("info", "migrating the queue to this release's format", { from, to: QUEUE_FORMAT });
    const args = [from, engineLimits.leaveTogetherMax];
    const prefixes = new Set<string>();
    for await (const keys of this.keys()) {
      for (const key of keys) {
        const prefix = key.slice(0, key.indexOf("}") + 1);
        if (!prefixes.has(prefix)) await script.run(this.connection, [prefix], args);
        prefixes.add(prefix);
        if (from > 1) continue;
        const name = key.slice(prefix.length);
        if (/^:(failed|repeated):/.test(name)) await this.connection.unlink(key).catch(fail);
        if (name.startsWith(":jobs:")) await script.run(this.connection, [prefix, key], args);
      }
    }
    if (from === 1) {
      for (const role of ["dispatcher", "recorder"]) await this.connection.unlink(`wb:{members}:${role}`).catch(fail);
    }
    await this.connection.hset(META_KEY, FORMAT, QUEUE_FORMAT).catch(fail);
    this.telemetry.log("info", "the queue has this release's format", { format: QUEUE_FORMAT });
  }

  /** Lists all keys of all shards, in batches. */
  private async *keys(): AsyncGenerator<readonly string[]> {
    const nodes: readonly Redis[] =
      this.connection instanceof Cluster ? this.connection.nodes("master") : [this.connection];
    for (const node of nodes) {
      for (let cursor = "0", begun = false; cursor !== "0" || !begun; begun = true) {
        const [next, keys] = await node.scan(cursor, "MATCH", "wb:{s*", "COUNT", 1000).catch(fail);
        cursor = next;
        yield keys;
      }
    }
  }
}

function fail(error: unknown): never {
  throw redisFailure(error);
}
