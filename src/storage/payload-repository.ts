import { and, asc, eq, gt, lte, sql } from "drizzle-orm";
import type { PayloadRef, PayloadStore, StoredRef } from "../domain/jobs/payload-store.ts";
import { jobsInPieces, PIECE, storedTimes } from "./jobs-in-pieces.ts";
import type { Database } from "./postgres/database.ts";
import { payloads } from "./tables.ts";

/** Stores large payloads as rows of a server that all processes share; compare `PayloadFiles`. */
export class PayloadRepository implements PayloadStore {
  constructor(private readonly database: Database) {}

  async put({ jobId, tenantId }: PayloadRef, payload: Uint8Array): Promise<void> {
    const row = { jobId, tenantId, body: new Uint8Array(payload) };
    const anew = { body: sql`excluded.body`, storedAt: sql`excluded.stored_at` };
    await this.database.write((transaction) =>
      transaction.insert(payloads).values(row).onConflictDoUpdate({ target: payloads.jobId, set: anew }),
    );
  }

  async get({ jobId }: PayloadRef): Promise<Uint8Array | null> {
    const rows = await this.database.read((db) =>
      db.select({ body: payloads.body }).from(payloads).where(eq(payloads.jobId, jobId)),
    );
    return rows[0]?.body ?? null;
  }

  async remove({ jobId }: PayloadRef): Promise<void> {
    await this.database.write((transaction) => transaction.delete(payloads).where(eq(payloads.jobId, jobId)));
  }

  async removeFound({ jobId, storedMs }: StoredRef): Promise<void> {
    const isFound = and(eq(payloads.jobId, jobId), lte(payloads.storedAt, new Date(storedMs)));
    await this.database.write((transaction) => transaction.delete(payloads).where(isFound));
  }

  all(): AsyncGenerator<readonly StoredRef[]> {
    return jobsInPieces((jobId) => this.piece(jobId));
  }

  private piece(after: string): Promise<readonly StoredRef[]> {
    return this.database.read((db) =>
      db
        .select({ jobId: payloads.jobId, tenantId: payloads.tenantId, ...storedTimes(payloads.storedAt) })
        .from(payloads)
        .where(gt(payloads.jobId, after))
        .orderBy(asc(payloads.jobId))
        .limit(PIECE),
    );
  }
}
