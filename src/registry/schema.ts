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
import type { DomainStatus, Finding } from "../core/domain.ts";
import type { ChannelName, SuppressionReason } from "../core/job.ts";
import type { JsonObject } from "../core/json.ts";
import type { Permission } from "../core/tenant.ts";

/**
 * A JSON object. Drizzle's own `jsonb` reaches the server through Bun.SQL as a JSON *string*: it reads back well, but
 * no operator works on it. Sent as text and cast on the server it is right on every driver.
 */
const json = <T extends JsonObject>(name: string) =>
  customType<{ data: T; driverData: SQL | T }>({
    dataType: () => "jsonb",
    toDriver: (value) => sql`${JSON.stringify(value)}::text::jsonb`,
    // The column is written by `toDriver` alone, from a T.
    fromDriver: (value) => value as T,
  })(name);

/** Text that is ordered byte by byte, so that paging gives the same order on every server. */
const slug = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });

const createdAt = () => timestamp("created_at", { withTimezone: true, mode: "date" }).notNull();

/**
 * One row. `version` numbers the changes that snapshots of tenants show: a transaction that makes one adds 1, which locks the
 * row until it commits, so versions become visible in their order. `plansVersion` is the version of the last change to
 * a plan. `shards` never changes.
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

/** API keys. The key itself is not here: `hash` is the SHA-256 of it, in hex. */
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
    /** What a template of the channel consists of. */
    body: json("body").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.slug] })],
);

/**
 * The ledger of wallet tokens: adjustments by an operator, charges for a job, refunds of a charge. A job has at most
 * one of each kind, so that a charge that is repeated takes nothing.
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

/** Recipients that must not be sent to, by normalised address. The journal keeps an index of this list. */
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

/** Tenants' sending domains. A domain belongs to one tenant at most. */
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
    /** What the last verification found. */
    findings: json<{ readonly all: readonly StoredFinding[] }>("findings").notNull(),
  },
  (table) => [index("domains_by_tenant").on(table.tenantId)],
);

/** A finding as a JSON column can hold it. */
type StoredFinding = { readonly [K in keyof Finding]: Finding[K] };
