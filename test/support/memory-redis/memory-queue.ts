import type { Clock } from "../../../src/domain/clock.ts";
import type { Random } from "../../../src/domain/random.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { QuietTelemetry } from "../quiet-telemetry.ts";
import { MemoryConnection } from "./memory-connection.ts";
import type { MemoryRedis } from "./memory-redis.ts";

export const QUEUED_CHANNELS = [
  { name: "email", letter: "e" },
  { name: "whatsapp", letter: "w" },
  { name: "wallet", letter: "p" },
] as const;

/** The queue that ships, with its scripts, on a Redis in memory that several may share. Never loses a call. */
export class MemoryQueue extends RedisQueue {
  constructor(
    readonly server: MemoryRedis,
    clock: Clock,
    random: Random,
    open: () => MemoryConnection = () => new MemoryConnection(server),
  ) {
    const address = { connect: open, connectToHear: () => new MemoryConnection(server) };
    super({ channels: QUEUED_CHANNELS, address, clock, random, telemetry: new QuietTelemetry() });
    // It hears from now on, without waiting.
    void this.start();
  }
}
