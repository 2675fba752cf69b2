/** Leaves room for the longest name that is made of it, its DKIM record's, in the 253 characters of a name. */
const CHARS_MAX = 220;
/** Two labels at least, of letters, digits and inner hyphens (RFC 1035, 2.3.1), the last one no number. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** The domain in lower case, or null where the text is none. Internationalised ones are given in their `xn--` form. */
export function parseDomainName(text: string): string | null {
  const domain = text.toLowerCase();
  return domain.length <= CHARS_MAX && DOMAIN.test(domain) ? domain : null;
}
