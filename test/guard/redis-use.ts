import type { Redis } from "ioredis";

/** The commands and bytes of Redis, by its own counters: the same on a busy machine as on an idle one. */
export interface RedisUse {
  /** Script calls: each is a round trip, and at most one write to the disk. */
  readonly scripts: number;
  /** Commands that the scripts made. */
  readonly commands: number;
  /** Bytes that its append-only file grew by. */
  readonly appended: number;
}

const SCRIPT_CALLS: ReadonlySet<string> = new Set(["evalsha", "eval", "fcall"]);
/** Inside a script each of these is a command of its own; outside they are this very count. */
const OURS: ReadonlySet<string> = new Set(["info", "config|resetstat", "ping"]);

/** Counts Redis's work during `work`. */
export async function measureRedisUse(redis: Redis, work: () => Promise<unknown>): Promise<RedisUse> {
  const before = await appendedBytes(redis);
  await redis.config("RESETSTAT");
  await work();
  const calls = await callsByCommand(redis);
  const appended = (await appendedBytes(redis)) - before;
  let scripts = 0;
  let commands = 0;
  for (const [command, count] of calls) {
    if (SCRIPT_CALLS.has(command)) scripts += count;
    else if (!OURS.has(command)) commands += count;
  }
  return { scripts, commands, appended };
}

async function callsByCommand(redis: Redis): Promise<ReadonlyMap<string, number>> {
  const text = await redis.info("commandstats");
  return new Map(
    Array.from(text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm), ([, name = "", calls]) => [name, Number(calls)]),
  );
}

async function appendedBytes(redis: Redis): Promise<number> {
  return Number(/^aof_current_size:(\d+)/m.exec(await redis.info("persistence"))?.[1]);
}
