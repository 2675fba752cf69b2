import type { RedisConnection } from "./connection.ts";
import { redisFailure } from "./connection.ts";

/** What a queue says about itself, by field: which registry and which event store it belongs to, and whose master key. */
const META_KEY = "wb:{meta}";

export type QueueMeta = Readonly<Record<string, string>>;

export async function readMeta(connection: RedisConnection): Promise<QueueMeta> {
  return await connection.hgetall(META_KEY).catch((error: unknown) => Promise.reject(redisFailure(error)));
}

/** Writes the field unless it is there. Answers what it holds then: of processes that start together, one wins. */
export async function claimMeta(connection: RedisConnection, field: string, value: string): Promise<string> {
  try {
    await connection.hsetnx(META_KEY, field, value);
    return (await connection.hget(META_KEY, field)) ?? value;
  } catch (error) {
    throw redisFailure(error);
  }
}

export async function setMeta(connection: RedisConnection, field: string, value: string): Promise<void> {
  await connection.hset(META_KEY, field, value).catch((error: unknown) => Promise.reject(redisFailure(error)));
}
