/** UTF-8 bytes. A longer payload waits outside the queue, which is in memory and read in pieces. */
export const QUEUED_PAYLOAD_BYTES_MAX = 256 * 1024;

/** Whose payload it is. */
export interface PayloadRef {
  readonly tenantId: string;
  readonly jobId: string;
}

/**
 * Payloads of jobs that are too large for the queue. Each is put before its job is queued, and removed some time after the
 * job has ended. Calls reject with `UnavailableError` or `TransportError`; all are safe to repeat.
 */
export interface PayloadStore {
  /** Resolves when it is on disk. */
  put(ref: PayloadRef, payload: Uint8Array): Promise<void>;
  /** As it is stored, unchecked; null: there is none. */
  get(ref: PayloadRef): Promise<Uint8Array | null>;
  remove(ref: PayloadRef): Promise<void>;
  /** All that are there, in pieces; what comes or goes in between may be among them or not. */
  all(): AsyncIterable<readonly PayloadRef[]>;
}
