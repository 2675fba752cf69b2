import type { Clock } from "../../domain/clock.ts";
import { limits } from "../../domain/limits.ts";
import type { Telemetry } from "../../domain/telemetry.ts";

/** The clock readings of a pull. */
export interface HeardClocks {
  readonly redisMs: number;
  readonly shardTimeMs: number;
  /** When the pull was requested, by this process's clock. */
  readonly askedMs: number;
}

/** Clocks agree again if they have not differed for this long. */
const AGREED_MS = 60_000;

/**
 * Reports, once for all shards, that the clocks of Redis, of this process and of a shard differ: one of them is wrong.
 */
export class ClockWatch {
  /** When they last differed; null: they agree. */
  private apartAtMs: number | null = null;
  private hasCounted = false;

  constructor(
    private readonly clock: Clock,
    private readonly telemetry: Telemetry,
  ) {}

  heard({ redisMs, shardTimeMs, askedMs }: HeardClocks): void {
    const { clock, telemetry } = this;
    if (!this.hasCounted) this.begin();
    const nowMs = clock.nowMs();
    // Redis answered at some time in between.
    const answeredMs = Math.min(Math.max(redisMs, Math.min(askedMs, nowMs)), Math.max(askedMs, nowMs));
    const apartMs = Math.max(Math.abs(redisMs - answeredMs), Math.abs(redisMs - shardTimeMs));
    if (apartMs > limits.clocksApartMs) {
      if (this.apartAtMs === null) {
        telemetry.count("clock_jumps");
        telemetry.log(
          "error",
          "clocks are apart: events keep to the time that was agreed on, and waits to what has passed",
          {
            redis: formatTime(redisMs),
            process: formatTime(nowMs),
            shard: formatTime(shardTimeMs),
          },
        );
      }
      this.apartAtMs = clock.monotonicMs();
      telemetry.gauge("clocks_apart_seconds", Math.round(apartMs / 1000));
    } else if (this.apartAtMs !== null && clock.monotonicMs() - this.apartAtMs > AGREED_MS) {
      this.apartAtMs = null;
      telemetry.gauge("clocks_apart_seconds", 0);
      telemetry.log("info", "clocks agree again");
    }
  }

  /** An alarm notices the first increase only if the count existed before it. */
  private begin(): void {
    this.hasCounted = true;
    this.telemetry.count("clock_jumps", {}, 0);
    this.telemetry.gauge("clocks_apart_seconds", 0);
  }
}

function formatTime(ms: number): string {
  return Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : String(ms);
}
