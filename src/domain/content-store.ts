import type { PayloadRef, StoredRef } from "./jobs/payload-store.ts";

/** A file that jobs send, named by its content. */
export interface StoredContent {
  /** SHA-256 of its bytes, lower-case hexadecimal. */
  readonly sha256: string;
  readonly bytes: number;
}

/** A file with its bytes. */
export interface Content {
  readonly sha256: string;
  readonly body: Uint8Array;
}

/**
 * Files that jobs send, such as attachments. A tenant's equal files are stored once, however many jobs send them;
 * tenants never share a file, so one cannot find out about another's. A job's files are stored before the job is
 * queued, and released some time after it has ended. Calls reject with `UnavailableError` or `TransportError`; all are
 * safe to repeat.
 */
export interface ContentStore {
  /** Stores the job's files. Resolves when they are on disk. Files that the job already has count as stored anew. */
  put(ref: PayloadRef, contents: readonly Content[]): Promise<void>;
  /** Returns a file of the job, unchecked; null: the job has no such file. */
  get(ref: PayloadRef, sha256: string): Promise<Uint8Array | null>;
  /**
   * Removes the job's files, except those that other jobs send. `sha256s`: the files that it has; absent: they are
   * looked up.
   */
  remove(ref: PayloadRef, sha256s?: readonly string[]): Promise<void>;
  /** Removes files that `all` found, unless they were stored anew since. */
  removeFound(found: StoredRef): Promise<void>;
  /** Lists all jobs that have files, in pieces; some that come or go during the iteration may be left out. */
  all(): AsyncIterable<readonly StoredRef[]>;
}
