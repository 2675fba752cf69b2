/** A signed call of the chat provider, as it comes over the wire. */
export function signed(
  body: string | Uint8Array,
  secret: string,
): { body: Uint8Array<ArrayBuffer>; signature: string } {
  const bytes = new Uint8Array(typeof body === "string" ? new TextEncoder().encode(body) : body);
  return { body: bytes, signature: `sha256=${new Bun.CryptoHasher("sha256", secret).update(bytes).digest("hex")}` };
}

/** The phone number id in `webhookBody`. */
export const PHONE_NUMBER_ID = "106540352242922";

/** The body of a call with these statuses and messages, in one change. */
export function webhookBody(
  value: {
    readonly statuses?: readonly unknown[];
    readonly messages?: readonly unknown[];
    readonly contacts?: readonly unknown[];
    readonly errors?: readonly unknown[];
  },
  phone_number_id: string = PHONE_NUMBER_ID,
) {
  const metadata = { display_phone_number: "15550001111", phone_number_id };
  const contacts = [{ profile: { name: "Ada" }, wa_id: "5491122334455" }];
  const change = { field: "messages", value: { messaging_product: "whatsapp", metadata, contacts, ...value } };
  return { object: "whatsapp_business_account", entry: [{ id: "102290129340398", changes: [change] }] };
}

export function status(id: string, word: string, more: object = {}): object {
  return { id, status: word, timestamp: "1795247400", recipient_id: "5491122334455", ...more };
}
