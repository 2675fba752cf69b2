import { and, asc, count, desc, eq, gt, gte, inArray, isNotNull, isNull, lt, max } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { isJobId, JobIds } from "../domain/ids.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Page } from "../domain/page.ts";
import type { Random } from "../domain/random.ts";
import {
  type AllOfTenant,
  type Done,
  done,
  type InvalidCursor,
  type Missing,
  missing,
  type PageOfTenant,
} from "../domain/store-result.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { listOfTenant, readOfTenant } from "../storage/postgres/of-tenant.ts";
import { buildPage, rowsToRead } from "../storage/postgres/page-of.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { tenants } from "../storage/tables.ts";
import type { Vault } from "../storage/vault.ts";
import { webhookLimits } from "./limits.ts";
import { replayed, skipped, WELL } from "./progress.ts";
import { newSecret } from "./signature.ts";
import { webhookAttempts, webhookNews, webhooks } from "./tables.ts";
import { type Attempt, type Place, selectNewsTypes, type Webhook, type WebhookType } from "./webhook.ts";
import { formerSecretPlace, secretPlace, toColumns, toWebhook } from "./webhook-rows.ts";

type Changed = Partial<typeof webhooks.$inferInsert>;

export interface WebhookRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly random: Random;
}

/** The settings that a tenant chooses. */
export interface WebhookContent {
  readonly url: string;
  readonly description: string | null;
  readonly eventTypes: readonly WebhookType[] | null;
  readonly channels: readonly ChannelName[] | null;
  readonly batchMax: number;
}

/** A webhook with its secret, which is shown once. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  readonly secret: string;
}

export type CreatedWebhook =
  | Done<WebhookWithSecret>
  | Missing<"tenant">
  /** The tenant has reached its limit. */
  | { readonly kind: "full"; readonly most: number };

export const WEBHOOK_STATES = ["enabled", "failing", "disabled"] as const;
/** `enabled`: it takes what it is told; `failing`: its last call failed and is repeated. */
export type WebhookState = (typeof WEBHOOK_STATES)[number];

const IN_STATE = {
  enabled: and(isNull(webhooks.disabledAt), eq(webhooks.failures, 0)),
  failing: and(isNull(webhooks.disabledAt), gt(webhooks.failures, 0)),
  disabled: isNotNull(webhooks.disabledAt),
} as const;

/** A page of webhooks; null: of any tenant, in any state. */
export interface WebhookSearch {
  readonly tenantId: string | null;
  readonly state: WebhookState | null;
  readonly cursor: string | null;
  readonly limit: number;
}

export type WebhookResult<T = Webhook> = Done<T> | Missing<"tenant" | "webhook">;

/** Tenants' webhooks, as they make and change them. Every change reaches the process that calls them within a second. */
export class WebhookRepository {
  private readonly ids: JobIds;

  constructor(private readonly options: WebhookRepositoryOptions) {
    this.ids = new JobIds(options.clock, options.random);
  }

  /** `position`: the event id after which delivery begins. Only news from now on is delivered. */
  create(tenantId: string, content: WebhookContent, position: number): Promise<CreatedWebhook> {
    const { vault, clock, random, changes } = this.options;
    const [id, secret] = [this.ids.next(), newSecret(random)];
    return changes.ofTenant(tenantId, async (transaction) => {
      // The change has locked the tenant's row, so no other change adds one in the meantime.
      const [held] = await transaction.select({ of: count() }).from(webhooks).where(eq(webhooks.tenantId, tenantId));
      const most = webhookLimits.webhooksPerTenantMax;
      if (Number(held?.of ?? 0) >= most) return new Undone({ kind: "full", most } as const);
      const [row] = await transaction
        .insert(webhooks)
        .values({
          id,
          tenantId,
          ...toValues(content),
          secret: vault.seal(secretPlace(tenantId, id), secret),
          epoch: 1,
          position,
          newsPosition: await lastNews(transaction, tenantId),
          failures: 0,
          createdAt: new Date(clock.nowMs()),
        })
        .returning();
      if (row === undefined) throw new Error("the registry took no webhook");
      return done({ webhook: toWebhook(row), secret });
    });
  }

  /** Oldest first. */
  all(tenantId: string): Promise<AllOfTenant<Webhook>> {
    return listOfTenant(this.options.database, tenantId, {
      rows: (db) => db.select().from(webhooks).where(eq(webhooks.tenantId, tenantId)).orderBy(asc(webhooks.id)),
      item: toWebhook,
    });
  }

  /** Webhooks of all tenants, or of one, by their ids. */
  async everywhere({ tenantId, state, cursor, limit }: WebhookSearch): Promise<Done<Page<Webhook>> | InvalidCursor> {
    if (cursor !== null && !isJobId(cursor)) return { kind: "invalid_cursor" };
    const rows = await this.options.database.read((db) =>
      db
        .select({ webhook: webhooks })
        .from(webhooks)
        .innerJoin(tenants, eq(tenants.id, webhooks.tenantId))
        .where(
          and(
            isNull(tenants.deletedAt),
            cursor === null ? undefined : gt(webhooks.id, cursor),
            tenantId === null ? undefined : eq(webhooks.tenantId, tenantId),
            state === null ? undefined : IN_STATE[state],
          ),
        )
        .orderBy(asc(webhooks.id))
        .limit(rowsToRead(limit)),
    );
    const shown = { item: ({ webhook }: (typeof rows)[number]) => toWebhook(webhook) };
    return done(buildPage(rows, limit, { ...shown, cursor: ({ webhook }) => webhook.id }));
  }

  /** The last call of each of these webhooks that was called within the days for which calls are kept. */
  async lastAttempts(webhookIds: readonly string[]): Promise<ReadonlyMap<string, Attempt>> {
    if (webhookIds.length === 0) return new Map();
    const rows = await this.options.database.read((db) =>
      db
        .selectDistinctOn([webhookAttempts.webhookId])
        .from(webhookAttempts)
        .where(inArray(webhookAttempts.webhookId, [...webhookIds]))
        .orderBy(asc(webhookAttempts.webhookId), desc(webhookAttempts.id)),
    );
    return new Map(rows.map((row) => [row.webhookId, toAttempt(row)]));
  }

  one(tenantId: string, webhookId: string): Promise<WebhookResult> {
    return readOfTenant(this.options.database, tenantId, async (db) => {
      const [row] = await db.select().from(webhooks).where(named(tenantId, webhookId));
      return row === undefined ? missing("webhook") : done(toWebhook(row));
    });
  }

  /** Changes a webhook. A new address is called at once. A new subscription to news begins with the next item. */
  change(tenantId: string, webhookId: string, change: Partial<WebhookContent>): Promise<WebhookResult> {
    return this.changed(tenantId, webhookId, async (webhook, transaction) => {
      const isElsewhere = change.url !== undefined && change.url !== webhook.url;
      const content = { ...webhook, ...change };
      const hearsMore = selectNewsTypes(content).length > selectNewsTypes(webhook).length;
      return {
        ...toValues(content),
        ...(isElsewhere && toColumns({ ...webhook.progress, ...WELL })),
        ...(hearsMore && { newsPosition: await lastNews(transaction, tenantId) }),
        epoch: webhook.epoch + (isElsewhere || hearsMore ? 1 : 0),
      };
    });
  }

  /** Resumes a webhook where it stopped. Safe to repeat: an enabled one that fails is called at once. */
  enable(tenantId: string, webhookId: string): Promise<WebhookResult> {
    return this.changed(tenantId, webhookId, ({ progress, epoch }) => ({
      ...toColumns({ ...progress, ...WELL, disabled: null }),
      epoch: epoch + 1,
    }));
  }

  /** Replays a range; `through` null: everything after `afterEventId`. If that lies ahead, delivery skips to it. */
  replay(
    tenantId: string,
    webhookId: string,
    { afterEventId, throughEventId }: { readonly afterEventId: number; readonly throughEventId: number | null },
  ): Promise<WebhookResult> {
    return this.changed(tenantId, webhookId, (webhook) => {
      const { progress, epoch } = webhook;
      if (throughEventId === null && afterEventId > progress.events.position) {
        const on = skipped(progress, afterEventId);
        const [position, newsPosition] = [on.events.position, on.news.position];
        return { ...toColumns(on), position, newsPosition, epoch: epoch + 1 };
      }
      const again = (place: Place) =>
        replayed(place, { afterEventId, throughEventId: throughEventId ?? place.position });
      const events = again(progress.events);
      const news = selectNewsTypes(webhook).length === 0 ? progress.news : again(progress.news);
      return {
        ...toColumns({ ...progress, events, news }),
        position: events.position,
        newsPosition: news.position,
        epoch: epoch + 1,
      };
    });
  }

  /** Replaces the secret. The former one also signs for a day. */
  rotate(tenantId: string, webhookId: string): Promise<WebhookResult<WebhookWithSecret>> {
    const { vault, clock, random, changes } = this.options;
    const secret = newSecret(random);
    return changes.ofTenant(tenantId, async (transaction) => {
      const [row] = await transaction.select().from(webhooks).where(named(tenantId, webhookId));
      if (row === undefined) return new Undone(missing("webhook"));
      const place = secretPlace(tenantId, webhookId);
      const former = vault.open(place, row.secret);
      const webhook = await update(transaction, webhookId, {
        secret: vault.seal(place, secret),
        formerSecret: vault.seal(formerSecretPlace(tenantId, webhookId), former),
        formerUntil: new Date(clock.nowMs() + webhookLimits.formerSecretMs),
      });
      return done({ webhook, secret });
    });
  }

  delete(tenantId: string, webhookId: string): Promise<WebhookResult<null>> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const deleted = await transaction.delete(webhooks).where(named(tenantId, webhookId)).returning();
      return deleted.length === 0 ? new Undone(missing("webhook")) : done(null);
    });
  }

  /** Newest first. */
  async attempts(
    tenantId: string,
    webhookId: string,
    { cursor, limit }: { readonly cursor: string | null; readonly limit: number },
  ): Promise<PageOfTenant<Attempt> | InvalidCursor | Missing<"webhook">> {
    if (cursor !== null && !/^[1-9]\d{0,14}$/.test(cursor)) return { kind: "invalid_cursor" };
    return readOfTenant(this.options.database, tenantId, async (db) => {
      const [row] = await db.select({ id: webhooks.id }).from(webhooks).where(named(tenantId, webhookId));
      if (row === undefined) return missing("webhook");
      const before = cursor === null ? undefined : lt(webhookAttempts.id, Number(cursor));
      // Attempts of a rarely called webhook are removed late.
      const recent = gte(webhookAttempts.at, new Date(this.options.clock.nowMs() - webhookLimits.attemptsKeptMs));
      const rows = await db
        .select()
        .from(webhookAttempts)
        .where(and(eq(webhookAttempts.webhookId, webhookId), recent, before))
        .orderBy(desc(webhookAttempts.id))
        .limit(rowsToRead(limit));
      return done(buildPage(rows, limit, { item: toAttempt, cursor: ({ id }) => String(id) }));
    });
  }

  private changed(
    tenantId: string,
    webhookId: string,
    change: (webhook: Webhook, transaction: AnyDb) => Changed | Promise<Changed>,
  ): Promise<WebhookResult> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      // Locked against notes from calls in flight.
      const [row] = await transaction.select().from(webhooks).where(named(tenantId, webhookId)).for("update");
      if (row === undefined) return new Undone(missing("webhook"));
      return done(await update(transaction, webhookId, await change(toWebhook(row), transaction)));
    });
  }
}

async function update(transaction: AnyDb, webhookId: string, change: Changed): Promise<Webhook> {
  const [row] = await transaction.update(webhooks).set(change).where(eq(webhooks.id, webhookId)).returning();
  if (row === undefined) throw new Error("a webhook that was locked is gone");
  return toWebhook(row);
}

/** Returns the last id of the tenant's news; 0: none. No news is stored while the transaction locks the tenant's row. */
async function lastNews(transaction: AnyDb, tenantId: string): Promise<number> {
  const [row] = await transaction
    .select({ last: max(webhookNews.id) })
    .from(webhookNews)
    .where(eq(webhookNews.tenantId, tenantId));
  return row?.last ?? 0;
}

function toValues({ url, description, eventTypes, channels, batchMax }: WebhookContent) {
  return {
    url,
    description,
    eventTypes: eventTypes === null ? null : [...eventTypes],
    channels: channels === null ? null : [...channels],
    batchMax,
  };
}

function toAttempt(row: typeof webhookAttempts.$inferSelect): Attempt {
  const { id: _, tenantId: __, webhookId: ___, at, ...attempt } = row;
  return { ...attempt, atMs: at.getTime() };
}

function named(tenantId: string, webhookId: string) {
  return and(eq(webhooks.id, webhookId), eq(webhooks.tenantId, tenantId));
}
