import { and, asc, eq, gt, gte, isNull, lt, lte, ne, or, sql } from "drizzle-orm";
import { GOOGLE_KINDS, PASS_STYLES, type PassContent, type PassStrings } from "../../domain/channels/wallet.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import type { AnyDb, Database } from "../../storage/postgres/database.ts";
import { sqlState } from "../../storage/postgres/sql-state.ts";
import { exactJson, tenants, tokenMovements } from "../../storage/tables.ts";
import type { SecretPlace, Vault } from "../../storage/vault.ts";
import { FailedPasses } from "./failed-passes.ts";
import { walletLimits } from "./limits.ts";
import { addImages, changeImages, haveSameImages, imagesProblem } from "./pass-images.ts";
import type {
  NewPass,
  Pass,
  PassBundle,
  PassDevices,
  PassStore,
  PassUpdate,
  RedoneCreate,
  RefusedChange,
  SignablePass,
  UnfinishedPass,
  Unpaid,
  UpdatedPass,
} from "./passes.ts";
import { passes, passImages, passTypes, passVersions } from "./tables.ts";

export interface PassRepositoryOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly devices: Pick<PassDevices, "removeOfPasses">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** PostgreSQL, appendix A. */
const UNIQUE_VIOLATION = "23505";
/** Tokens charged for a pass. */
const PRICE = 1;
const UNFINISHED_ROWS = 100;
const DAY_MS = 24 * 60 * 60 * 1000;
/** The columns of a pass, without its bundle. */
const COLUMNS = {
  id: passes.id,
  tenantId: passes.tenantId,
  serial: passes.serial,
  state: passes.state,
  version: passes.version,
  content: exactJson(passes.content),
  passTypeId: passes.passTypeId,
  authenticationToken: passes.authenticationToken,
  jobId: passes.jobId,
  bundleVersion: passes.bundleVersion,
};
const BUNDLE = { bytes: passes.bundle, version: passes.bundleVersion, modifiedAt: passes.bundleModifiedAt };

/**
 * Stores passes, and charges tokens for them.
 *
 * R1. A pass and its charge are one transaction, and so are its failure and the refund: each happens once, because the
 *     state in the locked pass row decides.
 * R2. Locks are taken in one order: a pass, images by their hash, then the pass's tenant or pass type.
 * R3. A pass type's tag advances in the transaction that stores a bundle, and its row stays locked until the commit: a
 *     reader of a tag has seen all bundles with smaller ones.
 */
export class PassRepository implements PassStore {
  private readonly failed: FailedPasses;

  constructor(private readonly options: PassRepositoryOptions) {
    this.failed = new FailedPasses(options);
  }

  async create(pass: NewPass): Promise<"created" | "serial_used" | Unpaid> {
    try {
      return await this.store(pass);
    } catch (error) {
      if (error instanceof NotCharged) return error.why;
      throw error;
    }
  }

  private store(pass: NewPass): Promise<"created" | "serial_used"> {
    const { passId, tenantId, jobId, serial, content } = pass;
    const createdAt = this.now();
    return this.options.database.write(async (transaction) => {
      const stored = await transaction
        .insert(passes)
        .values({
          id: passId,
          tenantId,
          type: content.type,
          serial,
          state: "creating",
          version: 1,
          content: passContentBody(content),
          passTypeId: pass.passTypeId,
          authenticationToken: this.sealed(pass),
          jobId,
          createdAt,
        })
        .onConflictDoNothing({
          target: [passes.tenantId, passes.type, passes.serial],
          where: sql`${passes.state} <> 'failed'`,
        })
        .returning({ id: passes.id });
      if (stored.length === 0) return "serial_used";
      await transaction.insert(passVersions).values({ passId, version: 1, jobId, createdAt });
      await addImages(transaction, { tenantId, passId }, content, pass.images);
      const balance = await charge(transaction, tenantId, createdAt);
      await transaction
        .insert(tokenMovements)
        .values({ tenantId, kind: "charge", amount: -PRICE, reason: "wallet pass", jobId, balance, createdAt });
      return "created";
    });
  }

  async undoCreate(tenantId: string, jobId: string): Promise<void> {
    const passId = await this.undo(tenantId, jobId);
    if (passId !== null) await this.failed.note(tenantId, passId);
  }

  async discard(tenantId: string, jobId: string): Promise<void> {
    await this.undo(tenantId, jobId);
    await this.failed.removeForJob(tenantId, jobId);
  }

  /** Undoes the job's pass, and returns its id, or null if there was none. */
  private undo(tenantId: string, jobId: string): Promise<string | null> {
    return this.options.database.write(async (transaction) => {
      const createdAt = this.now();
      const undone = await transaction
        .update(passes)
        .set({ state: "failed", createdAt, bundle: null })
        .where(and(eq(passes.tenantId, tenantId), eq(passes.jobId, jobId), eq(passes.state, "creating")))
        .returning({ id: passes.id });
      const [pass] = undone;
      if (pass === undefined) return null;
      await transaction.delete(passVersions).where(eq(passVersions.passId, pass.id));
      const [tenant] = await transaction
        .update(tenants)
        .set({
          tokens: sql`${tenants.tokens} + ${PRICE}::bigint`,
          refunds: sql`case when ${tenants.refundDay} = ${toDay(createdAt)} then ${tenants.refunds} + 1 else 1 end`,
          refundDay: toDay(createdAt),
        })
        .where(eq(tenants.id, tenantId))
        .returning({ balance: tenants.tokens });
      if (tenant === undefined) throw new Error("a pass has no tenant");
      const { balance } = tenant;
      const reason = "wallet pass was not created";
      await transaction
        .insert(tokenMovements)
        .values({ tenantId, kind: "refund", amount: PRICE, reason, jobId, balance, createdAt });
      return pass.id;
    });
  }

  async redoCreate(tenantId: string, jobId: string): Promise<RedoneCreate> {
    const isOfJob = and(eq(passes.tenantId, tenantId), eq(passes.jobId, jobId));
    try {
      return await this.options.database.write(async (transaction) => {
        const createdAt = this.now();
        // Created now: the sweep of unfinished passes leaves it alone until its job is queued.
        const redone = await transaction
          .update(passes)
          .set({ state: "creating", createdAt })
          .where(and(isOfJob, eq(passes.state, "failed")))
          .returning({ id: passes.id });
        if (redone.length === 0) {
          const unfailed = await transaction.select({ id: passes.id }).from(passes).where(isOfJob).limit(1);
          return unfailed.length === 0 ? "none" : "not_failed";
        }
        const balance = await charge(transaction, tenantId, createdAt);
        const reason = "wallet pass, tried again";
        await transaction
          .insert(tokenMovements)
          .values({ tenantId, kind: "charge", amount: -PRICE, reason, jobId, balance, createdAt });
        return "done";
      });
    } catch (error) {
      if (error instanceof NotCharged) return error.why;
      if (sqlState(error).state === UNIQUE_VIOLATION) return "serial_used";
      throw error;
    }
  }

  finishCreate(passId: string): Promise<void> {
    return this.options.database.write(async (transaction) => {
      await transaction
        .update(passes)
        .set({ state: "ready" })
        .where(and(eq(passes.id, passId), eq(passes.state, "creating")));
    });
  }

  noteMade(passId: string): Promise<void> {
    return this.options.database.write(async (transaction) => {
      await transaction
        .update(passes)
        .set({ bundleVersion: 1 })
        .where(and(eq(passes.id, passId), eq(passes.type, "google")));
    });
  }

  update(tenantId: string, update: PassUpdate): Promise<UpdatedPass | RefusedChange | null> {
    const { passId, jobId, notificationKind, notifyMessage } = update;
    return this.options.database.write(async (transaction) => {
      const [row] = await transaction
        .select(COLUMNS)
        .from(passes)
        .where(and(eq(passes.id, passId), eq(passes.tenantId, tenantId), ne(passes.state, "failed")))
        .for("update");
      if (row === undefined) return null;
      const pass = this.toPass(row);
      const content = update.change(pass);
      if (content === null) {
        const isTold = pass.content.type === "apple" && row.bundleVersion === pass.version;
        return { ...pass, unchanged: isTold ? "told" : "untold" };
      }
      if ("why" in content) return content;
      const isImageChange = !haveSameImages(pass.content, content);
      if (isImageChange) {
        const problem = await imagesProblem(transaction, pass, content, update.images);
        if (problem !== null) return problem;
      }
      const version = pass.version + 1;
      await transaction
        .update(passes)
        .set({ version, content: passContentBody(content) })
        .where(eq(passes.id, passId));
      const createdAt = this.now();
      await transaction
        .insert(passVersions)
        .values({ passId, version, jobId, notificationKind, notifyMessage, createdAt });
      if (version % walletLimits.passVersionsKept === 0) await forgetVersions(transaction, passId, version);
      if (isImageChange) await changeImages(transaction, pass, content, update.images);
      return { ...pass, version, content };
    });
  }

  find(tenantId: string, passId: string): Promise<Pass | null> {
    return this.one(and(eq(passes.id, passId), eq(passes.tenantId, tenantId)));
  }

  holder({ tenantId, content, serial }: Pick<Pass, "tenantId" | "content" | "serial">): Promise<Pass | null> {
    const taken = and(eq(passes.tenantId, tenantId), eq(passes.type, content.type), eq(passes.serial, serial));
    return this.one(and(taken, ne(passes.state, "failed")));
  }

  async findBySerial(passTypeId: string, serial: string): Promise<readonly Pass[]> {
    const rows = await this.options.database.read((db) =>
      db
        .select(COLUMNS)
        .from(passes)
        .innerJoin(tenants, and(eq(tenants.id, passes.tenantId), isNull(tenants.deletedAt)))
        .where(and(eq(passes.passTypeId, passTypeId), eq(passes.serial, serial), ne(passes.state, "failed"))),
    );
    return rows.map((row) => this.toPass(row));
  }

  async signable(tenantId: string, passId: string): Promise<SignablePass | null> {
    // One statement reads a consistent state.
    const rows = await this.options.database.read((db) =>
      db
        .select({ ...COLUMNS, hash: passImages.hash, png: passImages.png })
        .from(passes)
        .leftJoin(
          sql`LATERAL (SELECT DISTINCT value FROM jsonb_each_text(${passes.content} -> 'images')) AS file`,
          sql`true`,
        )
        .leftJoin(passImages, and(eq(passImages.tenantId, passes.tenantId), sql`${passImages.hash} = file.value`))
        .where(and(eq(passes.id, passId), eq(passes.tenantId, tenantId))),
    );
    const [row] = rows;
    if (row === undefined) return null;
    const images = rows.flatMap(({ hash, png }) => (hash === null || png === null ? [] : [[hash, png] as const]));
    return { pass: this.toPass(row), images: new Map(images) };
  }

  async bundle(passId: string): Promise<PassBundle | null> {
    const [row] = await this.options.database.read((db) => db.select(BUNDLE).from(passes).where(eq(passes.id, passId)));
    return row === undefined ? null : toBundle(row);
  }

  putBundle(passId: string, version: number, bytes: Uint8Array<ArrayBuffer>): Promise<PassBundle | null> {
    return this.options.database.write(async (transaction) => {
      const [row] = await transaction
        .select({ ...BUNDLE, passTypeId: passes.passTypeId })
        .from(passes)
        .where(and(eq(passes.id, passId), ne(passes.state, "failed")))
        .for("update");
      if (row === undefined || row.passTypeId === null) return null;
      const kept = toBundle(row);
      if (kept !== null && kept.version >= version) return kept;
      const nowMs = this.options.clock.nowMs();
      const nowSeconds = Math.floor(nowMs / 1000);
      // Also later than a bundle that was removed after a failed attempt.
      const modifiedAt = Math.max(nowSeconds, (row.modifiedAt ?? 0) + 1);
      const updateTag = await nextTag(transaction, row.passTypeId, nowMs);
      await transaction
        .update(passes)
        .set({ bundle: bytes, bundleVersion: version, bundleModifiedAt: modifiedAt, updateTag })
        .where(eq(passes.id, passId));
      return { version, bytes, modifiedAt };
    });
  }

  unfinished(beforeMs: number, after: UnfinishedPass | null): Promise<readonly UnfinishedPass[]> {
    const { createdAt: storedAt } = passes;
    // The index has only the times, so their range is a separate condition.
    const isAfter =
      after === null
        ? undefined
        : and(gte(storedAt, after.storedAt), or(gt(storedAt, after.storedAt), gt(passes.id, after.passId)));
    return this.options.database.read((db) =>
      db
        .select({ tenantId: passes.tenantId, passId: passes.id, jobId: passes.jobId, storedAt })
        .from(passes)
        .where(and(eq(passes.state, "creating"), lt(storedAt, new Date(beforeMs)), isAfter))
        .orderBy(asc(storedAt), asc(passes.id))
        .limit(UNFINISHED_ROWS),
    );
  }

  removeFailed(beforeMs: number): Promise<boolean> {
    return this.failed.removeOld(beforeMs);
  }

  private async one(which: ReturnType<typeof and>): Promise<Pass | null> {
    const [row] = await this.options.database.read((db) => db.select(COLUMNS).from(passes).where(which));
    return row === undefined ? null : this.toPass(row);
  }

  private sealed({ authenticationToken, tenantId, passId }: NewPass): string | null {
    if (authenticationToken === null) return null;
    return this.options.vault.seal(tokenPlace(tenantId, passId), authenticationToken);
  }

  private toPass(row: PassRow): Pass {
    const { id: passId, tenantId, serial, state, version, passTypeId, jobId } = row;
    const sealed = row.authenticationToken;
    const authenticationToken = sealed === null ? null : this.options.vault.open(tokenPlace(tenantId, passId), sealed);
    const content = parsePassContent(row.content);
    const pass = { passId, tenantId, serial, state, version, content, passTypeId, authenticationToken, jobId };
    return content.type === "google" && row.bundleVersion !== null ? { ...pass, isMade: true } : pass;
  }

  private now(): Date {
    return new Date(this.options.clock.nowMs());
  }
}

type PassRow = Pick<typeof passes.$inferSelect, keyof typeof COLUMNS>;

/** Returns the location of an Apple pass's token in the vault; phones fetch the pass with it. */
export function tokenPlace(tenantId: string, passId: string): SecretPlace {
  return { tenantId, kind: "pass", field: passId };
}

/** Undoes the transaction of a pass that cannot be charged. */
class NotCharged extends Error {
  constructor(readonly why: Unpaid) {
    super(why);
  }
}

/** Checks and charges in one statement. Returns the remaining balance, or throws `NotCharged`. */
async function charge(transaction: AnyDb, tenantId: string, at: Date): Promise<number> {
  const mayFail = or(ne(tenants.refundDay, toDay(at)), lt(tenants.refunds, walletLimits.refundsADayMax));
  const [charged] = await transaction
    .update(tenants)
    .set({ tokens: sql`${tenants.tokens} - ${PRICE}::bigint` })
    .where(and(eq(tenants.id, tenantId), gte(tenants.tokens, PRICE), mayFail))
    .returning({ balance: tenants.tokens });
  if (charged !== undefined) return charged.balance;
  const isRich = and(eq(tenants.id, tenantId), gte(tenants.tokens, PRICE));
  const rich = await transaction.select({ id: tenants.id }).from(tenants).where(isRich);
  throw new NotCharged(rich.length === 0 ? "no_tokens" : "failed_often");
}

function toDay(at: Date): number {
  return Math.floor(at.getTime() / DAY_MS);
}

/** Updates are free: without a bound, their versions would fill the registry. */
async function forgetVersions(transaction: AnyDb, passId: string, latest: number): Promise<void> {
  const isOld = lte(passVersions.version, latest - walletLimits.passVersionsKept);
  await transaction.delete(passVersions).where(and(eq(passVersions.passId, passId), isOld));
}

/**
 * Returns a tag that is never behind the clock: phones remember tags for years, and a registry that was restored from a
 * backup must not issue again the tags that it issued after the backup.
 */
async function nextTag(transaction: AnyDb, passTypeId: string, nowMs: number): Promise<number> {
  const [row] = await transaction
    .insert(passTypes)
    .values({ passTypeId, lastTag: nowMs })
    .onConflictDoUpdate({
      target: passTypes.passTypeId,
      set: { lastTag: sql`greatest(${passTypes.lastTag} + 1, ${nowMs}::bigint)` },
    })
    .returning({ lastTag: passTypes.lastTag });
  if (row === undefined) throw new Error("a pass type's tag did not move");
  return row.lastTag;
}

interface BundleRow {
  readonly bytes: Uint8Array<ArrayBuffer> | null;
  readonly version: number | null;
  readonly modifiedAt: number | null;
}

function toBundle({ bytes, version, modifiedAt }: BundleRow): PassBundle | null {
  return bytes === null || version === null || modifiedAt === null ? null : { bytes, version, modifiedAt };
}

/** Converts a pass's content to the form of its column. */
function passContentBody(content: PassContent): JsonObject {
  return { ...content };
}

/** Parses the output of `passContentBody`. */
function parsePassContent(body: JsonObject): PassContent {
  const { type, style, pass, strings, images, personalization, personalized, kind, classId, object } = body;
  const knownStyle = PASS_STYLES.find((one) => one === style);
  if (type === "apple" && knownStyle !== undefined && isJsonObject(pass) && isJsonObject(images)) {
    const files = Object.entries(images).map(([file, hash]) => [file, String(hash)] as const);
    // In the form written by `passContentBody`.
    const texts = isJsonObject(strings) ? { strings: strings as PassStrings } : {};
    const form = {
      ...(isJsonObject(personalization) && { personalization }),
      ...(typeof personalized === "string" && { personalized }),
    };
    return { type, style: knownStyle, pass, ...texts, ...form, images: Object.fromEntries(files) };
  }
  const knownKind = GOOGLE_KINDS.find((one) => one === kind);
  if (type === "google" && knownKind !== undefined && typeof classId === "string" && isJsonObject(object)) {
    return { type, kind: knownKind, classId, object };
  }
  throw new Error("a stored pass is incomplete");
}
