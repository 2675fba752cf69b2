import { boolean, index, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { DomainStatus, Finding } from "../../domain/channels/domain.ts";
import { createdAt, json, slug, tenantId } from "../../storage/tables.ts";

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
    /** The DKIM key, encrypted by the vault. */
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

/** The domain of the platform's own sender (`MAIL_FROM`); a former sender's row stays, for when it comes back. */
export const senderDomains = pgTable("sender_domains", {
  domain: slug("domain").primaryKey(),
  status: text("status").$type<DomainStatus>().notNull(),
  selector: text("selector").notNull(),
  /** The DKIM key, encrypted by the vault. */
  privateKey: text("private_key").notNull(),
  publicKey: text("public_key").notNull(),
  createdAt: createdAt(),
  checkedAt: timestamp("checked_at", { withTimezone: true, mode: "date" }),
  findings: json<{ readonly all: readonly StoredFinding[] }>("findings").notNull(),
});

/** A finding in the form that a JSON column can hold. */
type StoredFinding = { readonly [K in keyof Finding]: Finding[K] };
