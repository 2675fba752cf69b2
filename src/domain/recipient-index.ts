/**
 * Finds what was sent to a recipient in stores that do not have the recipient itself: they have a keyed hash of it, which
 * nobody without the key can compute or compare.
 */
export interface RecipientIndex {
  /**
   * 128 bits in the form of a UUID. The recipient is normalised as the queue has it. One recipient has one hash, whoever
   * wrote to it: a search over all tenants compares one value, so a filter can skip what does not have it.
   */
  hashOf(recipient: string): string;
}

/** In place of a hash where the recipient is not known. */
export const NO_RECIPIENT = "00000000-0000-0000-0000-000000000000";

/** The domain of an e-mail address; "" of any other recipient. */
export function recipientDomain(recipient: string): string {
  const at = recipient.lastIndexOf("@");
  return at === -1 ? "" : recipient.slice(at + 1);
}
