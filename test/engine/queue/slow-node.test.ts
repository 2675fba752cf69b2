import { expect, test } from "bun:test";
import { ShardKeeper } from "../../../src/engine/leases/shard-keeper.ts";
import type { RedisConnection } from "../../../src/engine/queue/connection.ts";
import { RedisLeases } from "../../../src/engine/queue/verbs/lease.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** A cluster without leases, whose node with every second shard never answers. */
function halfHung(): RedisConnection {
  const isHung = (key: string) => /\{s\d[13579]\}/.test(key);
  const answer = <T>(key: string, reply: T) => (isHung(key) ? new Promise<T>(() => {}) : Promise.resolve(reply));
  const connection = {
    hmget: (key: string) => answer(key, [null, null]),
    evalsha: (_sha: string, _keys: number, key: string, verb: string, owner: string) =>
      answer(key, verb === "beat" ? [owner, "1"] : "token"),
  };
  // The two commands that maintain leases.
  return connection as unknown as RedisConnection;
}

test("shards on other nodes find their owner while one node hangs", async () => {
  const clock = new VirtualClock();
  const leases = new RedisLeases(halfHung(), clock, new SeededRandom(1));
  const owned: number[] = [];
  const keeper = new ShardKeeper({
    leases: Object.assign(leases, { onRelease: () => () => {} }),
    role: "dispatcher",
    owner: "p1",
    shards: 8,
    clock,
    telemetry: new QuietTelemetry(),
    onTerm: ({ shard, closing }) => {
      owned.push(shard);
      return new Promise((resolve) => closing.addEventListener("abort", () => resolve(), { once: true }));
    },
  });
  keeper.start();
  await clock.advance(0);
  await clock.advance(5_000);
  expect(owned.toSorted((a, b) => a - b)).toEqual([0, 2, 4, 6]);
  const stopped = keeper.stop();
  await clock.advance(10_000);
  await stopped;
});
