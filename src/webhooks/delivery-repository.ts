import { and, asc, desc, eq, gt, gte, isNotNull, isNull, lt, or, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { among, insertPieces } from "../storage/analysts/statement-texts.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { tenants } from "../storage/tables.ts";
import type { Vault } from "../storage/vault.ts";
import { webhookLimits } from "./limits.ts";
import { webhookAttempts, webhookNews, webhooks } from "./tables.ts";
import type { Attempt, DisabledReason, Progress, SealedWebhook } from "./webhook.ts";
import { formerSecretPlace, secretPlace, toColumns, toWebhook } from "./webhook-rows.ts";

export interface DeliveryRepositoryOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly clock: Clock;
}

/** The result of calls to a webhook. */
export interface Note {
  readonly tenantId: string;
  readonly webhookId: string;
  /** The epoch of the webhook when it was called. If it differs by now, the tenant has changed the webhook since. */
  readonly epoch: number;
  readonly progress: Progress;
  readonly attempts: readonly Attempt[];
}

/** A webhook that Waybill disabled. */
export interface DisabledWebhook {
  readonly tenantId: string;
  readonly webhookId: string;
  readonly reason: DisabledReason;
  readonly atMs: number;
}

/** One row of an index is read. */
const LAST_NEWS = sql<number | null>`(
  SELECT max(${webhookNews.id}) FROM ${webhookNews} WHERE ${webhookNews.tenantId} = ${webhooks.tenantId}
)`.mapWith(webhookNews.id);
const PAGE = 500;
const DISABLED_MAX = 50;
/** How long operators see a disabled webhook. */
const DISABLED_SHOWN_MS = 7 * 24 * 60 * 60 * 1000;

/** Reads and writes of the process that calls webhooks. Rejects with `UnavailableError` or `TransportError`. */
export class DeliveryRepository {
  constructor(private readonly options: DeliveryRepositoryOptions) {}

  /** Returns all enabled webhooks of the tenants of these shards. */
  async ofShards(shards: readonly number[]): Promise<readonly SealedWebhook[]> {
    if (shards.length === 0) return [];
    const all: SealedWebhook[] = [];
    for (let last = ""; ; ) {
      const page = await this.select(and(among(tenants.shard, shards), gt(webhooks.id, last)), PAGE);
      all.push(...page);
      if (page.length < PAGE) return all;
      last = page.at(-1)?.webhookId ?? "";
    }
  }

  /** Returns all enabled webhooks of these tenants. */
  ofTenants(tenantIds: readonly string[]): Promise<readonly SealedWebhook[]> {
    return this.select(among(webhooks.tenantId, tenantIds), tenantIds.length * webhookLimits.webhooksPerTenantMax);
  }

  private select(where: ReturnType<typeof and>, limit: number): Promise<readonly SealedWebhook[]> {
    return this.options.database.read(async (db) => {
      const rows = await db
        .select({ webhook: webhooks, shard: tenants.shard, newsMark: LAST_NEWS })
        .from(webhooks)
        .innerJoin(tenants, eq(tenants.id, webhooks.tenantId))
        .where(and(where, isNull(webhooks.disabledAt), isNull(tenants.deletedAt)))
        .orderBy(asc(webhooks.id))
        .limit(limit);
      return rows.map(({ webhook, shard, newsMark }) => ({
        ...toWebhook(webhook),
        shard,
        newsMark: newsMark ?? 0,
        secret: webhook.secret,
        formerSecret: webhook.formerSecret,
        formerUntilMs: webhook.formerUntil?.getTime() ?? null,
      }));
    });
  }

  /** Returns the secrets that sign now, the current one first. Throws `VaultError`. */
  openSecrets({ tenantId, webhookId, secret, formerSecret, formerUntilMs }: SealedWebhook): readonly string[] {
    const { vault, clock } = this.options;
    const current = vault.open(secretPlace(tenantId, webhookId), secret);
    if (formerSecret === null || (formerUntilMs ?? 0) <= clock.nowMs()) return [current];
    return [current, vault.open(formerSecretPlace(tenantId, webhookId), formerSecret)];
  }

  /** Finds a webhook, enabled or not; null: there is none. */
  one(tenantId: string, webhookId: string): Promise<SealedWebhook | null> {
    return this.options.database.read(async (db) => {
      const [row] = await db
        .select()
        .from(webhooks)
        .where(and(eq(webhooks.id, webhookId), eq(webhooks.tenantId, tenantId)));
      if (row === undefined) return null;
      const { secret, formerSecret, formerUntil } = row;
      const sealed = { secret, formerSecret, formerUntilMs: formerUntil?.getTime() ?? null };
      return { ...toWebhook(row), shard: 0, newsMark: 0, ...sealed };
    });
  }

  /** Stores all notes in one transaction. Resolves to the webhooks that were updated: the others were changed or deleted. */
  note(notes: readonly Note[]): Promise<ReadonlySet<string>> {
    return this.options.database.write(async (transaction) => {
      const noted = new Set<string>();
      // In one order everywhere, so that no two processes wait for each other.
      const ordered = notes.toSorted((a, b) => (a.webhookId < b.webhookId ? -1 : 1));
      for (const note of ordered) if (await noteOne(transaction, note)) noted.add(note.webhookId);
      const attempts = notes.flatMap(({ tenantId, webhookId, attempts }) =>
        // A webhook that was deleted has no log.
        noted.has(webhookId) ? attempts.map((attempt) => toRow({ tenantId, webhookId }, attempt)) : [],
      );
      for (const piece of insertPieces(attempts)) await transaction.insert(webhookAttempts).values(piece);
      return noted;
    });
  }

  /** Adds a test's call to the log. */
  async noteTest(of: { readonly tenantId: string; readonly webhookId: string }, attempt: Attempt): Promise<void> {
    await this.options.database.write(async (transaction) => {
      const where = and(eq(webhooks.id, of.webhookId), eq(webhooks.tenantId, of.tenantId));
      const [row] = await transaction.select({ id: webhooks.id }).from(webhooks).where(where).for("update");
      if (row !== undefined) await transaction.insert(webhookAttempts).values(toRow(of, attempt));
    });
    await this.trim(of.webhookId);
  }

  /** Removes surplus and old attempts. */
  async trim(webhookId: string): Promise<void> {
    const { database, clock } = this.options;
    const ofWebhook = eq(webhookAttempts.webhookId, webhookId);
    await database.write(async (transaction) => {
      const [oldest] = await transaction
        .select({ id: webhookAttempts.id })
        .from(webhookAttempts)
        .where(ofWebhook)
        .orderBy(desc(webhookAttempts.id))
        .offset(webhookLimits.attemptsKeptMax - 1)
        .limit(1);
      const tooOld = lt(webhookAttempts.at, new Date(clock.nowMs() - webhookLimits.attemptsKeptMs));
      await transaction
        .delete(webhookAttempts)
        .where(and(ofWebhook, or(tooOld, oldest === undefined ? undefined : lt(webhookAttempts.id, oldest.id))));
    });
  }

  /** Returns the latest 50 webhooks that Waybill disabled within the last week. */
  disabled(): Promise<readonly DisabledWebhook[]> {
    const since = new Date(this.options.clock.nowMs() - DISABLED_SHOWN_MS);
    return this.options.database.read(async (db) => {
      const rows = await db
        .select()
        .from(webhooks)
        .innerJoin(tenants, eq(tenants.id, webhooks.tenantId))
        .where(and(isNotNull(webhooks.disabledAt), gte(webhooks.disabledAt, since), isNull(tenants.deletedAt)))
        .orderBy(desc(webhooks.disabledAt))
        .limit(DISABLED_MAX);
      return rows.map(({ webhooks: { id, tenantId, disabledReason, disabledAt } }) => ({
        tenantId,
        webhookId: id,
        reason: disabledReason ?? "failing",
        atMs: disabledAt?.getTime() ?? 0,
      }));
    });
  }
}

async function noteOne(transaction: AnyDb, { webhookId, epoch, progress }: Note): Promise<boolean> {
  const rows = await transaction
    .update(webhooks)
    // A process that was replaced during a call may report less progress than its successor.
    .set({
      ...toColumns(progress),
      position: sql`greatest(${webhooks.position}, ${progress.events.position}::bigint)`,
      newsPosition: sql`greatest(${webhooks.newsPosition}, ${progress.news.position}::bigint)`,
    })
    .where(and(eq(webhooks.id, webhookId), eq(webhooks.epoch, epoch)))
    .returning({ id: webhooks.id });
  return rows.length > 0;
}

function toRow(of: { readonly tenantId: string; readonly webhookId: string }, { atMs, ...attempt }: Attempt) {
  return { tenantId: of.tenantId, webhookId: of.webhookId, at: new Date(atMs), ...attempt };
}
