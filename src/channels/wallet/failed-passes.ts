import { and, asc, desc, eq, gt, lt, ne, notExists, type SQL, sql } from "drizzle-orm";
import { alias, unionAll } from "drizzle-orm/pg-core";
import { remember } from "../../domain/remember.ts";
import { SharedRuns } from "../../domain/shared-runs.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { logFailure } from "../../domain/telemetry.ts";
import { among } from "../../storage/analysts/statement-texts.ts";
import type { AnyDb, Database } from "../../storage/postgres/database.ts";
import { walletLimits } from "./limits.ts";
import { removeImages } from "./pass-images.ts";
import type { PassDevices } from "./passes.ts";
import { passes, passImages, passImageUses } from "./tables.ts";

export interface FailedPassesOptions {
  readonly database: Database;
  readonly devices: Pick<PassDevices, "removeOfPasses">;
  readonly telemetry: Telemetry;
  /** One tenant's share in bytes, default `walletLimits.failedPassBytesMax`. */
  readonly shareBytes?: number;
}

/** The approximate size of a pass beside its content and its images. */
const ROW_BYTES = 1024;
/** Checks of a tenant's share for each share of passes that fail. */
const LOOKS = 8;
const TENANTS_MAX = 10_000;
/** Excess or old passes that one check finds, and those that one transaction removes. */
const FOUND_MAX = 10_000;
const PAGE = 1_000;
const PIECE = 100;

const CONTENT_BYTES = sql`pg_column_size(${passes.content}) + ${ROW_BYTES}::int`.mapWith(Number);
const IMAGE_BYTES = sql`octet_length(${passImages.png})`.mapWith(Number);
const IS_OF_USE = and(eq(passImages.tenantId, passImageUses.tenantId), eq(passImages.hash, passImageUses.hash));

/**
 * Keeps failed passes in case their jobs are retried. A failed pass is free for its tenant: without a bound, a tenant
 * could fill the registry with them.
 *
 * F1. A tenant's failed passes and their images take at most its share, plus a small unchecked amount for each process.
 *     An image counts once, however many passes have it.
 * F2. The oldest are removed first, but not while their jobs are being retried, when they no longer count as failed.
 * F3. An image that another pass has stays.
 */
export class FailedPasses {
  /** Tenant → bytes that have failed since its share was checked. */
  private readonly unseen = new Map<string, number>();
  private readonly looks = new SharedRuns<void>();
  private readonly shareBytes: number;

  constructor(private readonly options: FailedPassesOptions) {
    this.shareBytes = options.shareBytes ?? walletLimits.failedPassBytesMax;
  }

  /**
   * Records that the pass has failed, and removes passes beyond the tenant's share. Never rejects: the next failure
   * checks again.
   */
  async note(tenantId: string, passId: string): Promise<void> {
    try {
      const bytes = await this.sumBytes(passId);
      // A former process may have left more than the share of a tenant that is new to this one.
      const sum = (this.unseen.get(tenantId) ?? this.shareBytes) + bytes;
      remember(this.unseen, { key: tenantId, value: sum, max: TENANTS_MAX });
      if (sum >= this.shareBytes / LOOKS) await this.looks.run(tenantId, () => this.look(tenantId));
    } catch (error) {
      this.noteProblem(tenantId, error);
    }
  }

  /** Removes the job's pass, if it has failed. */
  async removeForJob(tenantId: string, jobId: string): Promise<void> {
    const isOfJob = and(eq(passes.tenantId, tenantId), eq(passes.jobId, jobId));
    const found = await this.options.database.read((db) =>
      db.select({ id: passes.id }).from(passes).where(isFailed(isOfJob)),
    );
    await this.remove(tenantId, listIds(found));
  }

  /**
   * Removes a page of passes that failed before `beforeMs` (Unix). Resolves to whether all such passes are done. Passes
   * that cannot be removed do not delay other tenants' passes.
   */
  async removeOld(beforeMs: number): Promise<boolean> {
    const isOld = lt(passes.createdAt, new Date(beforeMs));
    const found = await this.options.database.read((db) =>
      db
        .select({ id: passes.id, tenantId: passes.tenantId })
        .from(passes)
        .where(isFailed(isOld))
        .orderBy(asc(passes.createdAt))
        .limit(PAGE),
    );
    let removed = 0;
    for (const [tenantId, its] of Map.groupBy(found, (one) => one.tenantId)) {
      try {
        removed += await this.remove(tenantId, listIds(its), isOld);
      } catch (error) {
        this.noteProblem(tenantId, error);
      }
    }
    return found.length < PAGE || removed === 0;
  }

  private noteProblem(tenantId: string, error: unknown): void {
    const fields = { tenant_id: tenantId };
    logFailure(this.options.telemetry, "a tenant's failed passes could not be looked through", error, fields);
  }

  /** Adds up the bytes of the pass, and of the images that no other pass has. */
  private async sumBytes(passId: string): Promise<number> {
    const others = alias(passImageUses, "others");
    const rows = await this.options.database.read((db) => {
      const isOther = and(eq(others.tenantId, passImageUses.tenantId), eq(others.hash, passImageUses.hash));
      const used = db
        .select({ one: sql`1` })
        .from(others)
        .where(and(isOther, ne(others.passId, passImageUses.passId)));
      return db
        .select({ content: CONTENT_BYTES, images: sql`coalesce(sum(${IMAGE_BYTES}), 0)`.mapWith(Number) })
        .from(passes)
        .leftJoin(passImageUses, and(eq(passImageUses.passId, passes.id), notExists(used)))
        .leftJoin(passImages, IS_OF_USE)
        .where(eq(passes.id, passId))
        .groupBy(passes.id);
    });
    return rows.reduce((sum, { content, images }) => sum + content + images, 0);
  }

  /** Removes passes beyond the tenant's share. */
  private async look(tenantId: string): Promise<void> {
    this.unseen.set(tenantId, 0);
    try {
      await this.remove(tenantId, await this.beyondShare(tenantId));
    } catch (error) {
      this.unseen.delete(tenantId);
      throw error;
    }
  }

  /** Finds the tenant's oldest failed passes, without which the others are within its share. */
  private async beyondShare(tenantId: string): Promise<readonly string[]> {
    const found = await this.options.database.read((db) => {
      const isIts = isFailed(eq(passes.tenantId, tenantId));
      const contents = db
        .select({ id: passes.id, createdAt: passes.createdAt, bytes: CONTENT_BYTES.as("bytes") })
        .from(passes);
      // An image counts for the latest pass that has it, because it stays when the others are removed.
      const images = db
        .selectDistinctOn([passImageUses.hash], {
          id: passes.id,
          createdAt: passes.createdAt,
          bytes: IMAGE_BYTES.as("bytes"),
        })
        .from(passes)
        .innerJoin(passImageUses, eq(passImageUses.passId, passes.id))
        .innerJoin(passImages, IS_OF_USE)
        .where(isIts)
        .orderBy(passImageUses.hash, desc(passes.createdAt), desc(passes.id));
      const parts = unionAll(contents.where(isIts), images).as("parts");
      const latestFirst = sql`ORDER BY ${parts.createdAt} DESC, ${parts.id} DESC`;
      const sums = db
        .select({
          id: parts.id,
          createdAt: parts.createdAt,
          sum: sql`sum(sum(${parts.bytes})) OVER (${latestFirst})`.as("sum"),
        })
        .from(parts)
        .groupBy(parts.id, parts.createdAt)
        .as("sums");
      return db
        .select({ id: sums.id })
        .from(sums)
        .where(gt(sums.sum, this.shareBytes))
        .orderBy(asc(sums.createdAt), asc(sums.id))
        .limit(FOUND_MAX);
    });
    return listIds(found);
  }

  /** Removes the passes that have failed and still match `which`. Resolves to their number. */
  private async remove(tenantId: string, passIds: readonly string[], which?: SQL): Promise<number> {
    let removed = 0;
    for (let at = 0; at < passIds.length; at += PIECE) {
      const piece = passIds.slice(at, at + PIECE);
      // Devices before their pass, in the order in which rows are locked.
      await this.options.devices.removeOfPasses(piece);
      const isOne = and(eq(passes.tenantId, tenantId), among(passes.id, piece), which);
      removed += await this.options.database.write((transaction) => removeHeld(transaction, tenantId, isOne));
    }
    return removed;
  }
}

async function removeHeld(transaction: AnyDb, tenantId: string, isOne: SQL | undefined): Promise<number> {
  const held = await transaction
    .select({ id: passes.id })
    .from(passes)
    .where(isFailed(isOne))
    // Skips a pass that is being retried.
    .for("update", { skipLocked: true });
  await removeImages(transaction, tenantId, listIds(held));
  await transaction.delete(passes).where(among(passes.id, listIds(held)));
  return held.length;
}

function isFailed(which: SQL | undefined): SQL | undefined {
  return and(eq(passes.state, "failed"), which);
}

function listIds(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}
