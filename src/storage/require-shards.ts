import { ConfigurationError } from "../domain/errors.ts";
import type { AnyDb } from "./postgres/database.ts";
import { registryState } from "./tables.ts";

/** The registry's state; null: it is new. Throws `ConfigurationError` if it was created with another number of shards. */
export async function requireShards(db: AnyDb, shards: number) {
  const [state = null] = await db.select().from(registryState);
  if (state === null || state.shards === shards) return state;
  throw new ConfigurationError(
    `SHARDS is ${shards}, but the data was created with ${state.shards} and cannot change: set SHARDS=${state.shards}.`,
  );
}
