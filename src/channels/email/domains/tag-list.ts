/**
 * A tag list as DKIM and DMARC records are (RFC 6376, 3.2): `name=value` separated by semicolons, blanks around either
 * of no meaning, names told apart by case. Null where the text is no tag list, or has a tag twice.
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
