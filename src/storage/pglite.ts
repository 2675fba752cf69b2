import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import type { Calls } from "../domain/calls.ts";
import { PrivateNodeFs } from "./private-node-fs.ts";
import { servePglite } from "./served-pglite.ts";

export interface EmbeddedPostgres {
  readonly db: PgDatabase<PgQueryResultHKT>;
  /** Lets another process of this start use it. */
  serveTo(calls: Calls): void;
  close(): Promise<void>;
}

/**
 * Opens PostgreSQL inside this process, with its data in `folder`, which is created when it does not exist (that takes
 * about 5 s, later starts half a second).
 *
 * What it does not do: it takes no lock on the folder (two processes on one folder destroy it: the caller holds a lock),
 * and it never waits for the disk. A change survives the death of this process, because the operating system has it by
 * then; a power loss can lose the last seconds of changes. `close` writes a checkpoint, so that the next start has
 * nothing to replay. Where that is not enough, use a PostgreSQL server.
 */
export async function openPglite(folder: string): Promise<EmbeddedPostgres> {
  if (!existsSync(join(folder, "PG_VERSION"))) await create(folder);
  const client = await PGlite.create({ fs: new PrivateNodeFs(folder) });
  await client.exec("set client_min_messages = warning");
  let closed: Promise<void> | null = null;
  return {
    db: drizzle({ client }),
    serveTo: (calls) => servePglite(client, calls),
    close: () => {
      closed ??= closeClient(client);
      return closed;
    },
  };
}

/** In a folder beside, so that a process that dies meanwhile leaves nothing that looks like a database. */
async function create(folder: string): Promise<void> {
  const unfinished = `${folder}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await closeClient(await PGlite.create({ fs: new PrivateNodeFs(unfinished) }));
  await rename(unfinished, folder);
}

async function closeClient(client: PGlite): Promise<void> {
  if (client.closed) return;
  await client.exec("checkpoint");
  await client.close();
}
