import { TransportError } from "../../../src/domain/errors.ts";
import type { StoredEventRow, WriteOutcome } from "../../../src/domain/jobs/event-store.ts";
import type { ClickHouse } from "../../../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../../../src/events/clickhouse-event-writer.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventIdAt, storedEventRow } from "./event-store-rows.ts";

/** Longer than a batch must look the same before the rest of it is added, and than a token is trusted. */
const LONG_MS = 60_000;
const TABLES = ["events", "jobs", "events_by_type", "events_hourly", "events_daily"] as const;
let tokens = 0;

export const newToken = () => `s1:${(tokens += 1)}-0/${tokens}-9`;

/**
 * A writer whose time passes in leaps, into tables that remember one insert each, so that ten thousand are not
 * necessary.
 */
export class ForgetfulEventStore {
  private skippedMs = 0;
  readonly writer: ClickHouseEventWriter;

  constructor(
    readonly clickhouse: ClickHouse,
    readonly database: string,
  ) {
    const clock = {
      ...systemClock,
      nowMs: () => Date.now() + this.skippedMs,
      monotonicMs: () => performance.now() + this.skippedMs,
    };
    this.writer = new ClickHouseEventWriter(clickhouse, { database, cluster: null }, clock);
  }

  async forgetSoon(): Promise<void> {
    for (const table of TABLES) {
      await this.clickhouse.command(
        `ALTER TABLE ${this.database}.${table} MODIFY SETTING non_replicated_deduplication_window = 1`,
      );
    }
  }

  /** All earlier writes are old from now on. */
  letTimePass(): void {
    this.skippedMs += LONG_MS;
  }

  /** Writes the inserts of other shards, which evict remembered tokens. */
  async writeOthers(first: number): Promise<void> {
    for (let n = 0; n < 3; n += 1) {
      const finished = { status: "failed", attempts: 1, result: {} } as const;
      const row = storedEventRow(eventIdAt(first + n), { tenantId: "other", type: "failed", finished });
      await this.writer.write(newToken(), [row]);
    }
  }

  /** As a recorder does: repeats it later until it succeeds. */
  async complete(token: string, rows: readonly StoredEventRow[]): Promise<{ outcome: WriteOutcome; tries: number }> {
    for (let tries = 1; ; tries += 1) {
      try {
        return { outcome: await this.writer.write(token, rows, "again"), tries };
      } catch (error) {
        if (!(error instanceof TransportError) || tries > 5) throw error;
        this.letTimePass();
      }
    }
  }
}

/** A batch of two tenants, with events of sparse types, whose jobs are finished. */
export function batchAt(first: number, count = 12): readonly StoredEventRow[] {
  return Array.from({ length: count }, (_, n) => {
    const failed = n % 3 === 0;
    return storedEventRow(eventIdAt(first + n), {
      tenantId: `tenant-${n % 2}`,
      type: failed ? "failed" : "sent",
      finished: { status: failed ? "failed" : "success", attempts: 1, result: {} },
    });
  });
}
