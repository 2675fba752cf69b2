import { and, between, gte, lt, sql } from "drizzle-orm";
import { among, insertPieces } from "../storage/analysts/statement-texts.ts";
import type { Database } from "../storage/postgres/database.ts";
import { tokenMovements } from "../storage/tables.ts";
import { nextMonth } from "./month.ts";
import { usageCounts } from "./tables.ts";
import type { UsageCount } from "./usage-counter.ts";

export interface UsageQuery {
  readonly tenantIds: readonly string[];
  /** UTC months, `YYYY-MM`, both inclusive. */
  readonly from: string;
  readonly to: string;
}

/** Sums of a tenant's token movements in a month; none is negative. */
export interface TokenUsage {
  readonly tenantId: string;
  readonly month: string;
  readonly charged: number;
  readonly givenBack: number;
  readonly toppedUp: number;
  /** Tokens removed by operators. */
  readonly taken: number;
}

/** Tenants' calls, accepted jobs and tokens by month. */
export class UsageRepository {
  constructor(private readonly database: Database) {}

  async add(counts: readonly UsageCount[]): Promise<void> {
    if (counts.length === 0) return;
    await this.database.write(async (transaction) => {
      for (const piece of insertPieces(counts)) {
        await transaction
          .insert(usageCounts)
          .values(piece)
          .onConflictDoUpdate({
            target: [usageCounts.tenantId, usageCounts.month],
            set: {
              apiCalls: sql`${usageCounts.apiCalls} + excluded.api_calls`,
              accepted: sql`${usageCounts.accepted} + excluded.accepted`,
            },
          });
      }
    });
  }

  counts({ tenantIds, from, to }: UsageQuery): Promise<readonly UsageCount[]> {
    return this.database.read((db) =>
      db
        .select()
        .from(usageCounts)
        .where(and(among(usageCounts.tenantId, tenantIds), between(usageCounts.month, from, to))),
    );
  }

  async tokens({ tenantIds, from, to }: UsageQuery): Promise<readonly TokenUsage[]> {
    const { tenantId, createdAt, kind, amount } = tokenMovements;
    const month = sql<string>`to_char(${createdAt} at time zone 'UTC', 'YYYY-MM')`;
    const sumWhere = (which: ReturnType<typeof sql>) =>
      sql<string>`coalesce(sum(abs(${amount})) filter (where ${which}), 0)::text`;
    const rows = await this.database.read((db) =>
      db
        .select({
          tenantId,
          month,
          charged: sumWhere(sql`${kind} = 'charge'`),
          givenBack: sumWhere(sql`${kind} = 'refund'`),
          toppedUp: sumWhere(sql`${kind} = 'adjustment' and ${amount} > 0`),
          taken: sumWhere(sql`${kind} = 'adjustment' and ${amount} < 0`),
        })
        .from(tokenMovements)
        .where(
          and(
            among(tenantId, tenantIds),
            gte(createdAt, new Date(`${from}-01T00:00:00Z`)),
            lt(createdAt, new Date(`${nextMonth(to)}-01T00:00:00Z`)),
          ),
        )
        .groupBy(tenantId, month),
    );
    return rows.map(({ charged, givenBack, toppedUp, taken, ...of }) => ({
      ...of,
      charged: Number(charged),
      givenBack: Number(givenBack),
      toppedUp: Number(toppedUp),
      taken: Number(taken),
    }));
  }
}
