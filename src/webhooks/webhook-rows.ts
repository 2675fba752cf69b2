import type { SealedColumn } from "../storage/sealed-column.ts";
import type { SecretPlace } from "../storage/vault.ts";
import { webhooks } from "./tables.ts";
import { type Place, type Progress, WEBHOOK_TYPES, type Webhook, type WebhookType } from "./webhook.ts";

type Row = typeof webhooks.$inferSelect;

export function toWebhook(row: Row): Webhook {
  const { id, tenantId, url, description, eventTypes, channels, batchMax, epoch, createdAt } = row;
  return {
    webhookId: id,
    tenantId,
    url,
    description,
    // A later release may have written types that this one does not know.
    eventTypes: eventTypes === null ? null : eventTypes.filter(isWebhookType),
    channels,
    batchMax,
    epoch,
    progress: toProgress(row),
    createdAtMs: createdAt.getTime(),
  };
}

function toProgress(row: Row): Progress {
  const { failures, lastError, disabledReason, disabledAt } = row;
  return {
    events: toPlace(row.position, row.replayAfter, row.replayThrough, row.retryThrough),
    news: toPlace(row.newsPosition, row.newsReplayAfter, row.newsReplayThrough, row.newsRetryThrough),
    failures,
    failingSinceMs: row.failingSince?.getTime() ?? null,
    nextAtMs: row.nextAt?.getTime() ?? null,
    lastError,
    disabled:
      disabledReason === null || disabledAt === null ? null : { reason: disabledReason, atMs: disabledAt.getTime() },
  };
}

function toPlace(position: number, after: number | null, through: number | null, retryThrough: number | null): Place {
  const replay = after === null || through === null ? null : { afterEventId: after, throughEventId: through };
  return { position, replay, retryThrough };
}

/** Returns the columns of its progress except the positions, which only grow unless a tenant requests a replay. */
export function toColumns(progress: Progress) {
  const { events, news, failures, failingSinceMs, nextAtMs, lastError, disabled } = progress;
  return {
    replayAfter: events.replay?.afterEventId ?? null,
    replayThrough: events.replay?.throughEventId ?? null,
    retryThrough: events.retryThrough,
    newsReplayAfter: news.replay?.afterEventId ?? null,
    newsReplayThrough: news.replay?.throughEventId ?? null,
    newsRetryThrough: news.retryThrough,
    failures,
    failingSince: toDate(failingSinceMs),
    nextAt: toDate(nextAtMs),
    lastError,
    disabledReason: disabled?.reason ?? null,
    disabledAt: toDate(disabled?.atMs ?? null),
  };
}

function toDate(unixMs: number | null): Date | null {
  return unixMs === null ? null : new Date(unixMs);
}

function isWebhookType(text: string): text is WebhookType {
  return WEBHOOK_TYPES.some((known) => known === text);
}

/** Returns the vault location of the current and the former secret. */
export function secretPlace(tenantId: string, webhookId: string): SecretPlace {
  return { tenantId, kind: "webhook", field: webhookId };
}

export function formerSecretPlace(tenantId: string, webhookId: string): SecretPlace {
  return { tenantId, kind: "former_webhook", field: webhookId };
}

const KEY = { key: [webhooks.id], tenantId: webhooks.tenantId };

/** The columns that the vault seals. */
export const SEALED_WEBHOOK_COLUMNS: readonly SealedColumn[] = [
  {
    ...KEY,
    name: "secrets of webhooks",
    column: webhooks.secret,
    place: (tenantId, [id = ""]) => secretPlace(tenantId, id),
  },
  {
    ...KEY,
    name: "former secrets of webhooks",
    column: webhooks.formerSecret,
    place: (tenantId, [id = ""]) => formerSecretPlace(tenantId, id),
  },
];
