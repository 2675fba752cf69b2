import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { NewsType } from "../domain/tenants/tenant-news.ts";
import { createdAt, slug, tenantId } from "../storage/tables.ts";
import type { DisabledReason } from "./webhook.ts";

const eventId = (name: string) => bigint(name, { mode: "number" });
const time = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

/** Tenants' webhooks, with their progress. */
export const webhooks = pgTable(
  "webhooks",
  {
    id: slug("id").primaryKey(),
    tenantId: tenantId(),
    url: text("url").notNull(),
    description: text("description"),
    /** Null: all. */
    eventTypes: text("event_types").array(),
    channels: text("channels").array(),
    batchMax: integer("batch_max").notNull(),
    /** Sealed by the vault. */
    secret: text("secret").notNull(),
    formerSecret: text("former_secret"),
    formerUntil: time("former_until"),
    /**
     * Grows with every change of its position or state that a tenant requests: the result of a call in flight is then outdated.
     */
    epoch: integer("epoch").notNull(),
    /** The last delivered event id. */
    position: eventId("position").notNull(),
    /** The range being replayed: ids in (after, through]. Null: none. */
    replayAfter: eventId("replay_after"),
    replayThrough: eventId("replay_through"),
    /** The same of news. With a default, because the former release makes webhooks without it while this one starts. */
    newsPosition: eventId("news_position").notNull().default(0),
    newsReplayAfter: eventId("news_replay_after"),
    newsReplayThrough: eventId("news_replay_through"),
    /** Calls that failed one after the other; since when; when the next one is due. */
    failures: integer("failures").notNull(),
    failingSince: time("failing_since"),
    nextAt: time("next_at"),
    /** The last event of the call that failed: its repeat has the same events. */
    retryThrough: eventId("retry_through"),
    newsRetryThrough: eventId("news_retry_through"),
    lastError: text("last_error"),
    disabledReason: text("disabled_reason").$type<DisabledReason>(),
    disabledAt: time("disabled_at"),
    createdAt: createdAt(),
  },
  (table) => [
    index("webhooks_by_tenant").on(table.tenantId),
    index("webhooks_disabled").on(table.disabledAt).where(sql`${table.disabledAt} is not null`),
  ],
);

/** The latest calls of each webhook. */
export const webhookAttempts = pgTable(
  "webhook_attempts",
  {
    id: bigserial("id", { mode: "number" }).primaryKey(),
    tenantId: tenantId(),
    webhookId: slug("webhook_id")
      .notNull()
      .references(() => webhooks.id, { onDelete: "cascade" }),
    at: time("at").notNull(),
    isTest: boolean("is_test").notNull(),
    messageId: text("message_id").notNull(),
    events: integer("events").notNull(),
    firstEventId: eventId("first_event_id"),
    lastEventId: eventId("last_event_id"),
    /** The answer's HTTP status; null: there was no answer. */
    status: integer("status"),
    /** Null: the receiver accepted the call. */
    error: text("error"),
    answer: text("answer"),
    ms: integer("ms").notNull(),
  },
  (table) => [index("webhook_attempts_by_webhook").on(table.webhookId, table.id)],
);

/** News for tenants with a webhook for it, which the event store does not contain. Rows are kept for some days. */
export const webhookNews = pgTable(
  "webhook_news",
  {
    tenantId: tenantId(),
    /** An id of the event clock (`nextEventId`): it rises in commit order, and contains the time of storage. */
    id: eventId("id").notNull(),
    /** A hash of its identity, so that repeated news is stored once. */
    key: slug("key").notNull(),
    type: slug("type").$type<NewsType>().notNull(),
    channel: slug("channel").$type<ChannelName>().notNull(),
    /** When it happened. */
    at: time("at").notNull(),
    /** JSON as a text, because PostgreSQL's own types refuse some of the characters that people can write. */
    data: text("data").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    uniqueIndex("webhook_news_by_key").on(table.tenantId, table.key),
    index("webhook_news_by_age").on(table.id),
  ],
);
