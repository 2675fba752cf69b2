import { sql } from "drizzle-orm";
import {
  bigint,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { NotificationKind, PassType } from "../../domain/channels/wallet.ts";
import { bytes, createdAt, json, slug, tenantId } from "../../storage/tables.ts";

/**
 * Wallet passes. A serial is unique per tenant, except among passes whose creation failed. `bundle` is the signed file
 * of `bundleVersion`; `updateTag` changes with it (see `passTypes`). A Google pass that a message carries has no
 * bundle, but a `bundleVersion` once Google has it. `createdAt` is the time at which the pass was stored, its job was
 * last retried, or it failed.
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
    /** Encrypted by the vault. */
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
    index("passes_google_by_serial")
      .on(table.serial)
      .where(sql`${table.type} = 'google' and ${table.state} <> 'failed'`),
    index("passes_by_pass_type").on(table.passTypeId, table.serial).where(sql`${table.passTypeId} is not null`),
    index("passes_creating").on(table.createdAt).where(sql`${table.state} = 'creating'`),
    index("passes_failed").on(table.createdAt).where(sql`${table.state} = 'failed'`),
    index("passes_failed_of_tenant").on(table.tenantId, table.createdAt).where(sql`${table.state} = 'failed'`),
  ],
);

/** One row for each of the latest versions of a pass: its author and reason. */
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

/** Images of a tenant's passes, each stored once under its id (`image-hash.ts`). */
export const passImages = pgTable(
  "pass_images",
  { tenantId: tenantId(), hash: slug("hash").notNull(), png: bytes("png").notNull() },
  (table) => [primaryKey({ columns: [table.tenantId, table.hash] })],
);

/** Uses of images by passes, for images that are removed with their last pass. */
export const passImageUses = pgTable(
  "pass_image_uses",
  {
    passId: slug("pass_id")
      .notNull()
      .references(() => passes.id, { onDelete: "cascade" }),
    tenantId: tenantId(),
    hash: slug("hash").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.passId, table.hash] }),
    index("pass_image_uses_by_image").on(table.tenantId, table.hash),
    foreignKey({ columns: [table.tenantId, table.hash], foreignColumns: [passImages.tenantId, passImages.hash] }),
  ],
);

/**
 * Classes of Google passes on the issuer that tenants share, each with its only tenant. Written before Google has the
 * class, and never changed.
 */
export const googleClasses = pgTable(
  "google_classes",
  {
    classId: slug("class_id").primaryKey(),
    tenantId: tenantId(),
    createdAt: createdAt(),
  },
  (table) => [index("google_classes_by_tenant").on(table.tenantId)],
);

/** The number of people who have saved a Google pass, according to Google's callbacks. */
export const passSaves = pgTable("pass_saves", {
  passId: slug("pass_id")
    .primaryKey()
    .references(() => passes.id, { onDelete: "cascade" }),
  holders: integer("holders").notNull(),
});

/** Accepted callbacks of Google, by the hash of their nonce, until they expire. */
export const passCallbacks = pgTable(
  "pass_callbacks",
  {
    passId: slug("pass_id")
      .notNull()
      .references(() => passes.id, { onDelete: "cascade" }),
    nonce: slug("nonce").notNull(),
    expiresAt: timestamp("expires_at", { withTimezone: true, mode: "date" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.passId, table.nonce] })],
);

/**
 * `lastTag` numbers the bundles of a pass type by the time (unix ms), or one more than the last: storing one locks the row until
 * the commit, so tags become visible in order and no device's "what changed since" skips one.
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

/**
 * Passes on devices, with the push token for the pass's tenant (null in rows of a former release). `registeredAt`: when
 * the device last sent that token, with any pass of the tenant and type.
 */
export const passRegistrations = pgTable(
  "pass_registrations",
  {
    deviceId: slug("device_id").notNull(),
    passId: slug("pass_id")
      .notNull()
      .references(() => passes.id, { onDelete: "cascade" }),
    registeredAt: createdAt(),
    pushToken: text("push_token"),
  },
  (table) => [
    primaryKey({ columns: [table.deviceId, table.passId] }),
    index("registrations_by_pass").on(table.passId),
    index("registrations_by_token").on(table.pushToken),
  ],
);
