import { and, asc, type SQL, sql } from "drizzle-orm";
import { type Clock, sleep } from "../domain/clock.ts";
import type { ChannelMembers, Plan, Tenant } from "../domain/tenants/tenant.ts";
import { among } from "../storage/analysts/statement-texts.ts";
import type { Database } from "../storage/postgres/database.ts";
import { type tenants } from "../storage/tables.ts";
import type { OwnedRow, StoredTemplates, TenantPart, TenantRows, TenantTable } from "../storage/tenant-part.ts";
import type { SecretPlace, Vault } from "../storage/vault.ts";
import { readReputation } from "./reputation-repository.ts";
import { readSteering } from "./steering-columns.ts";
import { credentials, TEMPLATE_COLUMNS, templates } from "./tables.ts";

/**
 * The most that one statement reads: parsing this much JSON and opening its secrets blocks the thread for some milliseconds. A
 * larger row is read alone.
 */
const PIECE_ROWS_MAX = 500;
const PIECE_BYTES_MAX = 128 * 1024;

type TenantRow = Omit<typeof tenants.$inferSelect, "plan"> & { readonly plan: Plan };

/** The rows that belong to one tenant. */
class Belongings {
  /** Values kept in memory, by the kind of row they came from. */
  private readonly values = new Map<TenantTable | StoredTemplates, Map<string, unknown>>();
  /** Sealed secrets by kind. */
  readonly sealed = new Map<string, string>();
  /** The error that prevents reading the tenant. */
  error: unknown = null;

  add<V>(of: TenantTable<V> | StoredTemplates<V>, name: string, value: V): void {
    const values = this.values.get(of);
    if (values === undefined) this.values.set(of, new Map([[name, value]]));
    else values.set(name, value);
  }

  all<V>(of: TenantTable<V> | StoredTemplates<V>): ReadonlyMap<string, V> {
    // `add` stores under this key only what the key's own `parse` returned.
    return (this.values.get(of) ?? new Map()) as ReadonlyMap<string, V>;
  }
}

export interface TenantReadingOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly clock: Clock;
  /** The channels' parts of a tenant. */
  readonly channels: TenantPart<ChannelMembers>;
}

/** Reads the rows of a set of tenants in bounded pieces, with an event loop iteration after each. */
export class TenantReading {
  private readonly belongings = new Map<string, Belongings>();

  constructor(private readonly options: TenantReadingOptions) {}

  async read(tenantIds: readonly string[]): Promise<void> {
    if (tenantIds.length === 0) return;
    for (const tenantId of tenantIds) this.belongings.set(tenantId, new Belongings());
    const { channels, vault } = this.options;
    const kinds = new Map(Object.entries(channels.templates));
    await this.pieces(tenantIds, TEMPLATES, ({ slug, channel, body }, into) => {
      const kind = kinds.get(channel);
      if (kind !== undefined) into.add(kind, slug, kind.parse(body));
    });
    await this.pieces(tenantIds, CREDENTIALS, ({ kind, sealed }, into) => into.sealed.set(kind, sealed));
    for (const table of channels.tables) {
      await this.pieces(tenantIds, table, (row, into) => {
        const parsed = table.parse(row, vault);
        if (parsed !== null) into.add(table, ...parsed);
      });
    }
  }

  /** The tenant, after `read`. */
  tenant(row: TenantRow): PromiseSettledResult<Tenant> {
    try {
      return { status: "fulfilled", value: this.assembled(row) };
    } catch (reason) {
      return { status: "rejected", reason };
    }
  }

  private assembled(row: TenantRow): Tenant {
    const { id: tenantId, shard, name, plan } = row;
    const { level } = readReputation(row.reputation);
    const own = this.belongings.get(tenantId);
    if (own === undefined) throw new Error("a tenant was not read");
    if (own.error !== null) throw own.error;
    return {
      tenantId,
      shard,
      name,
      plan,
      channels: new Set(row.channels),
      permissions: new Set(row.permissions),
      allowCustom: new Set(row.allowCustom),
      ...readSteering(row),
      ...(level !== "good" && { reputation: level }),
      ...this.options.channels.members(this.toTenantRows(row, own)),
    };
  }

  private toTenantRows(tenant: TenantRow, own: Belongings): TenantRows {
    const { vault } = this.options;
    return {
      tenant,
      templates: (of) => own.all(of),
      rows: (of) => own.all(of),
      credentials<V>(place: SecretPlace, parse: (text: string) => V): V | null {
        const sealed = own.sealed.get(place.kind);
        return sealed === undefined ? null : parse(vault.open(place, sealed));
      },
    };
  }

  /** All of the tenants' rows in a table, in the order of its key. */
  private async pieces<R extends OwnedRow>(
    tenantIds: readonly string[],
    table: Pieces<R>,
    keep: (row: R, into: Belongings) => void,
  ): Promise<void> {
    const { database, clock } = this.options;
    const ofTenants = among(table.key.tenantId, tenantIds);
    for (let after: RowKey | null = null; ; ) {
      const end: PieceEnd | null = await this.endOfPiece(table, and(ofTenants, beyond(table, after)));
      if (end === null) return;
      const piece = and(ofTenants, beyond(table, after), upTo(table, end.last));
      for (const row of await database.read((db) => table.select(db, piece))) this.keep(row, keep);
      await sleep(clock, 0);
      if (!end.hasMore) return;
      after = end.last;
    }
  }

  /** Finds the end of the piece that begins with the first of these rows; null if there are no rows. */
  private async endOfPiece({ table, key, sized }: Pieces, where: SQL | undefined): Promise<PieceEnd | null> {
    const rows = await this.options.database.read((db) =>
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

  private keep<R extends OwnedRow>(row: R, keep: (row: R, into: Belongings) => void): void {
    const into = this.belongings.get(row.tenantId);
    if (into === undefined) return;
    try {
      keep(row, into);
    } catch (error) {
      into.error ??= error;
    }
  }
}

/** How a table is read in pieces. */
type Pieces<R extends OwnedRow = OwnedRow> = Omit<TenantTable<unknown, R>, "parse">;

const TEMPLATES: Pieces<typeof templates.$inferSelect> = {
  table: templates,
  key: { tenantId: templates.tenantId, name: templates.slug },
  sized: templates.body,
  select: (db, where) => db.select(TEMPLATE_COLUMNS).from(templates).where(where),
};

const CREDENTIALS: Pieces<typeof credentials.$inferSelect> = {
  table: credentials,
  key: { tenantId: credentials.tenantId, name: credentials.kind },
  sized: credentials.sealed,
  select: (db, where) => db.select().from(credentials).where(where),
};

interface RowKey {
  readonly tenantId: string;
  readonly name: string;
}

interface PieceEnd {
  readonly last: RowKey;
  readonly hasMore: boolean;
}

function beyond({ key }: Pieces, after: RowKey | null): SQL | undefined {
  return after === null ? undefined : sql`(${key.tenantId}, ${key.name}) > (${after.tenantId}, ${after.name})`;
}

function upTo({ key }: Pieces, last: RowKey): SQL {
  return sql`(${key.tenantId}, ${key.name}) <= (${last.tenantId}, ${last.name})`;
}
