import { type SQL, sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  check,
  customType,
  doublePrecision,
  foreignKey,
  index,
  integer,
  type PgColumn,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import type { TrackingChoice } from "../domain/channels/email.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Reputation } from "../domain/tenants/reputation.ts";
import { type Permission, QUEUE_SHARE } from "../domain/tenants/tenant.ts";
import { EXACT_CHARS_MAX, type JsonObject, parseWritten } from "../domain/texts/json.ts";

// Columns of several folders' tables, and tables that several folders use. The others are in the `tables.ts` of their
// folders.

/**
 * A JSON object. Through Bun.SQL, drizzle's own `jsonb` reaches the server as a JSON *string*: it reads back correctly,
 * but JSON operators do not work on it. Sent as text and cast on the server, it is correct with every driver.
 */
export const json = <T extends JsonObject>(name: string) =>
  customType<{ data: T; driverData: SQL | T }>({
    dataType: () => "jsonb",
    toDriver: (value) => sql`${JSON.stringify(value)}::text::jsonb`,
    // Only `toDriver` writes the column, from a T.
    fromDriver: (value) => value as T,
  })(name);

/** As `json`, with numbers digit by digit, as the column keeps them: drivers convert them to doubles. */
export const exactJson = (column: PgColumn) =>
  sql<JsonObject>`${column}::text`.mapWith(
    // PostgreSQL writes exponents out: those numbers were doubles.
    (text: string) => parseWritten(text, 0, EXACT_CHARS_MAX) as JsonObject,
  );

/** Text ordered byte by byte, so paging gives the same order on every server. */
export const slug = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });

export const bytes = customType<{ data: Uint8Array<ArrayBuffer>; driverData: Uint8Array }>({
  dataType: () => "bytea",
  fromDriver: (value) => new Uint8Array(value),
});

/** To the millisecond, so that it can be compared with a value that was read from it. */
const storedAt = () =>
  timestamp("stored_at", { withTimezone: true, mode: "date", precision: 3 }).notNull().defaultNow();

export const createdAt = () => timestamp("created_at", { withTimezone: true, mode: "date" }).notNull();

/**
 * One row. `version` numbers the changes that tenant snapshots show: a transaction that makes one adds 1, which locks the row
 * until it commits, so versions become visible in order. `plansVersion` is the version of the last change to a plan,
 * `operatorsVersion` that of the last change to an operator. `shards` never changes.
 */
export const registryState = pgTable(
  "registry_state",
  {
    id: smallint("id").primaryKey(),
    shards: integer("shards").notNull(),
    version: bigint("version", { mode: "number" }).notNull(),
    plansVersion: bigint("plans_version", { mode: "number" }).notNull(),
    operatorsVersion: bigint("operators_version", { mode: "number" }).notNull().default(1),
  },
  (table) => [check("registry_state_one_row", sql`${table.id} = 1`)],
);

/** The registry's own keys, encrypted by the vault: data made with them stays valid when the master key changes. */
export const registryKeys = pgTable("registry_keys", {
  name: slug("name").primaryKey(),
  sealed: text("sealed").notNull(),
});

export const plans = pgTable("plans", {
  name: slug("name").primaryKey(),
  requestsPerMinute: integer("requests_per_minute").notNull(),
  deliveriesPerSecond: doublePrecision("deliveries_per_second"),
  // With defaults, because the previous release adds plans without them while this one starts.
  queuedJobsMax: integer("queued_jobs_max").notNull().default(QUEUE_SHARE.queuedJobsMax),
  queuedBytesMax: bigint("queued_bytes_max", { mode: "number" }).notNull().default(QUEUE_SHARE.queuedBytesMax),
  holdMs: integer("hold_ms").notNull().default(QUEUE_SHARE.holdMs),
});

export const tenants = pgTable(
  "tenants",
  {
    id: slug("id").primaryKey(),
    name: text("name").notNull(),
    plan: slug("plan")
      .notNull()
      .references(() => plans.name),
    channels: text("channels").array().$type<ChannelName[]>().notNull(),
    permissions: text("permissions").array().$type<Permission[]>().notNull(),
    allowCustom: text("allow_custom").array().$type<ChannelName[]>().notNull(),
    /** Balance of wallet tokens: the sum of the tenant's movements. */
    tokens: bigint("tokens", { mode: "number" }).notNull(),
    shard: integer("shard").notNull(),
    /**
     * Tokens given back on a UTC day, the last one on which there were any (days since 1970). The previous release does
     * not count them.
     */
    refundDay: integer("refund_day").notNull().default(0),
    refunds: integer("refunds").notNull().default(0),
    walletWebhookUrl: text("wallet_webhook_url"),
    // Operators' decisions (domain/steering.ts): with defaults, because the previous release adds tenants without them.
    paused: text("paused").array().$type<ChannelName[]>().notNull().default([]),
    held: text("held").array().$type<ChannelName[]>().notNull().default([]),
    /** Unix ms by channel, as `resumedAt`. */
    purgedBefore: json<Record<ChannelName, number>>("purged_before").notNull().default(sql`'{}'::jsonb`),
    resumedAt: json<Record<ChannelName, number>>("resumed_at").notNull().default(sql`'{}'::jsonb`),
    /** The reputation governor's state; `{}`: the tenant is not governed. */
    reputation: json<Partial<Reputation>>("reputation").notNull().default(sql`'{}'::jsonb`),
    /** For its e-mails, if neither the message nor its template sets it. */
    tracking: json<TrackingChoice>("tracking").notNull().default(sql`'{}'::jsonb`),
    /**
     * Suppressions that the tenant has added itself, less those that were removed again. The previous release does not
     * count them.
     */
    ownSuppressions: integer("own_suppressions").notNull().default(0),
    /**
     * An operator deleted the tenant: it no longer exists for any reader but the removal and the bills. The row stays
     * for good, so that its id is not reused, and so that it can be billed.
     */
    deletedAt: timestamp("deleted_at", { withTimezone: true, mode: "date" }),
    /** All other data of the deleted tenant is gone. */
    removedAt: timestamp("removed_at", { withTimezone: true, mode: "date" }),
    /** `registry_state.version` of the last change that the tenant's snapshot shows. */
    version: bigint("version", { mode: "number" }).notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    check("tenants_tokens_not_negative", sql`${table.tokens} >= 0`),
    index("tenants_by_version").on(table.version),
    index("tenants_leaving")
      .on(table.deletedAt)
      .where(sql`${table.deletedAt} is not null and ${table.removedAt} is null`),
  ],
);

export const tenantId = () =>
  slug("tenant_id")
    .notNull()
    .references(() => tenants.id, { onDelete: "cascade" });

/**
 * The ledger of wallet tokens: adjustments by an operator, charges for a job, refunds of a charge. A job has at most
 * one of each kind, so a repeated charge has no effect.
 */
export const tokenMovements = pgTable(
  "token_movements",
  {
    id: bigserial("id", { mode: "number" }).primaryKey(),
    tenantId: tenantId(),
    kind: text("kind").$type<"adjustment" | "charge" | "refund">().notNull(),
    amount: bigint("amount", { mode: "number" }).notNull(),
    reason: text("reason").notNull(),
    jobId: text("job_id"),
    /** The tenant's balance after the movement. */
    balance: bigint("balance", { mode: "number" }).notNull(),
    createdAt: createdAt(),
  },
  (table) => [index("token_movements_by_tenant").on(table.tenantId, table.id)],
);

/**
 * Payloads of jobs that are too large for the queue, as UTF-8 text. Written before the job is queued, removed some time after
 * it has ended. Job ids rise with time; the sweep relies on that.
 */
export const payloads = pgTable("payloads", {
  jobId: slug("job_id").primaryKey(),
  tenantId: tenantId(),
  body: bytes("body").notNull(),
  storedAt: storedAt(),
});

/** Files that jobs send, such as attachments: each content of a tenant once. */
export const contents = pgTable(
  "contents",
  {
    tenantId: tenantId(),
    /** Lower-case hexadecimal. */
    sha256: slug("sha256").notNull(),
    body: bytes("body").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.sha256] })],
);

/** Which jobs need which files. A content without a use is removed. */
export const contentUses = pgTable(
  "content_uses",
  {
    jobId: slug("job_id").notNull(),
    tenantId: tenantId(),
    sha256: slug("sha256").notNull(),
    storedAt: storedAt(),
  },
  (table) => [
    primaryKey({ columns: [table.jobId, table.sha256] }),
    index("content_uses_by_content").on(table.tenantId, table.sha256),
    foreignKey({ columns: [table.tenantId, table.sha256], foreignColumns: [contents.tenantId, contents.sha256] }),
  ],
);
