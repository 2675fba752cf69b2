import { and, asc, desc, eq, gt, inArray, isNull, lt, lte, max } from "drizzle-orm";
import { firstEventIdAt, nextEventId } from "../domain/jobs/event.ts";
import type { RuntimePorts } from "../domain/runtime-ports.ts";
import type { TenantNews } from "../domain/tenants/tenant-news.ts";
import { insertPieces } from "../storage/analysts/statement-texts.ts";
import { OldRows } from "../storage/old-rows.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { tenants } from "../storage/tables.ts";
import { webhookLimits } from "./limits.ts";
import { type Told, toldNews } from "./message.ts";
import { webhookNews, webhooks } from "./tables.ts";
import { type EventRange, selectNewsTypes, type Webhook, wants } from "./webhook.ts";
import { toWebhook } from "./webhook-rows.ts";

export interface NewsRepositoryOptions extends RuntimePorts {
  readonly database: Database;
}

const PIECES_MAX = 1_000;
/** A tenant's rows are counted again after this many of them. */
const TRIM_AFTER = 500;

/**
 * Tenants' news beside their events: the table `webhook_news`.
 *
 * N1. A tenant's ids rise in the order in which its rows become visible: they are given under the lock of the tenant's row.
 *     So a webhook that has received an id has missed no earlier one.
 * N2. The same news is stored once, for as long as its row is kept.
 * N3. Only news that one of the tenant's webhooks subscribes to is stored, also while that webhook is disabled.
 */
export class NewsRepository {
  private readonly untrimmed = new Map<string, number>();

  constructor(private readonly options: NewsRepositoryOptions) {}

  /** Removes old rows, by this time. */
  oldRows(agreedMs: () => Promise<number>): OldRows {
    return new OldRows({
      ...this.options,
      agreedMs,
      name: "old news for webhooks",
      piecesMax: PIECES_MAX,
      remove: async (transaction, limit, nowMs) => {
        const before = firstEventIdAt(nowMs - webhookLimits.newsKeptMs);
        const old = await transaction
          .select({ id: webhookNews.id })
          .from(webhookNews)
          .where(lt(webhookNews.id, before))
          .orderBy(asc(webhookNews.id))
          .limit(limit);
        const last = old.at(-1);
        // Tenants' ids can be the same, so a piece may have some rows more.
        if (last !== undefined) await transaction.delete(webhookNews).where(lte(webhookNews.id, last.id));
        return old.length;
      },
    });
  }

  /**
   * Stores a tenant's news in one transaction, in this order. Resolves to how many are new. Rejects with `TransportError`
   * (effect unknown) or `UnavailableError`.
   */
  async add(tenantId: string, news: readonly TenantNews[]): Promise<number> {
    const asking = await this.readWebhooks(tenantId);
    const wanted = news.filter((one) => asking.some((webhook) => wants(webhook, one)));
    if (wanted.length === 0) return 0;
    return this.options.database.write(async (transaction) => {
      const added = await this.insert(transaction, tenantId, wanted);
      if (added > 0) await this.trim(transaction, tenantId, added);
      return added;
    });
  }

  /** Rejects with `UnavailableError`. */
  async isAskedFor(news: Pick<TenantNews, "tenantId" | "type" | "channel">): Promise<boolean> {
    return (await this.readWebhooks(news.tenantId)).some((webhook) => wants(webhook, news));
  }

  private async readWebhooks(tenantId: string) {
    const ofTenant = eq(webhooks.tenantId, tenantId);
    return (await this.options.database.read((db) => db.select().from(webhooks).where(ofTenant))).map(toWebhook);
  }

  private async insert(transaction: AnyDb, tenantId: string, news: readonly TenantNews[]): Promise<number> {
    const [tenant] = await transaction
      .select({ id: tenants.id })
      .from(tenants)
      .where(and(eq(tenants.id, tenantId), isNull(tenants.deletedAt)))
      // Rows that refer to the tenant are added at the same time.
      .for("no key update");
    if (tenant === undefined) return 0;
    // A separate statement: one that had waited for the lock would see the state before it.
    const [stored] = await transaction
      .select({ last: max(webhookNews.id) })
      .from(webhookNews)
      .where(eq(webhookNews.tenantId, tenantId));
    const [told] = await transaction
      .select({ last: max(webhooks.newsPosition) })
      .from(webhooks)
      .where(eq(webhooks.tenantId, tenantId));
    const nowMs = this.options.clock.nowMs();
    // After the last delivered id, even if the clock was set back and the rows are gone.
    let last = Math.max(stored?.last ?? 0, told?.last ?? 0);
    const rows = news.map(({ id: name, type, channel, atMs, data }) => {
      last = nextEventId(last, nowMs);
      const key = new Bun.CryptoHasher("sha256").update(name).digest("base64url");
      return { tenantId, id: last, key, type, channel, at: new Date(atMs), data: JSON.stringify({ channel, ...data }) };
    });
    let added = 0;
    for (const piece of insertPieces(rows)) {
      const inserted = transaction.insert(webhookNews).values(piece).onConflictDoNothing();
      added += (await inserted.returning({ id: webhookNews.id })).length;
    }
    return added;
  }

  /** Now and then, the oldest rows of a tenant with too many leave. */
  private async trim(transaction: AnyDb, tenantId: string, added: number): Promise<void> {
    const untrimmed = (this.untrimmed.get(tenantId) ?? 0) + added;
    this.untrimmed.set(tenantId, untrimmed % TRIM_AFTER);
    if (untrimmed < TRIM_AFTER) return;
    const ofTenant = eq(webhookNews.tenantId, tenantId);
    const [oldest] = await transaction
      .select({ id: webhookNews.id })
      .from(webhookNews)
      .where(ofTenant)
      .orderBy(desc(webhookNews.id))
      .offset(webhookLimits.newsKeptMax)
      .limit(1);
    if (oldest === undefined) return;
    const removed = await transaction
      .delete(webhookNews)
      .where(and(ofTenant, lte(webhookNews.id, oldest.id)))
      .returning({ id: webhookNews.id });
    this.options.telemetry.count("webhook_news", { result: "crowded_out" }, removed.length);
  }

  /** Returns the tenant's news in the range that the webhook subscribes to, oldest first. Rejects with `UnavailableError`. */
  async after(
    { tenantId, ...asked }: Pick<Webhook, "tenantId" | "eventTypes" | "channels">,
    { afterEventId, throughEventId }: EventRange,
    limit: number,
  ): Promise<readonly Told[]> {
    const types = selectNewsTypes(asked);
    if (types.length === 0) return [];
    const rows = await this.options.database.read((db) =>
      db
        .select()
        .from(webhookNews)
        .where(
          and(
            eq(webhookNews.tenantId, tenantId),
            gt(webhookNews.id, afterEventId),
            lte(webhookNews.id, throughEventId),
            inArray(webhookNews.type, [...types]),
            asked.channels === null ? undefined : inArray(webhookNews.channel, [...asked.channels]),
          ),
        )
        .orderBy(asc(webhookNews.id))
        .limit(limit),
    );
    return rows.map(({ at, ...row }) => toldNews({ ...row, atMs: at.getTime() }));
  }
}
