import type { ClickHouse } from "./clickhouse.ts";
import { DEMO_PREFIX } from "./demo-history.ts";
import { sealedTarget } from "./failed-payloads.ts";
import { SYNCED_MERGES } from "./schema/power-cuts.ts";
import { type EventStoreTarget, ON_DISK, onCluster, replicated, window } from "./schema/table.ts";
import { insertSettings, selectSettings } from "./statement-settings.ts";

const LOOK_TIMEOUT_MS = 60_000;

/** The queue that an event store belongs to. */
export interface BelongsTo {
  /** Null: none yet. */
  readonly queue: string | null;
  /** Counts the queues that it has belonged to. */
  readonly turn: number;
  /** The last mark of the queue that it received. */
  readonly mark: number;
}

/** Parts of a table whose files the engine found damaged when it opened the table: it has set them aside, and their rows are missing. */
export interface BrokenParts {
  readonly table: string;
  readonly parts: number;
  /** The folder that they are in. */
  readonly folder: string;
}

/**
 * One row for each queue that the event store has belonged to, of which the latest counts. Created apart from the migrations, as the
 * identity is.
 */
export async function ensureBelonging(clickhouse: ClickHouse, { database, cluster }: EventStoreTarget): Promise<void> {
  const at = { path: `/clickhouse/tables/${database}/belongs_to`, replica: "{shard}-{replica}" };
  const engine = cluster === null ? "ReplacingMergeTree(mark)" : replicated("ReplacingMergeTree", at, ["mark"]);
  await clickhouse.command(
    `CREATE TABLE IF NOT EXISTS ${database}.belongs_to${onCluster(cluster)} (
  turn UInt32,
  queue String,
  mark UInt64
) ENGINE = ${engine}
ORDER BY (turn, queue)
SETTINGS ${window(cluster)}, ${ON_DISK.join(", ")}, ${SYNCED_MERGES}`,
  );
}

/**
 * The event store's record of the queue that it belongs to. Every call rejects with `UnavailableError` if the event store does
 * not answer.
 */
export class EventStoreBelonging {
  constructor(
    private readonly reading: ClickHouse,
    private readonly writing: ClickHouse,
    private readonly target: EventStoreTarget,
  ) {}

  async read(): Promise<BelongsTo> {
    const [row] = await this.rows(
      `SELECT queue, turn, max(mark) FROM ${this.target.database}.belongs_to GROUP BY turn, queue ORDER BY turn DESC, queue LIMIT 1`,
    );
    return row === undefined
      ? { queue: null, turn: 0, mark: 0 }
      : { queue: String(row[0]), turn: Number(row[1]), mark: Number(row[2]) };
  }

  /** Assigns the event store to the queue unless it belongs to one already. */
  async claimForQueue(queue: string): Promise<void> {
    if ((await this.read()).queue === null) await this.insert({ queue, turn: 1, mark: 0 });
  }

  /** Assigns the event store to another queue. */
  async giveToQueue(queue: string, mark: number): Promise<void> {
    const { turn } = await this.read();
    await this.insert({ queue, turn: turn + 1, mark });
  }

  /** Notes the queue's mark. False: the event store belongs to another queue by now. */
  async noteMark(queue: string, mark: number): Promise<boolean> {
    const { queue: owner, turn } = await this.read();
    if (owner !== null && owner !== queue) return false;
    await this.insert({ queue, turn: Math.max(1, turn), mark });
    return true;
  }

  /**
   * Returns the last event in the range; null: there is none. Invented histories do not count: no queue has given out their
   * ids. Only parts with such events are read.
   */
  async lastEventIn(after: number, to: number): Promise<number | null> {
    const [row] = await this.rows(
      `SELECT max(event_id) FROM ${this.target.database}.events WHERE event_id > ${after} AND event_id <= ${to} AND NOT startsWith(tenant_id, '${DEMO_PREFIX}')`,
    );
    const last = Number(row?.[0] ?? 0);
    return last === 0 ? null : last;
  }

  /** Returns the last event id, read from the table's parts; 0: there is none. */
  async lastEvent(): Promise<number> {
    const [row] = await this.rows(`SELECT max(event_id) FROM ${this.target.database}.events`);
    return Number(row?.[0] ?? 0);
  }

  /** Returns no parts for a cluster, whose nodes copy such parts from each other. */
  async brokenParts(): Promise<readonly BrokenParts[]> {
    if (this.target.cluster !== null) return [];
    const databases = [this.target, sealedTarget(this.target)].map(({ database }) => `'${database}'`).join(", ");
    const found = await this.rows(
      `SELECT table, count(), any(path) FROM system.detached_parts WHERE database IN (${databases}) AND startsWith(reason, 'broken') GROUP BY database, table ORDER BY table`,
    );
    return found.map(([table, parts, path]) => ({
      table: String(table),
      parts: Number(parts),
      folder: String(path).replace(/\/[^/]*\/?$/, ""),
    }));
  }

  private rows(sql: string) {
    return this.reading.rows(`${sql} SETTINGS ${selectSettings(this.target, LOOK_TIMEOUT_MS)}`);
  }

  private async insert({ queue, turn, mark }: BelongsTo & { readonly queue: string }): Promise<void> {
    const settings = insertSettings(this.target, `belongs-${turn}-${queue}-${mark}`);
    await this.writing.insert(
      `INSERT INTO ${this.target.database}.belongs_to (turn, queue, mark) SETTINGS ${settings} FORMAT JSONCompactEachRow`,
      `${JSON.stringify([turn, queue, mark])}\n`,
    );
  }
}
