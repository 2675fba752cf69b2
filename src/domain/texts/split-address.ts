/**
 * An e-mail address split at its last `@`: within quotes, the local part may have more of them (RFC 5321, 4.1.2). Null: the text has
 * none. The parts may be empty: the address is not checked.
 */
export function splitAddress(text: string): { readonly local: string; readonly domain: string } | null {
  const at = text.lastIndexOf("@");
  return at === -1 ? null : { local: text.slice(0, at), domain: text.slice(at + 1) };
}

/** The domain of an address, as it is written; of any other text, all of it. */
export function extractDomain(text: string): string {
  return splitAddress(text)?.domain ?? text;
}
