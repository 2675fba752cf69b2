/**
 * Parses a tag list as in DKIM and DMARC records (RFC 6376, 3.2): `name=value` pairs separated by semicolons,
 * insignificant white space, case-sensitive names. Null if the text is not a tag list or repeats a tag.
 */
export function parseTagList(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>();
  for (const part of text.replace(/;\s*$/, "").split(";")) {
    const [, name, value = ""] = /^\s*([A-Za-z][A-Za-z0-9_]*)\s*=(.*)$/s.exec(part) ?? [];
    if (name === undefined || tags.has(name)) return null;
    tags.set(name, value.trim());
  }
  return tags;
}
