import { eq } from "drizzle-orm";
import type { Clock } from "../../domain/clock.ts";
import type { GoogleClassOwners } from "../../domain/google-classes.ts";
import type { AnyDb, Database } from "../../storage/database.ts";
import { googleClasses } from "../../storage/tables.ts";

/** Owners of Google's classes. No snapshot of a tenant shows them, so a claim is announced to nobody. */
export class GoogleClassRepository implements GoogleClassOwners {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  ownerOf(classId: string): Promise<string | null> {
    return this.database.read((db) => ownerIn(db, classId));
  }

  async claim(classId: string, tenantId: string): Promise<string> {
    // It is claimed once and used by every pass: looking first spares all others a transaction.
    const known = await this.ownerOf(classId);
    if (known !== null) return known;
    return this.database.write(async (transaction) => {
      const createdAt = new Date(this.clock.nowMs());
      // Waits for whoever claims it at the same time, so that the row is there to be read afterwards.
      await transaction.insert(googleClasses).values({ classId, tenantId, createdAt }).onConflictDoNothing();
      const owner = await ownerIn(transaction, classId);
      if (owner === null) throw new Error("a claim of a Google class was not stored");
      return owner;
    });
  }
}

async function ownerIn(db: AnyDb, classId: string): Promise<string | null> {
  const [row] = await db
    .select({ tenantId: googleClasses.tenantId })
    .from(googleClasses)
    .where(eq(googleClasses.classId, classId));
  return row?.tenantId ?? null;
}
