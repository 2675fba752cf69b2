import { type RedisConnection, redisFailure } from "./connection.ts";
import { META_KEY } from "./keys.ts";

const AGREED = "agreed_ms";

/**
 * Redis' clock, and a time that is stored there across restarts. All calls reject with `TransportError` or
 * `UnavailableError`.
 */
export class RedisTime {
  constructor(private readonly connection: RedisConnection) {}

  /** Returns unix ms. */
  async nowMs(): Promise<number> {
    const [seconds, micros] = await this.connection.time().catch(fail);
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Null: none was stored. */
  async read(): Promise<number | null> {
    const text = await this.connection.hget(META_KEY, AGREED).catch(fail);
    return text === null || !/^\d{1,15}$/.test(text) ? null : Number(text);
  }

  async write(ms: number): Promise<void> {
    await this.connection.hset(META_KEY, AGREED, String(Math.floor(ms))).catch(fail);
  }
}

function fail(error: unknown): never {
  throw redisFailure(error);
}
