import { and, asc, desc, eq, gt, inArray, lt, type SQL, sql } from "drizzle-orm";
import { remember } from "../../domain/remember.ts";
import type { AnyDb, Database } from "../../storage/database.ts";
import { walletLimits } from "./limits.ts";
import { removeImages } from "./pass-images.ts";
import type { PassDevices } from "./passes.ts";
import { passes, passImages, passImageUses } from "./tables.ts";

export interface FailedPassesOptions {
  readonly database: Database;
  readonly devices: Pick<PassDevices, "removeOfPasses">;
  /** Of one tenant, default `walletLimits.failedPassBytesMax`. */
  readonly shareBytes?: number;
}

/** What a pass takes beside its content and its images, about. */
const ROW_BYTES = 1024;
/** So many shares are looked through for one share of passes that fail. */
const LOOKS = 8;
const TENANTS_MAX = 10_000;
/** Passes that one look finds beyond a share or too old, and those that one transaction removes. */
const FOUND_MAX = 10_000;
const PAGE = 1_000;
const PIECE = 100;

const CONTENT_BYTES = sql`pg_column_size(${passes.content}) + ${ROW_BYTES}::int`.mapWith(Number);
const IMAGE_BYTES = sql`octet_length(${passImages.png})`.mapWith(Number);
const IS_OF_USE = and(eq(passImages.tenantId, passImageUses.tenantId), eq(passImages.hash, passImageUses.hash));

/**
 * Passes that failed, which are kept in case their jobs are tried again. A failed pass has cost its tenant nothing: without a bound,
 * a tenant could fill the registry with them.
 *
 * F1. A tenant's failed passes and their images take its share at most, and for each process the little that it has not looked at.
 *     An image counts once, however many passes have it.
 * F2. The oldest go first, but not while their jobs are tried again: then they are no longer failed.
 * F3. An image that another pass has stays.
 */
export class FailedPasses {
  /** Tenant → bytes that have failed since its share was looked at. */
  private readonly unseen = new Map<string, number>();

  private readonly shareBytes: number;

  constructor(private readonly options: FailedPassesOptions) {
    this.shareBytes = options.shareBytes ?? walletLimits.failedPassBytesMax;
  }

  /** The job's pass has failed. Removes what is beyond the tenant's share by now. */
  async note(tenantId: string, jobId: string): Promise<void> {
    // Of a tenant of which nothing is known, a former process may have left more than its share.
    const unseen = this.unseen.get(tenantId) ?? this.shareBytes;
    const sum = unseen + (await this.bytesOf(tenantId, jobId));
    const isDue = sum >= this.shareBytes / LOOKS;
    remember(this.unseen, { key: tenantId, value: isDue ? 0 : sum, max: TENANTS_MAX });
    if (!isDue) return;
    try {
      await this.remove(tenantId, await this.beyondShare(tenantId));
    } catch (error) {
      this.unseen.delete(tenantId);
      throw error;
    }
  }

  /** Removes the job's pass, if it has failed. */
  async removeOf(tenantId: string, jobId: string): Promise<void> {
    const found = await this.options.database.read((db) =>
      db
        .select({ id: passes.id })
        .from(passes)
        .where(isFailed(ofJob(tenantId, jobId))),
    );
    await this.remove(tenantId, idsOf(found));
  }

  /** Removes a page of those that failed before `beforeMs` (Unix). Resolves to whether none is left. */
  async removeOld(beforeMs: number): Promise<boolean> {
    const found = await this.options.database.read((db) =>
      db
        .select({ id: passes.id, tenantId: passes.tenantId })
        .from(passes)
        .where(isFailed(lt(passes.createdAt, new Date(beforeMs))))
        .orderBy(asc(passes.createdAt))
        .limit(PAGE),
    );
    const ofTenants = Map.groupBy(found, ({ tenantId }) => tenantId);
    for (const [tenantId, its] of ofTenants) await this.remove(tenantId, idsOf(its));
    return found.length < PAGE;
  }

  /** Of the job's pass and all of its images. */
  private async bytesOf(tenantId: string, jobId: string): Promise<number> {
    const rows = await this.options.database.read((db) =>
      db
        .select({ content: CONTENT_BYTES, images: sql`coalesce(sum(${IMAGE_BYTES}), 0)`.mapWith(Number) })
        .from(passes)
        .leftJoin(passImageUses, eq(passImageUses.passId, passes.id))
        .leftJoin(passImages, IS_OF_USE)
        .where(ofJob(tenantId, jobId))
        .groupBy(passes.id),
    );
    return rows.reduce((sum, { content, images }) => sum + content + images, 0);
  }

  /** The tenant's oldest failed passes: those without which the others are within its share. */
  private async beyondShare(tenantId: string): Promise<readonly string[]> {
    const found = await this.options.database.read((db) => {
      const failed = db.$with("failed").as(
        db
          .select({ id: passes.id, createdAt: passes.createdAt, bytes: CONTENT_BYTES.as("bytes") })
          .from(passes)
          .where(isFailed(eq(passes.tenantId, tenantId))),
      );
      // An image counts for the latest of them that has it: it stays when the others go.
      const images = db.$with("images").as(
        db
          .selectDistinctOn([passImageUses.hash], { id: failed.id, bytes: IMAGE_BYTES.as("image_bytes") })
          .from(failed)
          .innerJoin(passImageUses, eq(passImageUses.passId, failed.id))
          .innerJoin(passImages, IS_OF_USE)
          .orderBy(passImageUses.hash, desc(failed.createdAt), desc(failed.id)),
      );
      const own = sql`coalesce((SELECT sum(${images.bytes}) FROM ${images} WHERE ${images.id} = ${failed.id}), 0)`;
      const latestFirst = sql`ORDER BY ${failed.createdAt} DESC, ${failed.id} DESC`;
      const sums = db.$with("sums").as(
        db
          .select({
            id: failed.id,
            createdAt: failed.createdAt,
            sum: sql`sum(${failed.bytes} + ${own}) OVER (${latestFirst})`.as("sum"),
          })
          .from(failed),
      );
      return db
        .with(failed, images, sums)
        .select({ id: sums.id })
        .from(sums)
        .where(gt(sums.sum, this.shareBytes))
        .orderBy(asc(sums.createdAt), asc(sums.id))
        .limit(FOUND_MAX);
    });
    return idsOf(found);
  }

  private async remove(tenantId: string, passIds: readonly string[]): Promise<void> {
    for (let at = 0; at < passIds.length; at += PIECE) {
      const piece = passIds.slice(at, at + PIECE);
      // Before its pass, by the order in which the devices' rows are locked.
      await this.options.devices.removeOfPasses(piece);
      await this.options.database.write((transaction) => removeHeld(transaction, tenantId, piece));
    }
  }
}

async function removeHeld(transaction: AnyDb, tenantId: string, passIds: readonly string[]): Promise<void> {
  const isOne = and(eq(passes.tenantId, tenantId), inArray(passes.id, [...passIds]));
  const held = await transaction
    .select({ id: passes.id })
    .from(passes)
    .where(isFailed(isOne))
    // One that is being tried again is left alone.
    .for("update", { skipLocked: true });
  await removeImages(transaction, tenantId, idsOf(held));
  await transaction.delete(passes).where(inArray(passes.id, idsOf(held)));
}

function isFailed(which: SQL | undefined): SQL | undefined {
  return and(eq(passes.state, "failed"), which);
}

function ofJob(tenantId: string, jobId: string): SQL | undefined {
  return and(eq(passes.tenantId, tenantId), eq(passes.jobId, jobId));
}

function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}
