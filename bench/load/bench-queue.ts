import { RedisQueue, type RedisQueueOptions } from "../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { noTelemetry, QUEUE_CHANNELS } from "./bench-world.ts";

/** Options of a queue on that Redis, without the rest of the app. */
export function benchQueueOptions(redisUrl: string): RedisQueueOptions {
  return {
    channels: QUEUE_CHANNELS,
    address: { kind: "url", url: redisUrl },
    clock: systemClock,
    random: systemRandom,
    telemetry: noTelemetry,
  };
}

export async function openBenchQueue(redisUrl: string): Promise<RedisQueue> {
  const queue = new RedisQueue(benchQueueOptions(redisUrl));
  await queue.start();
  return queue;
}
