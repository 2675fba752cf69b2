import type { IncomingMessage, IncomingMessages, ReceivedMessage } from "../../domain/channels/incoming-messages.ts";
import { limits } from "../../domain/limits.ts";
import type { Page } from "../../domain/page.ts";
import { type Done, done, type InvalidCursor } from "../../domain/store-result.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
import { Script } from "./script.ts";
import incomingLua from "./verbs/incoming.lua" with { type: "text" };

/** The fields of a message in the stream: its id, and the message as JSON text. */
const FIELD = { ID_FIELD: "i", MESSAGE_FIELD: "m" } as const;

const script = new Script(incomingLua, "refuse", FIELD);

/** One hash tag for both: a script touches one slot. */
const STREAM = "wb:{incoming}:messages";
const IDS = "wb:{incoming}:ids";
const CALL_MESSAGES_MAX = 500;
/** An entry of the stream: unix milliseconds and a number. */
const ENTRY_ID = /^(\d{1,15})-(\d{1,15})$/;

/** A stream of the newest messages. */
export class RedisIncomingMessages implements IncomingMessages {
  constructor(private readonly connection: RedisConnection) {}

  async record(messages: readonly IncomingMessage[]): Promise<number> {
    let fresh = 0;
    for (let at = 0; at < messages.length; at += CALL_MESSAGES_MAX) {
      const args = messages.slice(at, at + CALL_MESSAGES_MAX).flatMap((each) => [each.id, JSON.stringify(each)]);
      fresh += Number(await script.run(this.connection, [STREAM, IDS], [limits.incomingMessagesMax, ...args]));
    }
    return fresh;
  }

  async page(cursor: string | null, limit: number): Promise<Done<Page<ReceivedMessage>> | InvalidCursor> {
    if (cursor !== null && !ENTRY_ID.test(cursor)) return { kind: "invalid_cursor" };
    const newest = cursor === null ? "+" : `(${cursor}`;
    const entries = await this.connection
      .xrevrange(STREAM, newest, "-", "COUNT", limit + 1)
      .catch((error: unknown) => Promise.reject(redisFailure(error)));
    const shown = entries.slice(0, limit);
    return done({
      items: shown.map(([entryId, fields]) => decode(entryId, fields)),
      nextCursor: entries.length > limit ? (shown.at(-1)?.[0] ?? null) : null,
    });
  }
}

function decode(entryId: string, fields: readonly string[]): ReceivedMessage {
  // Written by `record`, from an IncomingMessage.
  const message = JSON.parse(fields[fields.indexOf(FIELD.MESSAGE_FIELD) + 1] ?? "null") as IncomingMessage;
  return { ...message, receivedAtMs: Number(entryId.slice(0, entryId.indexOf("-"))) };
}
