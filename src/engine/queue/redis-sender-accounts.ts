import type { NumberOfAccount, SenderAccounts } from "../../domain/channels/sender-accounts.ts";
import type { Clock } from "../../domain/clock.ts";
import { remember } from "../../domain/remember.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";

/** Prefix of an account's id. One hash tag, shared with all data from the chat provider's calls. */
const PREFIX = "wb:{incoming}:account:";
/** An account that no call has named for this long is forgotten. */
const KEPT_MS = 180 * 24 * 60 * 60_000;
/** A known number is written again after this time, which keeps it. */
const NOTED_MS = 24 * 60 * 60_000;
const NOTED_MAX = 10_000;

/** A hash for each account: its numbers, by id. */
export class RedisSenderAccounts implements SenderAccounts {
  /** The numbers that were written, and when (monotonic ms): each call of the provider repeats them. */
  private readonly noted = new Map<string, number>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  async note(numbers: readonly NumberOfAccount[]): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    for (const { accountId, phoneNumberId, displayNumber } of numbers) {
      const key = JSON.stringify([accountId, phoneNumberId, displayNumber]);
      if (nowMs - (this.noted.get(key) ?? Number.NEGATIVE_INFINITY) < NOTED_MS) continue;
      const calls = this.connection.multi();
      if (displayNumber === null) calls.hsetnx(PREFIX + accountId, phoneNumberId, "");
      else calls.hset(PREFIX + accountId, phoneNumberId, displayNumber);
      calls.pexpire(PREFIX + accountId, KEPT_MS);
      await calls.exec().catch((error: unknown) => Promise.reject(redisFailure(error)));
      remember(this.noted, { key, value: nowMs, max: NOTED_MAX });
    }
  }

  async findNumbers(accountId: string, displayNumber: string | null): Promise<readonly string[]> {
    const known = await this.connection
      .hgetall(PREFIX + accountId)
      .catch((error: unknown) => Promise.reject(redisFailure(error)));
    const numbers = Object.entries(known);
    const shown = numbers.filter(([, digits]) => digits === displayNumber);
    return (displayNumber !== null && shown.length > 0 ? shown : numbers).map(([id]) => id);
  }
}
