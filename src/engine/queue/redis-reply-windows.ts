import type { ReplyWindows, WrittenTo } from "../../domain/channels/reply-windows.ts";
import { limits } from "../../domain/limits.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
import { Script } from "./script.ts";
import writersLua from "./writers.lua" with { type: "text" };

const script = new Script(writersLua, "refuse", {
  WRITERS_MAX: limits.writersMax,
  WRITERS_KEPT_MS: limits.writersKeptMs,
});

/** Prefix of a number's id. One hash tag for all numbers: a script touches one slot. */
const PREFIX = "wb:{incoming}:writers:";
const CALL_MESSAGES_MAX = 500;

/** A sorted set of writers for each number. */
export class RedisReplyWindows implements ReplyWindows {
  constructor(private readonly connection: RedisConnection) {}

  async note(messages: readonly WrittenTo[]): Promise<void> {
    for (let at = 0; at < messages.length; at += CALL_MESSAGES_MAX) {
      const piece = messages.slice(at, at + CALL_MESSAGES_MAX);
      const args = piece.flatMap(({ phoneNumberId, from, writtenAtMs }) => [phoneNumberId, from, writtenAtMs ?? ""]);
      await script.run(this.connection, [PREFIX], args);
    }
  }

  async lastWrittenMs(phoneNumberId: string, from: readonly string[]): Promise<number | null> {
    const scores = await this.connection
      .zmscore(PREFIX + phoneNumberId, ...from)
      .catch((error: unknown) => Promise.reject(redisFailure(error)));
    const times = scores.flatMap((score) => (score === null ? [] : [Number(score)]));
    return times.length === 0 ? null : Math.max(...times);
  }
}
