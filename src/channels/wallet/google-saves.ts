import type { GoogleCallback } from "./google/callbacks/signed-callback.ts";

/** The pass that a callback is about. */
export interface CalledPass {
  readonly tenantId: string;
  readonly passId: string;
  readonly serial: string;
}

export type TakenCallback =
  /** It is on disk, and was not before. */
  | { readonly kind: "taken"; readonly pass: CalledPass }
  /** It was taken before. */
  | { readonly kind: "repeated" }
  /** No pass of ours is the object. */
  | { readonly kind: "unknown" }
  /** A pass with its id is being created: whether the object is that pass will be known later. */
  | { readonly kind: "unsettled" };

/**
 * Who has saved which Google pass, as far as Google's callbacks have told. Rejects with `UnavailableError` or `TransportError` if the
 * registry is away.
 */
export interface GoogleSaves {
  /** Records a save (`save`) or a removal (`del`), once for each nonce of a pass. */
  take(callback: GoogleCallback): Promise<TakenCallback>;
  /** Saves without their removals; null: no callback has told of any. */
  holders(passId: string): Promise<number | null>;
}
