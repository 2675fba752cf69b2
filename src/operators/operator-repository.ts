import { createHash } from "node:crypto";
import { asc, eq, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import type { Random } from "../domain/random.ts";
import { type Done, done, type Missing, missing } from "../domain/store-result.ts";
import { type Operator, type OperatorRole, ROOT } from "../domain/tenants/operator.ts";
import { newUses, type Use } from "../storage/last-uses.ts";
import type { Database } from "../storage/postgres/database.ts";
import { isoTime } from "../storage/postgres/iso-time.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { operators } from "./tables.ts";

/** Bound on the operators, all of which are in every process's memory. */
const OPERATORS_MAX = 1_000;
const TOKEN_BYTES = 32;
const ID_BYTES = 12;
const OPERATOR_ID = /^op_[A-Za-z0-9_-]{16}$/;

export interface OperatorRecord {
  readonly operator_id: string;
  readonly name: string;
  readonly role: OperatorRole;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** The token cannot be read again. */
export type NewOperator = Omit<OperatorRecord, "last_used_at"> & { readonly token: string };

/** There is an operator of this name. */
export interface NameTaken {
  readonly kind: "taken";
}

/** The maximum number of operators is reached. */
export interface TooMany {
  readonly kind: "too_many";
  readonly max: number;
}

export interface OperatorRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly clock: Clock;
  readonly random: Random;
}

/** An operator with the hash of the token. */
export interface StoredOperator extends Operator {
  readonly hash: string;
}

export class OperatorRepository {
  constructor(private readonly options: OperatorRepositoryOptions) {}

  async create(name: string, role: OperatorRole): Promise<Done<NewOperator> | NameTaken | TooMany> {
    const { changes, clock, random } = this.options;
    const token = newOperatorToken(random);
    const id = `op_${base64url(random, ID_BYTES)}`;
    if (name === ROOT.name) return { kind: "taken" };
    return changes.ofOperators(async (transaction) => {
      const [count] = await transaction.select({ all: sql<number>`count(*)::int` }).from(operators);
      if ((count?.all ?? 0) >= OPERATORS_MAX)
        return new Undone<NameTaken | TooMany>({ kind: "too_many", max: OPERATORS_MAX });
      const createdAt = new Date(clock.nowMs());
      const made = await transaction
        .insert(operators)
        .values({ id, name, role, hash: operatorTokenHash(token), createdAt })
        .onConflictDoNothing()
        .returning({ id: operators.id });
      if (made.length === 0) return new Undone<NameTaken | TooMany>({ kind: "taken" });
      return done({ operator_id: id, name, role, created_at: isoTime(createdAt), token });
    });
  }

  /** Ordered by name. */
  async all(): Promise<readonly OperatorRecord[]> {
    const rows = await this.options.database.read((db) => db.select().from(operators).orderBy(asc(operators.name)));
    return rows.map(({ id, name, role, createdAt, lastUsedAt }) => ({
      operator_id: id,
      name,
      role,
      created_at: isoTime(createdAt),
      last_used_at: lastUsedAt === null ? null : isoTime(lastUsedAt),
    }));
  }

  delete(operatorId: string): Promise<Done | Missing<"operator">> {
    if (!OPERATOR_ID.test(operatorId)) return Promise.resolve(missing("operator"));
    return this.options.changes.ofOperators(async (transaction) => {
      const deleted = await transaction
        .delete(operators)
        .where(eq(operators.id, operatorId))
        .returning({ id: operators.id });
      return deleted.length === 0 ? new Undone(missing("operator")) : done(null);
    });
  }

  /** Returns the operators with their hashes, as processes keep them in memory. */
  withHashes(): Promise<readonly StoredOperator[]> {
    const { id, name, role, hash } = operators;
    return this.options.database.read((db) => db.select({ id, name, role, hash }).from(operators));
  }

  /** Notes uses, unless the same or a later one is known. */
  async noteUses(uses: readonly Use[]): Promise<void> {
    const { at, where } = newUses(uses, operators);
    await this.options.database.write((transaction) =>
      transaction.update(operators).set({ lastUsedAt: at }).where(where),
    );
  }
}

/** The stored form of a token. A fast hash suits an unguessable secret. */
export function operatorTokenHash(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Whether the text has the form of an operator's own token; other texts need no lookup. */
export function isOperatorToken(text: string): boolean {
  return /^wbo_[A-Za-z0-9_-]{43}$/.test(text);
}

function newOperatorToken(random: Random): string {
  return `wbo_${base64url(random, TOKEN_BYTES)}`;
}

function base64url(random: Random, bytes: number): string {
  return Buffer.from(random.fill(new Uint8Array(bytes))).toString("base64url");
}
