import { type SQL, sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { DomainStatus, Finding } from "../domain/domain.ts";
import type { ChannelName, SuppressionReason } from "../domain/job.ts";
import type { JsonObject } from "../domain/json.ts";
import { type Permission, QUEUE_SHARE } from "../domain/tenant.ts";
import type { NotificationKind, PassType } from "../domain/wallet.ts";

/**
 * A JSON object. Through Bun.SQL, drizzle's own `jsonb` reaches the server as a JSON *string*: it reads back well, but no
 * operator works on it. Sent as text and cast on the server, it is right with every driver.
 */
const json = <T extends JsonObject>(name: string) =>
  customType<{ data: T; driverData: SQL | T }>({
    dataType: () => "jsonb",
    toDriver: (value) => sql`${JSON.stringify(value)}::text::jsonb`,
    // Only `toDriver` writes the column, from a T.
    fromDriver: (value) => value as T,
  })(name);

/** Text ordered byte by byte, so paging gives the same order on every server. */
const slug = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });

const createdAt = () => timestamp("created_at", { withTimezone: true, mode: "date" }).notNull();

/**
 * One row. `version` numbers the changes that tenant snapshots show: a transaction that makes one adds 1, which locks the row
 * until it commits, so versions become visible in order. `plansVersion` is the version of the last change to a plan. `shards`
 * never changes.
 */
export const registryState = pgTable(
  "registry_state",
  {
    id: smallint("id").primaryKey(),
    shards: integer("shards").notNull(),
    version: bigint("version", { mode: "number" }).notNull(),
    plansVersion: bigint("plans_version", { mode: "number" }).notNull(),
  },
  (table) => [check("registry_state_one_row", sql`${table.id} = 1`)],
);

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
    walletWebhookUrl: text("wallet_webhook_url"),
    /** `registry_state.version` of the last change that the tenant's snapshot shows. */
    version: bigint("version", { mode: "number" }).notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    check("tenants_tokens_not_negative", sql`${table.tokens} >= 0`),
    index("tenants_by_version").on(table.version),
  ],
);

const tenantId = () =>
  slug("tenant_id")
    .notNull()
    .references(() => tenants.id, { onDelete: "cascade" });

/** API keys. The key itself is not stored: `hash` is its SHA-256 in hex. */
export const keys = pgTable(
  "keys",
  {
    id: slug("id").primaryKey(),
    tenantId: tenantId(),
    hash: text("hash").notNull().unique(),
    prefix: text("prefix").notNull(),
    createdAt: createdAt(),
  },
  (table) => [index("keys_by_tenant").on(table.tenantId)],
);

/** A tenant's own provider credentials, sealed by the vault. */
export const credentials = pgTable(
  "credentials",
  { tenantId: tenantId(), kind: slug("kind").notNull(), sealed: text("sealed").notNull() },
  (table) => [primaryKey({ columns: [table.tenantId, table.kind] })],
);

export const templates = pgTable(
  "templates",
  {
    tenantId: tenantId(),
    slug: slug("slug").notNull(),
    channel: text("channel").$type<ChannelName>().notNull(),
    /** The template's content, in the channel's own form. */
    body: json("body").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.slug] })],
);

/**
 * The ledger of wallet tokens: adjustments by an operator, charges for a job, refunds of a charge. A job has at most one of
 * each kind, so a repeated charge takes nothing.
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
  (table) => [
    index("token_movements_by_tenant").on(table.tenantId, table.id),
    uniqueIndex("token_movements_once_a_job").on(table.jobId, table.kind).where(sql`${table.jobId} is not null`),
  ],
);

/** Recipients that must not be sent to, by normalized address. The queue keeps an index of this list. */
export const suppressions = pgTable(
  "suppressions",
  {
    tenantId: tenantId(),
    address: slug("address").notNull(),
    reason: text("reason").$type<SuppressionReason>().notNull(),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.address] })],
);

/** Tenants' sending domains. A domain belongs to at most one tenant. */
export const domains = pgTable(
  "domains",
  {
    domain: slug("domain").primaryKey(),
    tenantId: tenantId(),
    relayEnabled: boolean("relay_enabled").notNull(),
    smtpEnabled: boolean("smtp_enabled").notNull(),
    relayStatus: text("relay_status").$type<DomainStatus>().notNull(),
    smtpStatus: text("smtp_status").$type<DomainStatus>().notNull(),
    selector: text("selector").notNull(),
    /** The DKIM key, sealed by the vault. */
    privateKey: text("private_key").notNull(),
    publicKey: text("public_key").notNull(),
    returnPathHost: text("return_path_host").notNull(),
    createdAt: createdAt(),
    checkedAt: timestamp("checked_at", { withTimezone: true, mode: "date" }),
    /** The result of the last verification. */
    findings: json<{ readonly all: readonly StoredFinding[] }>("findings").notNull(),
  },
  (table) => [index("domains_by_tenant").on(table.tenantId)],
);

/** Tenants' own names for the chat provider's templates. */
export const aliases = pgTable(
  "aliases",
  {
    tenantId: tenantId(),
    alias: slug("alias").notNull(),
    metaName: text("meta_name").notNull(),
    languageCode: text("language_code"),
    /** What each position stands for. */
    params: text("params").array().notNull(),
    /** `HeaderMedia`, for templates whose header has media. */
    header: json("header"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.alias] })],
);

const bytes = customType<{ data: Uint8Array<ArrayBuffer>; driverData: Uint8Array }>({
  dataType: () => "bytea",
  fromDriver: (value) => new Uint8Array(value),
});

/**
 * Wallet passes. A serial is unique per tenant, except among passes whose creation failed. `bundle` is the signed file of
 * `bundleVersion`; `updateTag` changes with it (see `passTypes`).
 */
export const passes = pgTable(
  "passes",
  {
    id: slug("id").primaryKey(),
    tenantId: tenantId(),
    type: text("type").$type<PassType>().notNull(),
    serial: slug("serial").notNull(),
    state: text("state").$type<"creating" | "ready" | "failed">().notNull(),
    version: integer("version").notNull(),
    /** `PassContent`. */
    content: json("content").notNull(),
    passTypeId: slug("pass_type_id"),
    /** Sealed by the vault. */
    authenticationToken: text("authentication_token"),
    jobId: text("job_id").notNull(),
    bundle: bytes("bundle"),
    bundleVersion: integer("bundle_version"),
    /** Whole seconds since 1970. */
    bundleModifiedAt: bigint("bundle_modified_at", { mode: "number" }),
    updateTag: bigint("update_tag", { mode: "number" }).notNull().default(0),
    createdAt: createdAt(),
  },
  (table) => [
    uniqueIndex("passes_serial_once")
      .on(table.tenantId, table.type, table.serial)
      .where(sql`${table.state} <> 'failed'`),
    uniqueIndex("passes_by_job").on(table.jobId),
    index("passes_by_pass_type").on(table.passTypeId, table.serial).where(sql`${table.passTypeId} is not null`),
    index("passes_creating").on(table.createdAt).where(sql`${table.state} = 'creating'`),
  ],
);

/** One row per version of a pass: who made it and why. */
export const passVersions = pgTable(
  "pass_versions",
  {
    passId: slug("pass_id")
      .notNull()
      .references(() => passes.id, { onDelete: "cascade" }),
    version: integer("version").notNull(),
    jobId: text("job_id").notNull(),
    notificationKind: text("notification_kind").$type<NotificationKind>(),
    notifyMessage: text("notify_message"),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.passId, table.version] })],
);

/** Images of a tenant's passes, each stored once: `hash` is the SHA-256 of its bytes in hex. */
export const passImages = pgTable(
  "pass_images",
  { tenantId: tenantId(), hash: slug("hash").notNull(), png: bytes("png").notNull() },
  (table) => [primaryKey({ columns: [table.tenantId, table.hash] })],
);

/**
 * Classes of Google passes on the issuer that tenants share, each with the one tenant that may use it. Written before Google
 * has the class, and never changed.
 */
export const googleClasses = pgTable("google_classes", {
  classId: slug("class_id").primaryKey(),
  tenantId: tenantId(),
  createdAt: createdAt(),
});

/**
 * `lastTag` numbers the bundles of a pass type: storing one adds 1, which locks the row until the commit, so tags become
 * visible in order and no device's "what changed since" skips one.
 */
export const passTypes = pgTable("pass_types", {
  passTypeId: slug("pass_type_id").primaryKey(),
  lastTag: bigint("last_tag", { mode: "number" }).notNull(),
});

/** Devices with passes of a type, and the latest push token from each. */
export const passDevices = pgTable(
  "pass_devices",
  {
    deviceId: slug("device_id").notNull(),
    passTypeId: slug("pass_type_id").notNull(),
    pushToken: text("push_token").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.deviceId, table.passTypeId] }),
    index("pass_devices_by_token").on(table.passTypeId, table.pushToken),
  ],
);

/** Which device holds which pass, and where the pass's tenant reaches it. Null: a row of a former release. */
export const passRegistrations = pgTable(
  "pass_registrations",
  {
    deviceId: slug("device_id").notNull(),
    passId: slug("pass_id")
      .notNull()
      .references(() => passes.id, { onDelete: "cascade" }),
    createdAt: createdAt(),
    pushToken: text("push_token"),
  },
  (table) => [
    primaryKey({ columns: [table.deviceId, table.passId] }),
    index("registrations_by_pass").on(table.passId),
    index("registrations_by_token").on(table.pushToken),
  ],
);

/**
 * Payloads of jobs that are too large for the queue, as UTF-8 text. Written before the job is queued, removed some time after
 * it has ended. Job ids rise with time; the sweep relies on that.
 */
export const payloads = pgTable("payloads", {
  jobId: slug("job_id").primaryKey(),
  tenantId: tenantId(),
  body: bytes("body").notNull(),
});

/** A finding in the form that a JSON column can hold. */
type StoredFinding = { readonly [K in keyof Finding]: Finding[K] };
