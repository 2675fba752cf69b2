import { createHash } from "node:crypto";
import { and, desc, eq, inArray, isNull, lte, ne, sql } from "drizzle-orm";
import type { Clock } from "../../domain/clock.ts";
import type { AnyDb, Database } from "../../storage/postgres/database.ts";
import { tenants } from "../../storage/tables.ts";
import type { GoogleCallback } from "./google/callbacks/signed-callback.ts";
import type { CalledPass, GoogleSaves, TakenCallback } from "./google-saves.ts";
import { walletLimits } from "./limits.ts";
import { passCallbacks, passes, passSaves } from "./tables.ts";

/**
 * Stores Google's callbacks in the registry.
 *
 * G1. A callback's nonce and its effect are one transaction under the pass's lock, so a repeated callback, even a
 *     concurrent one, has no effect.
 * G2. A nonce is kept until its callback has expired and is no longer accepted, or its pass is removed; at most
 *     `callbackNoncesMax` per pass.
 */
export class GoogleSaveRepository implements GoogleSaves {
  constructor(
    private readonly database: Database,
    private readonly clock: Pick<Clock, "nowMs">,
  ) {}

  take(callback: GoogleCallback): Promise<TakenCallback> {
    return this.database.write(async (transaction) => {
      const pass = await findPass(transaction, callback);
      if (typeof pass === "string") return { kind: pass };
      const { passId } = pass;
      const stored = await transaction
        .insert(passCallbacks)
        .values({ passId, nonce: hashNonce(callback.nonce), expiresAt: new Date(callback.endsMs) })
        .onConflictDoNothing()
        .returning({ passId: passCallbacks.passId });
      if (stored.length === 0) return { kind: "repeated" };
      await this.forget(transaction, passId);
      await count(transaction, passId, callback.event);
      return { kind: "taken", pass };
    });
  }

  async holders(passId: string): Promise<number | null> {
    const [row] = await this.database.read((db) =>
      db.select({ holders: passSaves.holders }).from(passSaves).where(eq(passSaves.passId, passId)),
    );
    return row?.holders ?? null;
  }

  private async forget(transaction: AnyDb, passId: string): Promise<void> {
    const ofPass = eq(passCallbacks.passId, passId);
    const now = new Date(this.clock.nowMs());
    await transaction.delete(passCallbacks).where(and(ofPass, lte(passCallbacks.expiresAt, now)));
    const oldest = transaction
      .select({ nonce: passCallbacks.nonce })
      .from(passCallbacks)
      .where(ofPass)
      .orderBy(desc(passCallbacks.expiresAt), passCallbacks.nonce)
      .offset(walletLimits.callbackNoncesMax);
    await transaction.delete(passCallbacks).where(and(ofPass, inArray(passCallbacks.nonce, oldest)));
  }
}

/** Finds and locks the pass. On an issuer that tenants share, several may be trying to create the object. */
async function findPass(
  transaction: AnyDb,
  { objectId, classId }: GoogleCallback,
): Promise<CalledPass | "unknown" | "unsettled"> {
  const found = await transaction
    .select({
      passId: passes.id,
      tenantId: passes.tenantId,
      serial: passes.serial,
      isOurs: sql<boolean>`${passes.state} = 'ready' or ${passes.bundleVersion} is not null`,
    })
    .from(passes)
    .innerJoin(tenants, and(eq(tenants.id, passes.tenantId), isNull(tenants.deletedAt)))
    .where(
      and(
        eq(passes.type, "google"),
        eq(passes.serial, objectId),
        ne(passes.state, "failed"),
        sql`${passes.content} ->> 'classId' = ${classId}`,
      ),
    )
    .orderBy(passes.id)
    .for("update", { of: passes });
  const ours = found.find(({ isOurs }) => isOurs);
  if (ours === undefined) return found.length === 0 ? "unknown" : "unsettled";
  const { passId, tenantId, serial } = ours;
  return { passId, tenantId, serial };
}

/**
 * Counts a save or a removal. The number of saves before a pass's first callback is unknown, so a removal alone does
 * not give the number left.
 */
async function count(transaction: AnyDb, passId: string, event: string): Promise<void> {
  if (event === "save") {
    await transaction
      .insert(passSaves)
      .values({ passId, holders: 1 })
      .onConflictDoUpdate({ target: passSaves.passId, set: { holders: sql`${passSaves.holders} + 1` } });
    return;
  }
  await transaction
    .update(passSaves)
    .set({ holders: sql`greatest(${passSaves.holders} - 1, 0)` })
    .where(eq(passSaves.passId, passId));
}

/** Hashes a nonce, whose form is up to Google. */
function hashNonce(nonce: string): string {
  return createHash("sha256").update(nonce).digest("base64url");
}
