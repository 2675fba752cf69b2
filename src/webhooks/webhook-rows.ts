import type { EventType } from "../domain/event.ts";
import { EVENT_TYPES } from "../domain/event.ts";
import type { SealedColumn } from "../storage/sealed-column.ts";
import type { SecretPlace } from "../storage/vault.ts";
import { webhooks } from "./tables.ts";
import type { Progress, Webhook } from "./webhook.ts";

type Row = typeof webhooks.$inferSelect;

export function webhookOf(row: Row): Webhook {
  const { id, tenantId, url, description, eventTypes, channels, batchMax, epoch, createdAt } = row;
  return {
    webhookId: id,
    tenantId,
    url,
    description,
    // A later release may have written types that this one does not know.
    eventTypes: eventTypes === null ? null : eventTypes.filter(isEventType),
    channels,
    batchMax,
    epoch,
    progress: progressOf(row),
    createdAtMs: createdAt.getTime(),
  };
}

function progressOf(row: Row): Progress {
  const { position, replayAfter, replayThrough, failures, retryThrough, lastError, disabledReason, disabledAt } = row;
  return {
    position,
    replay:
      replayAfter === null || replayThrough === null
        ? null
        : { afterEventId: replayAfter, throughEventId: replayThrough },
    failures,
    failingSinceMs: row.failingSince?.getTime() ?? null,
    nextAtMs: row.nextAt?.getTime() ?? null,
    retryThrough,
    lastError,
    disabled:
      disabledReason === null || disabledAt === null ? null : { reason: disabledReason, atMs: disabledAt.getTime() },
  };
}

/** The columns of all of its progress but the position, which only grows unless a tenant asks for more. */
export function columnsOf(progress: Progress) {
  const { replay, failures, failingSinceMs, nextAtMs, retryThrough, lastError, disabled } = progress;
  return {
    replayAfter: replay?.afterEventId ?? null,
    replayThrough: replay?.throughEventId ?? null,
    failures,
    failingSince: dateOf(failingSinceMs),
    nextAt: dateOf(nextAtMs),
    retryThrough,
    lastError,
    disabledReason: disabled?.reason ?? null,
    disabledAt: dateOf(disabled?.atMs ?? null),
  };
}

function dateOf(unixMs: number | null): Date | null {
  return unixMs === null ? null : new Date(unixMs);
}

function isEventType(text: string): text is EventType {
  return EVENT_TYPES.some((known) => known === text);
}

/** Where the secret belongs that signs, and the one before it. */
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
