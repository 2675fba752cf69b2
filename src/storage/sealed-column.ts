import { and, asc, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Database } from "./postgres/database.ts";
import { type SecretPlace, type Vault, VaultError } from "./vault.ts";

/** A column with secrets that the vault encrypted. */
export interface SealedColumn {
  /** The plural, for people. */
  readonly name: string;
  readonly column: PgColumn;
  /** Text columns that together identify a row. */
  readonly key: readonly PgColumn[];
  readonly tenantId: PgColumn;
  /** Returns the place to which the secret of the row with this key is bound. */
  place(tenantId: string, key: readonly string[]): SecretPlace;
  /** Its table is too large to be checked at every start. */
  readonly isLarge?: true;
}

/** Rejects with `ConfigurationError` if a secret in one of these columns needs a master key that the vault lacks. */
export async function requireMasterKeys(
  database: Database,
  vault: Vault,
  sealed: readonly SealedColumn[],
): Promise<void> {
  const keyIds = new Set<string>();
  for (const { column } of sealed.filter(({ isLarge }) => !isLarge)) {
    const rows = await database.read((db) =>
      db
        .selectDistinct({ keyId: keyIdIn(column) })
        .from(column.table)
        .where(isNotNull(column)),
    );
    for (const { keyId } of rows) keyIds.add(keyId);
  }
  vault.requireKeys([...keyIds]);
}

export interface Resealed {
  readonly resealed: number;
  /** Why secrets could not be opened: the first reasons, without the secrets. */
  readonly unopened: readonly string[];
  readonly unopenedCount: number;
}

/** How many rows are read and changed together: a registry in this process serves no other calls meanwhile. */
const PIECE = 100;
const SHOWN_MAX = 20;

/**
 * Encrypts every secret of the column anew that another key than the vault's first encrypted. Safe while others read
 * and write, and safe to repeat after an interruption: a secret is replaced only if it is still the one that was
 * opened, and one that the first key encrypted already is left alone. A secret that does not open stays as it is.
 */
export async function resealColumn(
  database: Database,
  vault: Vault,
  of: SealedColumn,
  onProgress: (resealed: number) => void,
): Promise<Resealed> {
  const { column, key, tenantId } = of;
  const unopened: string[] = [];
  let [resealed, unopenedCount] = [0, 0];
  let last: readonly string[] | null = null;
  for (;;) {
    const after: SQL | undefined = last === null ? undefined : sql`(${listed(key)}) > (${listed(last)})`;
    const where = and(isNotNull(column), sql`${keyIdIn(column)} <> ${vault.sealingKeyId}`, after);
    const rows = await database.read((db) =>
      db
        .select({
          key: sql<string[]>`array[${listed(key)}]::text[]`,
          tenantId: sql<string>`${tenantId}`,
          sealed: sql<string>`${column}`,
        })
        .from(column.table)
        .where(where)
        .orderBy(...key.map((one) => asc(one)))
        .limit(PIECE),
    );
    if (rows.length === 0) return { resealed, unopened, unopenedCount };
    const changes = rows.flatMap((row) => {
      const place = of.place(row.tenantId, row.key);
      try {
        return [{ ...row, anew: vault.seal(place, vault.open(place, row.sealed)) }];
      } catch (error) {
        if (!(error instanceof VaultError)) throw error;
        unopenedCount += 1;
        if (unopened.length < SHOWN_MAX) unopened.push(error.message);
        return [];
      }
    });
    await database.write(async (transaction) => {
      for (const { key: values, sealed, anew } of changes) {
        const isSame = key.map((one, at) => eq(one, values[at]));
        await transaction
          .update(column.table)
          .set({ [nameIn(column)]: anew })
          .where(and(...isSame, eq(column, sealed)));
      }
    });
    resealed += changes.length;
    last = rows.at(-1)?.key ?? null;
    onProgress(resealed);
  }
}

/** Counts the column's secrets that another key than the vault's first encrypted. */
export async function countOlder(database: Database, vault: Vault, { column }: SealedColumn): Promise<number> {
  const where = and(isNotNull(column), sql`${keyIdIn(column)} <> ${vault.sealingKeyId}`);
  return database.read((db) => db.$count(column.table, where));
}

function keyIdIn(column: PgColumn) {
  return sql<string>`split_part(${column}, '.', 2)`;
}

function listed(values: readonly unknown[]): SQL {
  return sql.join(
    values.map((value) => sql`${value}`),
    sql`, `,
  );
}

/** Returns the name of the column in its table's declaration, which differs from its name in the database. */
function nameIn(column: PgColumn): string {
  const found = Object.entries(column.table).find(([, one]) => one === column);
  if (found === undefined) throw new Error(`${column.name} is no column of its table`);
  return found[0];
}
