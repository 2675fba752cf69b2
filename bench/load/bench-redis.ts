import { type RedisServer, startRedis } from "../../test/support/redis.ts";

/** The Redis that all variants share: append-only, `appendfsync always`. */
export function startBenchRedis(): Promise<RedisServer> {
  return startRedis(["--hash-max-listpack-entries", "256", "--hash-max-listpack-value", "256"]);
}

export async function usedBytes(redis: RedisServer): Promise<number> {
  const info = await redis.client.info("memory");
  return Number(/used_memory:(\d+)/.exec(info)?.[1] ?? Number.NaN);
}
