import { normaliseAddress, parseRecipient } from "../channels/email.ts";
import { WHATSAPP_USER_ID } from "../channels/whatsapp.ts";

/**
 * Finds what was sent to a recipient in stores that do not have the recipient itself: they have a keyed hash of it, which
 * nobody without the key can compute or compare.
 */
export interface RecipientIndex {
  /**
   * 128 bits in the form of a UUID. The recipient is normalised as the queue has it. One recipient has one hash, whoever
   * wrote to it: a search over all tenants compares one value, so a filter can skip what does not have it.
   */
  hashRecipient(recipient: string): string;
  /**
   * The name under which an erased recipient stays on a tenant's list of suppressions: `ERASED_NAME` and the SHA-1, in
   * hexadecimal, of the tenant's key and the recipient. Redis computes the same, which has no HMAC. A topic behind the recipient
   * stays behind it.
   */
  erasedName(tenantId: string, name: string): string;
  /** The key of a tenant's erased names: long and secret, so nobody without it can try addresses. */
  erasedNamesKey(tenantId: string): string;
}

/** In place of a hash where the recipient is not known. */
export const NO_RECIPIENT = "00000000-0000-0000-0000-000000000000";

/** As the queue has recipients: addresses and the chat provider's ids of people in lower case, phone numbers as digits. */
export function normalisedRecipient(text: string): string {
  const trimmed = text.trim();
  if (WHATSAPP_USER_ID.test(trimmed)) return normaliseAddress(trimmed);
  if (!trimmed.includes("@")) return trimmed.replace(/[\s+().-]/g, "");
  return normaliseAddress(parseRecipient(trimmed) ?? trimmed);
}

/** Whether the queue can have this recipient: one e-mail address, phone number or WhatsApp user id, normalised. */
export function isRecipient(text: string): boolean {
  return parseRecipient(text) !== null || /^\d{7,15}$/.test(text) || WHATSAPP_USER_ID.test(text);
}

/** The domain of an e-mail address; "" of any other recipient. */
export function recipientDomain(recipient: string): string {
  const at = recipient.lastIndexOf("@");
  return at === -1 ? "" : recipient.slice(at + 1);
}
