/**
 * A recorder in a process of its own that is killed with its first batch: `bun dying-recorder.ts <redis socket> <folder>
 * <moment>`. Started by the tests.
 */

import { setTimeout as delay } from "node:timers/promises";
import { CHANNELS } from "../../../src/app/channels.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { Recorder } from "../../../src/engine/recorder/recorder.ts";
import { ClickHouse } from "../../../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../../../src/events/clickhouse-event-writer.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { openClickHouse } from "../../support/private-clickhouse.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { DYING_DATABASE, type DyingMoment } from "./dying-moments.ts";

const [, , redisPath = "", folder = "", given = ""] = process.argv;
// The tests give one of the moments.
const moment = given as DyingMoment;

function die(when: DyingMoment): void {
  if (when === moment) process.kill(process.pid, "SIGKILL");
}

const clickhouse = new ClickHouse({
  client: (await openClickHouse(folder)).writer,
  clock: systemClock,
  timeoutMs: 20_000,
});
const dyingBetween = new Proxy(clickhouse, {
  get(of, name) {
    if (name !== "insert") return Reflect.get(of, name).bind(of);
    return async (sql: string, body: string) => {
      await of.insert(sql, body);
      die("events are inserted");
    };
  },
});
const writer = new ClickHouseEventWriter(dyingBetween, { database: DYING_DATABASE, cluster: null }, systemClock);

const ports = { clock: systemClock, random: systemRandom, telemetry: new QuietTelemetry() };
const queue = new RedisQueue({ channels: CHANNELS, address: { kind: "socket", path: redisPath }, ...ports });
await queue.start();
// The former holder of the leases was killed.
await queue.forgetOwners(2);
new Recorder({
  ...ports,
  queue,
  eventStore: {
    async write(token, rows, attempt) {
      die("batch is marked");
      if (moment === "batch is being inserted") void delay(Math.random() * 25).then(() => die(moment));
      const outcome = await writer.write(token, rows, attempt);
      die("batch is inserted");
      return outcome;
    },
  },
  owner: `recorder-${process.pid}`,
  shards: 2,
}).start();
