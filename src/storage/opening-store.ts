import { ConfigurationError, TransportError, UnavailableError } from "../domain/errors.ts";
import { saidByCause } from "../domain/tenants/said-by.ts";
import { FolderInUseError } from "./folder-lock.ts";

/**
 * A store in the data folder does not open. The message is all that a person needs: which folder, why, and the remedy.
 */
export class UnopenedStoreError extends Error {
  override readonly name = "UnopenedStoreError";
}

export interface OpeningStore {
  /** As in "the registry (PostgreSQL)". */
  readonly store: string;
  readonly folder: string;
  /** The engine's output before it failed, which is more informative than its error. "" or null: none. */
  lastWords?(): string | null;
}

const REMEDY =
  "It is left as it is: copy the folder before anything else is tried, see that its disk has room, and restore a backup " +
  "where it is damaged (docs/backup.md)";

/** Opens a store in the data folder. Turns any error of the engine or the system into one line for a person. */
export async function openingStore<T>({ store, folder, lastWords }: OpeningStore, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (isForAPerson(error)) throw error;
    const why = lastWords?.() || saidByCause(error);
    throw new UnopenedStoreError(`${store} does not open in ${folder}: ${oneLine(why)}. ${REMEDY}`, { cause: error });
  }
}

function isForAPerson(error: unknown): boolean {
  const isOurs = error instanceof ConfigurationError || error instanceof FolderInUseError;
  const isAway = error instanceof TransportError || error instanceof UnavailableError;
  return isOurs || isAway || error instanceof UnopenedStoreError;
}

function oneLine(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("; ")
    .replace(/\.$/, "");
}
