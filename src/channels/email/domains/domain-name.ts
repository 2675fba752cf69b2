/** Leaves enough of a name's 253 characters for the longest name derived from it, that of its DKIM record. */
const CHARS_MAX = 220;
/** At least two labels of letters, digits and inner hyphens (RFC 1035, 2.3.1); the last is not a number. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Returns the domain in lower case, or null if the text is not a domain name. Internationalised domains are given in
 * `xn--` form.
 */
export function parseDomainName(text: string): string | null {
  const domain = text.toLowerCase();
  return domain.length <= CHARS_MAX && DOMAIN.test(domain) ? domain : null;
}
