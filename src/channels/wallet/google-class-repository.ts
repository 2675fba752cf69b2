import { eq } from "drizzle-orm";
import type { Clock } from "../../domain/clock.ts";
import type { AnyDb, Database } from "../../storage/postgres/database.ts";
import type { GoogleClassOwners } from "./google-classes.ts";
import { walletLimits } from "./limits.ts";
import { googleClasses } from "./tables.ts";

/** Owners of Google classes. Tenant snapshots do not include them, so a claim needs no announcement. */
export class GoogleClassRepository implements GoogleClassOwners {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly classesMax: number = walletLimits.googleClassesMax,
  ) {}

  findOwner(classId: string): Promise<string | null> {
    return this.database.read((db) => ownerIn(db, classId));
  }

  async claim(classId: string, tenantId: string): Promise<string | null> {
    // A class is claimed once and used by every pass: reading first spares the others a transaction.
    const known = await this.findOwner(classId);
    if (known !== null) return known;
    return this.database.write(async (transaction) => {
      const classes = await transaction.$count(googleClasses, eq(googleClasses.tenantId, tenantId));
      if (classes >= this.classesMax) return null;
      const createdAt = new Date(this.clock.nowMs());
      // Waits for a concurrent claim, so the row can be read afterwards.
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
