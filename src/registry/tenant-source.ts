import { eq, gt } from "drizzle-orm";
import type { EmailTemplate } from "../core/email.ts";
import type { ChannelName } from "../core/job.ts";
import type { JsonObject } from "../core/json.ts";
import type { Tenant } from "../core/tenant.ts";
import type { WalletTemplate } from "../core/wallet.ts";
import { readAliases } from "./alias-repository.ts";
import type { AnyDb, Database } from "./database.ts";
import { readVerifiedDomains } from "./domain-repository.ts";
import { emailCredentialsPlace, parseEmailCredentials } from "./email-credentials.ts";
import { parseEmailTemplate } from "./email-template.ts";
import { credentials, keys, plans, registryState, templates, tenants } from "./schema.ts";
import type { SecretPlace, Vault } from "./vault.ts";
import { applePlace, googlePlace, parseAppleSigner, parseGoogleIssuer } from "./wallet-credentials.ts";
import { parseWalletTemplate } from "./wallet-template.ts";
import { parseWhatsappCredentials, whatsappCredentialsPlace } from "./whatsapp-credentials.ts";

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
      const [rows, allTemplates, ownCredentials, domains, aliases] = await Promise.all([
        db.select().from(tenants).innerJoin(plans, eq(plans.name, tenants.plan)).where(eq(tenants.id, tenantId)),
        readTemplates(db, tenantId),
        this.readCredentials(db, tenantId),
        readVerifiedDomains(db, this.vault, tenantId),
        readAliases(db, tenantId),
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
        emailTemplates: allTemplates.email,
        emailSender: allowCustom.has("email")
          ? ownCredentials(emailCredentialsPlace(tenantId), parseEmailCredentials)
          : null,
        domains,
        whatsapp: {
          sender: allowCustom.has("whatsapp")
            ? ownCredentials(whatsappCredentialsPlace(tenantId), parseWhatsappCredentials)
            : null,
          aliases,
        },
        wallet: {
          apple: allowCustom.has("wallet") ? ownCredentials(applePlace(tenantId), parseAppleSigner) : null,
          google: allowCustom.has("wallet") ? ownCredentials(googlePlace(tenantId), parseGoogleIssuer) : null,
          templates: allTemplates.wallet,
          webhookUrl: row.tenants.walletWebhookUrl,
        },
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

  /** Answers what opens a tenant's credentials of a kind: null where it has none. */
  private async readCredentials(db: AnyDb, tenantId: string) {
    const rows = await db.select().from(credentials).where(eq(credentials.tenantId, tenantId));
    return <T>(place: SecretPlace, parse: (text: string) => T): T | null => {
      const row = rows.find(({ kind }) => kind === place.kind);
      return row === undefined ? null : parse(this.vault.open(place, row.sealed));
    };
  }
}

interface Templates {
  readonly email: ReadonlyMap<string, EmailTemplate>;
  readonly wallet: ReadonlyMap<string, WalletTemplate>;
}

async function readTemplates(db: AnyDb, tenantId: string): Promise<Templates> {
  const rows = await db.select().from(templates).where(eq(templates.tenantId, tenantId));
  const of = <T>(channel: ChannelName, parse: (body: JsonObject) => T) =>
    new Map(rows.filter((row) => row.channel === channel).map(({ slug, body }) => [slug, parse(body)]));
  return { email: of("email", parseEmailTemplate), wallet: of("wallet", parseWalletTemplate) };
}
