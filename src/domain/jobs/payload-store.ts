/** UTF-8 bytes. A longer payload is stored outside the queue, which is in memory and is read in pieces. */
export const QUEUED_PAYLOAD_BYTES_MAX = 256 * 1024;

/**
 * A job that is to be sent later than this keeps its payload outside the queue whatever its size, unless the payload is
 * no larger than the reference to a stored one.
 */
export const LASTING_MS = 15 * 60_000;
export const LASTING_PAYLOAD_BYTES_MAX = 256;

/** Identifies a payload by its job. */
export interface PayloadRef {
  readonly tenantId: string;
  readonly jobId: string;
}

/** A store's record of a job, as returned by `all`. */
export interface StoredRef extends PayloadRef {
  /** When it was stored last (unix ms), and how long ago that was, both by the store's own clock. */
  readonly storedMs: number;
  readonly ageMs: number;
}

/**
 * Job payloads that are too large for the queue, or would wait in it for too long. Each is stored before its job is
 * queued, and removed some time after the job has ended. Calls reject with `UnavailableError` or `TransportError`; all
 * are safe to repeat.
 */
export interface PayloadStore {
  /** Resolves when it is on disk. A payload that is already there counts as stored anew. */
  put(ref: PayloadRef, payload: Uint8Array): Promise<void>;
  /** Returns the stored bytes, unchecked; null: none are stored. */
  get(ref: PayloadRef): Promise<Uint8Array | null>;
  remove(ref: PayloadRef): Promise<void>;
  /** Removes a payload that `all` returned, unless it was stored anew since. */
  removeFound(found: StoredRef): Promise<void>;
  /**
   * Lists all stored payloads, in pieces; payloads that come or go during the iteration may or may not be included.
   */
  all(): AsyncIterable<readonly StoredRef[]>;
}
