import { and, asc, inArray, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { emailCredentialsPlace, parseEmailCredentials } from "../channels/email/credentials.ts";
import { verifiedDomainOf } from "../channels/email/domains/domain-repository.ts";
import { parseEmailTemplate } from "../channels/email/stored-template.ts";
import { applePlace, googlePlace, parseAppleSigner, parseGoogleIssuer } from "../channels/wallet/credentials.ts";
import { parseWalletTemplate } from "../channels/wallet/stored-template.ts";
import { aliasOf } from "../channels/whatsapp/alias-repository.ts";
import { parseWhatsappCredentials, whatsappCredentialsPlace } from "../channels/whatsapp/credentials.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import type { VerifiedDomain } from "../domain/domain.ts";
import type { EmailTemplate } from "../domain/email.ts";
import type { Plan, Tenant } from "../domain/tenant.ts";
import type { WalletTemplate } from "../domain/wallet.ts";
import type { WhatsappAlias } from "../domain/whatsapp.ts";
import type { AnyDb, Database } from "../storage/database.ts";
import { aliases, credentials, domains, templates, type tenants } from "../storage/tables.ts";
import type { SecretPlace, Vault } from "../storage/vault.ts";

/**
 * What one statement reads at most: that much of JSON to parse and of secrets to open takes the thread some milliseconds.
 * A row that is larger is read alone.
 */
const PIECE_ROWS_MAX = 500;
const PIECE_BYTES_MAX = 128 * 1024;

type TenantRow = typeof tenants.$inferSelect;

/** What belongs to one tenant. */
class Belongings {
  readonly emailTemplates = new Map<string, EmailTemplate>();
  readonly walletTemplates = new Map<string, WalletTemplate>();
  readonly domains = new Map<string, VerifiedDomain>();
  readonly aliases = new Map<string, WhatsappAlias>();
  /** By kind. */
  readonly sealed = new Map<string, string>();
  /** Why it cannot be read. */
  error: unknown = null;
}

/** Reads what belongs to some tenants, a bounded piece at a time, with a turn of the event loop behind each. */
export class TenantReading {
  private readonly belongings = new Map<string, Belongings>();

  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
    private readonly clock: Clock,
  ) {}

  async read(tenantIds: readonly string[]): Promise<void> {
    if (tenantIds.length === 0) return;
    for (const tenantId of tenantIds) this.belongings.set(tenantId, new Belongings());
    await this.pieces(tenantIds, {
      table: templates,
      key: { tenantId: templates.tenantId, name: templates.slug },
      sized: templates.body,
      read: (db, where) => db.select().from(templates).where(where),
      keep: ({ slug, channel, body }, into) => {
        if (channel === "email") into.emailTemplates.set(slug, parseEmailTemplate(body));
        if (channel === "wallet") into.walletTemplates.set(slug, parseWalletTemplate(body));
      },
    });
    await this.pieces(tenantIds, {
      table: credentials,
      key: { tenantId: credentials.tenantId, name: credentials.kind },
      sized: credentials.sealed,
      read: (db, where) => db.select().from(credentials).where(where),
      keep: ({ kind, sealed }, into) => into.sealed.set(kind, sealed),
    });
    await this.pieces(tenantIds, {
      table: domains,
      key: { tenantId: domains.tenantId, name: domains.domain },
      sized: domains.privateKey,
      read: (db, where) => db.select().from(domains).where(where),
      keep: (row, into) => {
        const verified = verifiedDomainOf(row, this.vault);
        if (verified !== null) into.domains.set(row.domain, verified);
      },
    });
    await this.pieces(tenantIds, {
      table: aliases,
      key: { tenantId: aliases.tenantId, name: aliases.alias },
      sized: aliases.params,
      read: (db, where) => db.select().from(aliases).where(where),
      keep: (row, into) => into.aliases.set(row.alias, aliasOf(row)),
    });
  }

  /** The tenant, after `read`. */
  tenant(row: Omit<TenantRow, "plan"> & { readonly plan: Plan }): PromiseSettledResult<Tenant> {
    try {
      return { status: "fulfilled", value: this.assembled(row) };
    } catch (reason) {
      return { status: "rejected", reason };
    }
  }

  private assembled(row: Omit<TenantRow, "plan"> & { readonly plan: Plan }): Tenant {
    const { id: tenantId, shard, name, plan } = row;
    const own = this.belongings.get(tenantId);
    if (own === undefined) throw new Error("a tenant was not read");
    if (own.error !== null) throw own.error;
    const allowCustom = new Set(row.allowCustom);
    const opened = <T>(place: SecretPlace, parse: (text: string) => T): T | null => {
      const sealed = own.sealed.get(place.kind);
      return sealed === undefined ? null : parse(this.vault.open(place, sealed));
    };
    const hasOwnWallet = allowCustom.has("wallet");
    return {
      tenantId,
      shard,
      name,
      plan,
      channels: new Set(row.channels),
      permissions: new Set(row.permissions),
      allowCustom,
      emailTemplates: own.emailTemplates,
      emailSender: allowCustom.has("email") ? opened(emailCredentialsPlace(tenantId), parseEmailCredentials) : null,
      domains: own.domains,
      whatsapp: {
        sender: allowCustom.has("whatsapp")
          ? opened(whatsappCredentialsPlace(tenantId), parseWhatsappCredentials)
          : null,
        aliases: own.aliases,
      },
      wallet: {
        apple: hasOwnWallet ? opened(applePlace(tenantId), parseAppleSigner) : null,
        google: hasOwnWallet ? opened(googlePlace(tenantId), parseGoogleIssuer) : null,
        templates: own.walletTemplates,
        webhookUrl: row.walletWebhookUrl,
      },
    };
  }

  /** All rows of a table that belong to the tenants, in the order of its key. */
  private async pieces<R extends { readonly tenantId: string }>(
    tenantIds: readonly string[],
    table: PiecesOf<R>,
  ): Promise<void> {
    const ofTenants = inArray(table.key.tenantId, [...tenantIds]);
    for (let after: RowKey | null = null; ; ) {
      const end: PieceEnd | null = await this.endOfPiece(table, and(ofTenants, beyond(table, after)));
      if (end === null) return;
      const piece = and(ofTenants, beyond(table, after), upTo(table, end.last));
      for (const row of await this.database.read((db) => table.read(db, piece))) this.keep(row, table);
      await sleep(this.clock, 0);
      if (!end.hasMore) return;
      after = end.last;
    }
  }

  /** Where the piece ends that begins with the first of these rows; null: there are none. */
  private async endOfPiece<R>({ table, key, sized }: PiecesOf<R>, where: SQL | undefined): Promise<PieceEnd | null> {
    const rows = await this.database.read((db) =>
      db
        .select({
          tenantId: sql<string>`${key.tenantId}`,
          name: sql<string>`${key.name}`,
          bytes: sql<number>`pg_column_size(${sized})`,
        })
        .from(table)
        .where(where)
        .orderBy(asc(key.tenantId), asc(key.name))
        .limit(PIECE_ROWS_MAX + 1),
    );
    const [first] = rows;
    if (first === undefined) return null;
    let [last, bytes] = [first, 0];
    for (const [at, row] of rows.entries()) {
      bytes += row.bytes;
      if (at > 0 && (at === PIECE_ROWS_MAX || bytes > PIECE_BYTES_MAX)) return { last, hasMore: true };
      last = row;
    }
    return { last, hasMore: false };
  }

  private keep<R extends { readonly tenantId: string }>(row: R, { keep }: PiecesOf<R>): void {
    const into = this.belongings.get(row.tenantId);
    if (into === undefined) return;
    try {
      keep(row, into);
    } catch (error) {
      into.error ??= error;
    }
  }
}

/** A table of what belongs to tenants. */
interface PiecesOf<R> {
  readonly table: PgTable;
  /** Unique, and what its pieces are ordered by. */
  readonly key: { readonly tenantId: PgColumn; readonly name: PgColumn };
  /** The column that most of a row's bytes are in. */
  readonly sized: PgColumn;
  read(db: AnyDb, where: SQL | undefined): Promise<readonly R[]>;
  keep(row: R, into: Belongings): void;
}

interface RowKey {
  readonly tenantId: string;
  readonly name: string;
}

interface PieceEnd {
  readonly last: RowKey;
  readonly hasMore: boolean;
}

function beyond<R>({ key }: PiecesOf<R>, after: RowKey | null): SQL | undefined {
  return after === null ? undefined : sql`(${key.tenantId}, ${key.name}) > (${after.tenantId}, ${after.name})`;
}

function upTo<R>({ key }: PiecesOf<R>, last: RowKey): SQL {
  return sql`(${key.tenantId}, ${key.name}) <= (${last.tenantId}, ${last.name})`;
}
