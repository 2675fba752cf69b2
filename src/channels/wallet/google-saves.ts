import type { GoogleCallback } from "./google/callbacks/signed-callback.ts";

/** The pass that a callback is about. */
export interface CalledPass {
  readonly tenantId: string;
  readonly passId: string;
  readonly serial: string;
}

export type TakenCallback =
  /** The callback is new and is now on disk. */
  | { readonly kind: "taken"; readonly pass: CalledPass }
  /** The callback was already stored. */
  | { readonly kind: "repeated" }
  /** The object is none of our passes. */
  | { readonly kind: "unknown" }
  /** A pass with its id is being created, and may or may not be the object. */
  | { readonly kind: "unsettled" };

/**
 * Saves of Google passes, as reported by Google's callbacks. Rejects with `UnavailableError` or `TransportError` if the
 * registry is unavailable.
 */
export interface GoogleSaves {
  /** Records a save (`save`) or a removal (`del`), once for each nonce of a pass. */
  take(callback: GoogleCallback): Promise<TakenCallback>;
  /** Returns the saves minus the removals; null before the first callback. */
  holders(passId: string): Promise<number | null>;
}
