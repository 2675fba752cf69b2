/**
 * The purpose and data of a link in a message. Its token carries all of it: following a link needs no lookup, and only
 * tokens that this service signed are trusted.
 */
export type Link =
  | { readonly purpose: "open"; readonly tenantId: string; readonly jobId: string }
  /** `url` is where the click leads: absolute, http or https. */
  | { readonly purpose: "click"; readonly tenantId: string; readonly jobId: string; readonly url: string }
  /** `recipient` is the normalised address: a job forgets it once it has ended. */
  | { readonly purpose: "unsubscribe"; readonly tenantId: string; readonly jobId: string; readonly recipient: string };

export type LinkPurpose = Link["purpose"];
export type LinkOf<P extends LinkPurpose> = Extract<Link, { purpose: P }>;

export interface LinkSigner {
  /** The link's token: letters, digits, `-` and `_`. The same link always has the same token. */
  sign(link: Link): string;
}

export interface LinkReader {
  /** The link that was signed, or null: altered, of another purpose, or not ours. */
  read<P extends LinkPurpose>(purpose: P, token: string): LinkOf<P> | null;
}
