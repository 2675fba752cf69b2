import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { noTelemetry, QUEUE_CHANNELS } from "./bench-world.ts";

/** A started queue on that Redis, with nothing of the app around it. */
export async function openBenchQueue(redisUrl: string): Promise<RedisQueue> {
  const queue = new RedisQueue({
    channels: QUEUE_CHANNELS,
    address: { kind: "url", url: redisUrl },
    clock: systemClock,
    random: systemRandom,
    telemetry: noTelemetry,
  });
  await queue.start();
  return queue;
}
