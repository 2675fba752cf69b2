import { normaliseAddress, parseRecipient } from "../channels/email.ts";
import { WHATSAPP_USER_ID } from "../channels/whatsapp.ts";
import { splitAddress } from "../texts/split-address.ts";

/**
 * Finds messages to a recipient in stores that do not have the recipient itself: they have a keyed hash of it, which
 * cannot be computed or compared without the key.
 */
export interface RecipientIndex {
  /**
   * Returns 128 bits in the form of a UUID. The recipient is normalised as in the queue. One recipient has one hash,
   * whichever tenant wrote to it: a search over all tenants compares one value, so a filter can skip everything else.
   */
  hashRecipient(recipient: string): string;
  /**
   * Returns the name under which an erased recipient stays on a tenant's list of suppressions: `ERASED_NAME` and the
   * SHA-1, in hexadecimal, of the tenant's key and the recipient. Redis, which has no HMAC, computes the same. A topic
   * behind the recipient stays behind it.
   */
  erasedName(tenantId: string, name: string): string;
  /** Returns the key of a tenant's erased names: long and secret, so that addresses cannot be tried without it. */
  erasedNamesKey(tenantId: string): string;
}

/** Replaces a hash where the recipient is not known. */
export const NO_RECIPIENT = "00000000-0000-0000-0000-000000000000";

/**
 * Normalises a recipient as in the queue: addresses and the chat provider's ids of people in lower case, phone numbers
 * as digits.
 */
export function normalisedRecipient(text: string): string {
  const trimmed = text.trim();
  if (WHATSAPP_USER_ID.test(trimmed)) return normaliseAddress(trimmed);
  if (!trimmed.includes("@")) return trimmed.replace(/[\s+().-]/g, "");
  return normaliseAddress(parseRecipient(trimmed) ?? trimmed);
}

/** Whether this can be a recipient in the queue: one e-mail address, phone number or WhatsApp user id, normalised. */
export function isRecipient(text: string): boolean {
  return parseRecipient(text) !== null || /^\d{7,15}$/.test(text) || WHATSAPP_USER_ID.test(text);
}

/** Returns the domain of an e-mail address; "" for any other recipient. */
export function recipientDomain(recipient: string): string {
  return splitAddress(recipient)?.domain ?? "";
}
