import { and, eq, isNull, sql } from "drizzle-orm";
import { bigint, pgTable, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";
import { ConfigurationError } from "../domain/errors.ts";
import type { AnyDb } from "./postgres/database.ts";
import { readRows } from "./postgres/rows-of.ts";

/**
 * Identifies this registry, in one row: a random id, by which a queue recognizes the registry it belongs to, and the id
 * of the first key in MASTER_KEY at the last start. Also identifies the queue that belongs to it: its id, its last
 * known mark, and its number of jobs then.
 */
const identity = pgTable("registry_identity", {
  id: smallint("id").primaryKey(),
  registry: uuid("registry").notNull(),
  masterKey: text("master_key"),
  queue: uuid("queue"),
  mark: bigint("mark", { mode: "number" }).notNull().default(0),
  queuedJobs: bigint("queued_jobs", { mode: "number" }),
  countedAt: timestamp("counted_at", { withTimezone: true }),
});

/** Columns that were added later. */
const COLUMNS =
  "queue uuid, mark bigint not null default 0, queued_jobs bigint, counted_at timestamp with time zone".split(", ");

/**
 * Creates the identity, separately from the migrations: a copy of the database is the same registry, an empty one is
 * another.
 */
export async function ensureIdentity(db: AnyDb): Promise<void> {
  await db.execute(
    sql`create table if not exists registry_identity (id smallint primary key check (id = 1), registry uuid not null, master_key text)`,
  );
  const missing = await db.execute(
    sql`select 1 as missing where not exists (select from pg_attribute where attrelid = 'registry_identity'::regclass and attname = 'counted_at')`,
  );
  if (readRows(missing).length > 0) {
    const added = COLUMNS.map((column) => `add column if not exists ${column}`).join(", ");
    await db.execute(sql.raw(`alter table registry_identity ${added}`));
  }
  await db.execute(
    sql`insert into registry_identity (id, registry) values (1, gen_random_uuid()) on conflict do nothing`,
  );
}

export interface RegistryIdentity {
  readonly registry: string;
  /** Null: no process has used it yet. */
  readonly masterKey: string | null;
  /** The id of the queue that belongs to it; null: none yet. */
  readonly queue: string | null;
  /** The last known mark of that queue. */
  readonly mark: number;
  /** Null: they were not counted yet. */
  readonly queued: QueuedThen | null;
}

/** Jobs that had not ended at a certain time, at least. */
export interface QueuedThen {
  readonly jobs: number;
  readonly at: Date;
}

/** Requires a database with the current schema. */
export async function readIdentity(db: AnyDb): Promise<RegistryIdentity> {
  const [row] = await db.select().from(identity);
  if (row === undefined) throw new ConfigurationError("The registry's identity is missing: run `waybill migrate`.");
  const { registry, masterKey, queue, mark, queuedJobs: jobs, countedAt: at } = row;
  return { registry, masterKey, queue, mark, queued: jobs === null || at === null ? null : { jobs, at } };
}

/** Records which key seals from now on. Only for callers that have the previously recorded key. */
export async function noteMasterKey(db: AnyDb, keyId: string): Promise<void> {
  await db.update(identity).set({ masterKey: keyId });
}

/**
 * Assigns the queue to the registry if none is assigned yet. If two processes try at the same moment, one succeeds.
 */
export async function claimForQueue(db: AnyDb, queue: string): Promise<void> {
  await db.update(identity).set({ queue }).where(isNull(identity.queue));
}

/** Assigns another queue to the registry. */
export async function giveToQueue(db: AnyDb, queue: string, mark: number): Promise<void> {
  await db.update(identity).set({ queue, mark, queuedJobs: null, countedAt: null });
}

/**
 * Records the queue's mark, and its number of jobs if they were counted. False: another queue belongs to the registry
 * by now.
 */
export async function noteMark(
  db: AnyDb,
  { queue, mark, queued }: { readonly queue: string; readonly mark: number; readonly queued: QueuedThen | null },
): Promise<boolean> {
  const counted = queued === null ? {} : { queuedJobs: queued.jobs, countedAt: queued.at };
  const noted = await db
    .update(identity)
    .set({ mark: sql`greatest(${identity.mark}, ${mark})`, ...counted })
    .where(and(eq(identity.id, 1), eq(identity.queue, queue)))
    .returning({ mark: identity.mark });
  return noted.length > 0;
}

/** Writes the changes of an embedded registry to disk, which otherwise happens only at checkpoints. */
export async function putOnDisk(db: AnyDb): Promise<void> {
  await db.execute(sql`checkpoint`);
}
