import { asc, eq, gt } from "drizzle-orm";
import type { PayloadRef, PayloadStore } from "../domain/payload-store.ts";
import type { Database } from "./database.ts";
import { jobsInPieces, PIECE } from "./jobs-in-pieces.ts";
import { payloads } from "./tables.ts";

/** Stores large payloads as rows of a server that all processes share; compare `PayloadFiles`. */
export class PayloadRepository implements PayloadStore {
  constructor(private readonly database: Database) {}

  async put({ jobId, tenantId }: PayloadRef, payload: Uint8Array): Promise<void> {
    const row = { jobId, tenantId, body: new Uint8Array(payload) };
    await this.database.write((transaction) => transaction.insert(payloads).values(row).onConflictDoNothing());
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

  all(): AsyncGenerator<readonly PayloadRef[]> {
    return jobsInPieces((jobId) => this.piece(jobId));
  }

  private piece(after: string): Promise<readonly PayloadRef[]> {
    return this.database.read((db) =>
      db
        .select({ jobId: payloads.jobId, tenantId: payloads.tenantId })
        .from(payloads)
        .where(gt(payloads.jobId, after))
        .orderBy(asc(payloads.jobId))
        .limit(PIECE),
    );
  }
}
