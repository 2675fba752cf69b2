import type { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../test/support/redis.ts";

/** The Redis that all variants share: append-only, `appendfsync always`. */
export function startBenchRedis(): Promise<RedisServer> {
  return startRedis(["--hash-max-listpack-entries", "256", "--hash-max-listpack-value", "256"]);
}

export async function usedBytes({ client }: Pick<RedisServer, "client">): Promise<number> {
  return readFigure(await client.info("memory"), "used_memory");
}

/** CPU time that Redis reports for its only thread, in milliseconds, fsync included. */
export async function redisCpuMs(client: Redis): Promise<number> {
  const text = await client.info("cpu");
  return (readFigure(text, "used_cpu_sys") + readFigure(text, "used_cpu_user")) * 1000;
}

/** Size of its append-only file in bytes. */
export async function appendedBytes(client: Redis): Promise<number> {
  return readFigure(await client.info("persistence"), "aof_current_size");
}

function readFigure(text: string, name: string): number {
  return Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(text)?.[1] ?? Number.NaN);
}

const META_KEY = "wb:{meta}";

/** Removes all keys except the queue's own description: a Waybill whose queue is gone would end, or not start. */
export async function emptied(redis: Redis): Promise<void> {
  const meta = await redis.dumpBuffer(META_KEY);
  const commands = redis.multi().flushall();
  if (meta !== null) commands.restore(META_KEY, 0, meta);
  await commands.exec();
}
