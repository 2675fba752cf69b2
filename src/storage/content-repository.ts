import { and, asc, eq, gt, lte, max, notExists, type SQL, sql } from "drizzle-orm";
import type { Content, ContentStore } from "../domain/content-store.ts";
import type { PayloadRef, StoredRef } from "../domain/jobs/payload-store.ts";
import { among } from "./analysts/statement-texts.ts";
import { jobsInPieces, PIECE, storedTimes } from "./jobs-in-pieces.ts";
import type { Database } from "./postgres/database.ts";
import { sqlState } from "./postgres/sql-state.ts";
import { contents, contentUses } from "./tables.ts";

const FOREIGN_KEY_VIOLATION = "23503";

/**
 * Keeps files of jobs as rows of a server that all processes share; compare `ContentFiles`. A content is removed with
 * its last use; the reference from the use serialises the two.
 */
export class ContentRepository implements ContentStore {
  constructor(private readonly database: Database) {}

  async put({ jobId, tenantId }: PayloadRef, given: readonly Content[]): Promise<void> {
    // In one order, so that two jobs with the same files never wait for each other.
    const files = given.toSorted((a, b) => (a.sha256 < b.sha256 ? -1 : 1));
    await this.database.write(async (transaction) => {
      for (const { sha256, body } of files) {
        await transaction
          .insert(contents)
          .values({ tenantId, sha256, body: new Uint8Array(body) })
          // Locks the row until the use exists.
          .onConflictDoUpdate({ target: [contents.tenantId, contents.sha256], set: { sha256 } });
        await transaction
          .insert(contentUses)
          .values({ jobId, tenantId, sha256 })
          .onConflictDoUpdate({
            target: [contentUses.jobId, contentUses.sha256],
            set: { storedAt: sql`excluded.stored_at` },
          });
      }
    });
  }

  async get({ jobId, tenantId }: PayloadRef, sha256: string): Promise<Uint8Array | null> {
    const rows = await this.database.read((db) =>
      db
        .select({ body: contents.body })
        .from(contentUses)
        .innerJoin(contents, and(eq(contents.tenantId, contentUses.tenantId), eq(contents.sha256, contentUses.sha256)))
        .where(and(eq(contentUses.jobId, jobId), eq(contentUses.tenantId, tenantId), eq(contentUses.sha256, sha256))),
    );
    return rows[0]?.body ?? null;
  }

  remove(ref: PayloadRef): Promise<void> {
    return this.removeUses(ref, ofJob(ref));
  }

  removeFound(found: StoredRef): Promise<void> {
    return this.removeUses(found, and(ofJob(found), lte(contentUses.storedAt, new Date(found.storedMs))));
  }

  all(): AsyncGenerator<readonly StoredRef[]> {
    return jobsInPieces((jobId) => this.piece(jobId));
  }

  private async removeUses({ tenantId }: PayloadRef, which: SQL | undefined): Promise<void> {
    try {
      await this.database.write(async (transaction) => {
        const used = await transaction.delete(contentUses).where(which).returning({ sha256: contentUses.sha256 });
        if (used.length === 0) return;
        const sha256s = used.map(({ sha256 }) => sha256);
        const uses = transaction
          .select({ one: sql`1` })
          .from(contentUses)
          .where(and(eq(contentUses.tenantId, contents.tenantId), eq(contentUses.sha256, contents.sha256)));
        await transaction
          .delete(contents)
          .where(and(eq(contents.tenantId, tenantId), among(contents.sha256, sha256s), notExists(uses)));
      });
    } catch (error) {
      // Another job began to use one of them meanwhile: the removal had no effect, and the next sweep tries again.
      if (sqlState(error).state !== FOREIGN_KEY_VIOLATION) throw error;
    }
  }

  private piece(after: string): Promise<readonly StoredRef[]> {
    return this.database.read((db) =>
      db
        .select({
          jobId: contentUses.jobId,
          tenantId: contentUses.tenantId,
          ...storedTimes(max(contentUses.storedAt)),
        })
        .from(contentUses)
        .where(gt(contentUses.jobId, after))
        .groupBy(contentUses.jobId, contentUses.tenantId)
        .orderBy(asc(contentUses.jobId))
        .limit(PIECE),
    );
  }
}

function ofJob({ jobId, tenantId }: PayloadRef): SQL | undefined {
  return and(eq(contentUses.jobId, jobId), eq(contentUses.tenantId, tenantId));
}
