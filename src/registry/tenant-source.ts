import { and, eq, gt } from "drizzle-orm";
import type { EmailSender, EmailTemplate } from "../core/email.ts";
import type { Tenant } from "../core/tenant.ts";
import type { AnyDb, Database } from "./database.ts";
import { readVerifiedDomains } from "./domain-repository.ts";
import { emailCredentialsPlace, parseEmailCredentials } from "./email-credentials.ts";
import { parseEmailTemplate } from "./email-template.ts";
import { credentials, keys, plans, registryState, templates, tenants } from "./schema.ts";
import type { Vault } from "./vault.ts";

/** What changed since a version. */
export interface TenantChanges {
  /** The registry's version now. */
  readonly version: number;
  /** The tenants that changed, or null: too many to name, or a plan changed. */
  readonly tenantIds: readonly string[] | null;
}

/** More than this many changed tenants are not named one by one. */
const CHANGES_MAX = 1_000;

/** Reads what snapshots are made of. Rejects with `UnavailableError` when the registry cannot be reached. */
export class TenantSource {
  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
  ) {}

  /** The tenant that holds the key with this hash, or null. */
  async tenantOfKey(hash: string): Promise<string | null> {
    const [key] = await this.database.read((db) =>
      db.select({ tenantId: keys.tenantId }).from(keys).where(eq(keys.hash, hash)),
    );
    return key?.tenantId ?? null;
  }

  async tenant(tenantId: string): Promise<Tenant | null> {
    return this.database.read(async (db) => {
      const [rows, emailTemplates, emailSender, domains] = await Promise.all([
        db.select().from(tenants).innerJoin(plans, eq(plans.name, tenants.plan)).where(eq(tenants.id, tenantId)),
        readEmailTemplates(db, tenantId),
        this.readEmailSender(db, tenantId),
        readVerifiedDomains(db, this.vault, tenantId),
      ]);
      const [row] = rows;
      if (row === undefined) return null;
      const allowCustom = new Set(row.tenants.allowCustom);
      return {
        tenantId,
        shard: row.tenants.shard,
        name: row.tenants.name,
        plan: row.plans,
        channels: new Set(row.tenants.channels),
        permissions: new Set(row.tenants.permissions),
        allowCustom,
        emailTemplates,
        emailSender: allowCustom.has("email") ? emailSender : null,
        domains,
        whatsapp: { sender: null, aliases: new Map() },
        wallet: { apple: null, google: null, templates: new Map(), webhookUrl: row.tenants.walletWebhookUrl },
      };
    });
  }

  /** One statement, so that it sees one state: no version without the changes before it. */
  async changesSince(version: number): Promise<TenantChanges> {
    const rows = await this.database.read((db) =>
      db
        .select({ version: registryState.version, plansVersion: registryState.plansVersion, tenantId: tenants.id })
        .from(registryState)
        .leftJoin(tenants, gt(tenants.version, version))
        .limit(CHANGES_MAX + 1),
    );
    const [first] = rows;
    if (first === undefined) throw new Error("the registry's state row is missing");
    // A version that went back: the database was restored from a backup.
    const all = first.version < version || first.plansVersion > version || rows.length > CHANGES_MAX;
    const tenantIds = rows.flatMap(({ tenantId }) => (tenantId === null ? [] : [tenantId]));
    return { version: first.version, tenantIds: all ? null : tenantIds };
  }

  private async readEmailSender(db: AnyDb, tenantId: string): Promise<EmailSender | null> {
    const place = emailCredentialsPlace(tenantId);
    const [row] = await db
      .select({ sealed: credentials.sealed })
      .from(credentials)
      .where(and(eq(credentials.tenantId, tenantId), eq(credentials.kind, place.kind)));
    return row === undefined ? null : parseEmailCredentials(this.vault.open(place, row.sealed));
  }
}

async function readEmailTemplates(db: AnyDb, tenantId: string): Promise<ReadonlyMap<string, EmailTemplate>> {
  const rows = await db
    .select({ slug: templates.slug, body: templates.body })
    .from(templates)
    .where(and(eq(templates.tenantId, tenantId), eq(templates.channel, "email")));
  return new Map(rows.map(({ slug, body }) => [slug, parseEmailTemplate(body)]));
}
