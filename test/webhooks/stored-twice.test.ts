import { afterAll, beforeAll, expect, test } from "bun:test";
import { ClickHouseEventFeed } from "../../src/events/clickhouse-event-feed.ts";
import { storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine } from "../support/clickhouse-event-store.ts";
import { eventually } from "../support/eventually.ts";
import { SenderWorld } from "./sender-world.ts";

let world: SenderWorld;
let engine: Awaited<ReturnType<typeof startEngine>>;
beforeAll(async () => {
  world = await SenderWorld.open(["acme"]);
  engine = await startEngine();
}, 300_000);
afterAll(async () => {
  await world.undo.run();
  await engine.stop();
}, 90_000);

test("an event that is stored twice is told once, and so is everything behind it", async () => {
  const { writer, reading, target } = await engine.eventStore("twice");
  const receiver = world.receiver();
  await world.webhook("acme", receiver.url, { batchMax: 100 });
  const rows = world.record("acme", 300).map((eventId) => storedEventRow(eventId));
  await writer.write("all", rows);
  // Under another token it is another row.
  await writer.write("again", rows.slice(40, 41));
  const ids = rows.map(({ eventId }) => eventId);
  world.start({ feed: new ClickHouseEventFeed(reading, target) });
  await eventually("the last one is told", () => receiver.eventIds.at(-1) === ids.at(-1));
  expect(receiver.eventIds).toEqual(ids);
});
