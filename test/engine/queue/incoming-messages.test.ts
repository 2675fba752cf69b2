import { beforeEach, expect, test } from "bun:test";
import type { IncomingMessage, ReceivedMessage } from "../../../src/domain/channels/incoming-messages.ts";
import { limits } from "../../../src/domain/limits.ts";
import type { Page } from "../../../src/domain/page.ts";
import { must } from "../../support/must.ts";
import { queue, redis, useQueueWorld } from "./queue-world.ts";

useQueueWorld();

beforeEach(async () => {
  await redis.client.flushall();
});

function message(id: string): IncomingMessage {
  const content = { id, text: { body: "¡Hola! 👋 \u0000" } };
  return {
    id,
    phoneNumberId: "106540352242922",
    from: "5491122334455",
    userId: null,
    username: null,
    name: null,
    type: "text",
    content,
  };
}

const messages = (count: number, from = 0) => Array.from({ length: count }, (_, i) => message(`wamid.${from + i}`));

async function idsKept(limit = 500): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<ReceivedMessage> = await must(queue.incomingMessages.page(cursor, limit));
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return ids;
}

test("a message comes back as it came in, with the time of its recording", async () => {
  const before = Date.now();
  expect(await queue.incomingMessages.record([message("wamid.1")])).toBe(1);
  const { items, nextCursor } = await must(queue.incomingMessages.page(null, 10));
  expect([items.length, nextCursor]).toEqual([1, null]);
  expect(items[0]).toEqual({ ...message("wamid.1"), receivedAtMs: expect.any(Number) });
  expect(items[0]?.receivedAtMs).toBeGreaterThanOrEqual(before - 1);
});

test("a repeated message is recorded once, also within one call", async () => {
  const [one, two] = [message("wamid.1"), message("wamid.2")];
  expect(await queue.incomingMessages.record([one, two, one])).toBe(2);
  expect(await queue.incomingMessages.record([two])).toBe(0);
  expect(await idsKept()).toEqual(["wamid.2", "wamid.1"]);
});

test("every message is on exactly one page, newest first", async () => {
  await queue.incomingMessages.record(messages(7));
  for (const limit of [1, 3, 7, 8]) {
    expect(await idsKept(limit)).toEqual(
      messages(7)
        .map(({ id }) => id)
        .reverse(),
    );
  }
});

test("an invalid cursor is refused", async () => {
  for (const cursor of ["", "-", "x", "1", "1-2-3", "(1-1"]) {
    expect(await queue.incomingMessages.page(cursor, 10)).toEqual({ kind: "invalid_cursor" });
  }
});

test("only the newest messages are kept, and nothing of the others", async () => {
  await queue.incomingMessages.record(messages(limits.incomingMessagesMax));
  await queue.incomingMessages.record(messages(1_200, limits.incomingMessagesMax));
  const ids = await idsKept();
  expect(ids).toHaveLength(limits.incomingMessagesMax);
  expect([ids[0], ids.at(-1)]).toEqual([`wamid.${limits.incomingMessagesMax + 1_199}`, "wamid.1200"]);
  const keys = await redis.client.keys("wb:{incoming}:*");
  expect(keys.toSorted()).toEqual(["wb:{incoming}:ids", "wb:{incoming}:messages"]);
  expect(await redis.client.hlen("wb:{incoming}:ids")).toBe(limits.incomingMessagesMax);
}, 90_000);
