import type { ReadinessProbe } from "../domain/jobs/report.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** Checks whether the event store can be read, over its own connection: heavy load from others is not an outage. */
export class EventStoreProbe implements ReadinessProbe {
  readonly name = "clickhouse";
  private readonly statement: string;

  constructor(
    private readonly clickhouse: ClickHouse,
    target: EventStoreTarget,
  ) {
    const settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
    this.statement = `SELECT 1 FROM ${target.database}.events LIMIT 1 SETTINGS ${settings}`;
  }

  /** Rejects with `UnavailableError`. */
  async check(): Promise<void> {
    await this.clickhouse.rows(this.statement);
  }
}
