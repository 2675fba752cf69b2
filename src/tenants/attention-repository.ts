import { and, count, gt, lte, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import type { Database } from "../storage/postgres/database.ts";
import { tenants } from "../storage/tables.ts";
import type { Attention } from "./registry.ts";
import { soonestKeys } from "./soonest-keys.ts";
import { keys } from "./tables.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Keys that expire later are not reported yet, nor are keys unused for this long. */
const EXPIRY_MS = 30 * DAY_MS;
const UNUSED_MS = 7 * DAY_MS;
const KEYS_MAX = 50;

/** Reads the conditions of all tenants that need an operator's attention. */
export class AttentionRepository {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async read(): Promise<Attention> {
    const [paused, held, expiringKeys] = await Promise.all([
      this.countByChannel(tenants.paused),
      this.countByChannel(tenants.held),
      this.expiringKeys(),
    ]);
    return { paused, held, expiringKeys };
  }

  private async countByChannel(column: typeof tenants.paused | typeof tenants.held) {
    const channel = sql<string>`unnest(${column})`.as("channel");
    const rows = await this.database.read((db) => {
      const each = db.select({ channel }).from(tenants).as("each");
      return db.select({ channel: each.channel, tenants: count() }).from(each).groupBy(each.channel);
    });
    return new Map(rows.map((row) => [row.channel, row.tenants]));
  }

  private expiringKeys(): Promise<Attention["expiringKeys"]> {
    const nowMs = this.clock.nowMs();
    const soonInUse = and(
      gt(keys.expiresAt, new Date(nowMs)),
      lte(keys.expiresAt, new Date(nowMs + EXPIRY_MS)),
      gt(keys.lastUsedAt, new Date(nowMs - UNUSED_MS)),
    );
    return this.database.read((db) => soonestKeys(db, soonInUse, KEYS_MAX));
  }
}
