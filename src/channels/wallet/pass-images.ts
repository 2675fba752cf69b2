import { and, asc, eq, not, notExists, sql } from "drizzle-orm";
import type { PassContent } from "../../domain/channels/wallet.ts";
import { among, insertPieces } from "../../storage/analysts/statement-texts.ts";
import type { AnyDb } from "../../storage/postgres/database.ts";
import { isCounted } from "./image-hash.ts";
import type { Pass, RefusedChange } from "./passes.ts";
import { addUp, sizeProblem } from "./request/apple-images.ts";
import { passImages, passImageUses } from "./tables.ts";

/** Bytes by their `imageHash`. */
type Images = ReadonlyMap<string, Uint8Array>;

interface PassOwner {
  readonly tenantId: string;
  readonly passId: string;
}

/*
 * The images of passes, each stored once for a tenant. These functions run inside the transaction that changes the
 * pass.
 *
 * I1. A counted image exists while a pass uses it, and is removed in the transaction that ends its last use, so a
 *     tenant's storage is bounded by its passes, however often they change.
 * I2. A transaction that adds a use, or checks for the last one, locks the image until its commit, so the two cannot
 *     miss each other.
 */

/** Stores the images of a new pass. */
export async function addImages(transaction: AnyDb, owner: PassOwner, content: PassContent, sent: Images) {
  const hashes = listHashes(content);
  if (hashes.length === 0) return;
  const stored = await held(transaction, owner, hashes, "key share");
  await store(transaction, owner, { hashes, stored, sent });
}

/** Stores a pass's new images, and removes those that only it used. */
export async function changeImages(transaction: AnyDb, owner: PassOwner, content: PassContent, sent: Images) {
  const hashes = listHashes(content);
  const gone = await endUses(transaction, [owner.passId], hashes);
  const stored = await held(transaction, owner, [...hashes, ...gone], "update");
  await store(transaction, owner, { hashes, stored, sent });
  await removeUnused(transaction, owner, gone);
}

/** Removes the images that only these passes of the tenant have. */
export async function removeImages(transaction: AnyDb, tenantId: string, passIds: readonly string[]) {
  const gone = await endUses(transaction, passIds, []);
  await held(transaction, { tenantId }, gone, "update");
  await removeUnused(transaction, { tenantId }, gone);
}

/** Removes images that no pass uses any more. They must be locked. */
async function removeUnused(transaction: AnyDb, { tenantId }: Pick<PassOwner, "tenantId">, gone: readonly string[]) {
  if (gone.length === 0) return;
  const uses = transaction
    .select({ one: sql`1` })
    .from(passImageUses)
    .where(and(eq(passImageUses.tenantId, passImages.tenantId), eq(passImageUses.hash, passImages.hash)));
  // A separate statement sees the uses of transactions that `held` has waited for.
  await transaction
    .delete(passImages)
    .where(and(eq(passImages.tenantId, tenantId), among(passImages.hash, gone), notExists(uses)));
}

/** Returns why the pass cannot change to this content, or null. An older pass that exceeds the limit may get smaller. */
export async function imagesProblem(
  transaction: AnyDb,
  before: Pass,
  content: PassContent,
  sent: Images,
): Promise<RefusedChange | null> {
  const hashes = [...listHashes(before.content), ...listHashes(content)];
  const rows = await transaction
    .select({ hash: passImages.hash, bytes: sql`octet_length(${passImages.png})`.mapWith(Number) })
    .from(passImages)
    .where(and(eq(passImages.tenantId, before.tenantId), among(passImages.hash, hashes)));
  const stored = new Map(rows.map(({ hash, bytes }) => [hash, bytes]));
  const listSizes = (one: PassContent) =>
    listFiles(one).map((hash) => stored.get(hash) ?? sent.get(hash)?.byteLength ?? 0);
  const problem = sizeProblem(listSizes(content));
  return problem === null || addUp(listSizes(content)) <= addUp(listSizes(before.content))
    ? null
    : { why: problem.message };
}

/** Whether both have the same files. */
export function haveSameImages(one: PassContent, other: PassContent): boolean {
  const [files, others] = [one, other].map((content) => (content.type === "apple" ? content.images : {}));
  return Bun.deepEquals(files, others);
}

/** Lists each hash once. */
function listHashes(content: PassContent): readonly string[] {
  return [...new Set(listFiles(content))];
}

/** Lists the hash of each file. */
function listFiles(content: PassContent): readonly string[] {
  return content.type === "apple" ? Object.values(content.images) : [];
}

/** Ends the passes' uses of all images but these. Returns the hashes of the ended uses, each once. */
async function endUses(transaction: AnyDb, passIds: readonly string[], hashes: readonly string[]): Promise<string[]> {
  const ended = await transaction
    .delete(passImageUses)
    .where(and(among(passImageUses.passId, passIds), not(among(passImageUses.hash, hashes))))
    .returning({ hash: passImageUses.hash });
  return [...new Set(ended.map(({ hash }) => hash))];
}

/**
 * Locks the stored ones and returns them; until the commit, no other transaction removes them, or begins (`update`) or
 * ends a use of them.
 */
async function held(
  transaction: AnyDb,
  { tenantId }: Pick<PassOwner, "tenantId">,
  hashes: readonly string[],
  how: "key share" | "update",
): Promise<ReadonlySet<string>> {
  const rows = await transaction
    .select({ hash: passImages.hash })
    .from(passImages)
    .where(and(eq(passImages.tenantId, tenantId), among(passImages.hash, hashes)))
    .orderBy(asc(passImages.hash))
    .for(how);
  return new Set(rows.map(({ hash }) => hash));
}

interface ToStore {
  readonly hashes: readonly string[];
  readonly stored: ReadonlySet<string>;
  readonly sent: Images;
}

/** Sends only the missing images, in the order of their hashes. */
async function store(transaction: AnyDb, { tenantId, passId }: PassOwner, { hashes, stored, sent }: ToStore) {
  for (const hash of hashes.filter((one) => !stored.has(one)).toSorted()) {
    const png = sent.get(hash);
    if (png === undefined) continue;
    await transaction
      .insert(passImages)
      .values({ tenantId, hash, png: new Uint8Array(png) })
      // Locks an image that another pass has stored in the meantime.
      .onConflictDoUpdate({ target: [passImages.tenantId, passImages.hash], set: { hash } });
  }
  const uses = hashes.filter(isCounted).map((hash) => ({ tenantId, passId, hash }));
  for (const piece of insertPieces(uses)) await transaction.insert(passImageUses).values(piece).onConflictDoNothing();
}
