import { parseTagList } from "./tag-list.ts";

/*
 * Judges published records as receiving mail servers would. Each rule takes all TXT records at a name and returns the
 * problem as the end of a sentence that begins with the name, or null.
 */

/**
 * SPF at the return path (RFC 7208): exactly one record, in which the platform's `include` passes before any mechanism
 * that ends the evaluation. Other mechanisms are up to the tenant.
 */
export function spfProblem(texts: readonly string[], include: string): string | null {
  const records = texts.filter((text) => /^v=spf1( |$)/i.test(text));
  const [record] = records;
  if (record === undefined) return `has no SPF record: no TXT record begins with "v=spf1"${found(texts)}`;
  if (records.length > 1) return "has more than one SPF record, which counts as an error: merge them into one";
  const terms = record.split(/ +/).slice(1);
  const all = terms.findIndex((term) => /^[+?~-]?all$/i.test(term));
  const reached = all === -1 ? terms : terms.slice(0, all);
  const wanted = `include:${include}`;
  if (reached.some((term) => sameName(term.replace(/^\+/, ""), wanted))) return null;
  if (terms.some((term) => sameName(term.replace(/^[+?~-]/, ""), wanted))) {
    return `has an SPF record in which "${wanted}" stands behind "all" or does not pass${found([record])}`;
  }
  return `has an SPF record without "${wanted}"${found([record])}`;
}

/**
 * A DKIM key record (RFC 6376, 3.6.1): holds the public key, is not revoked, and allows e-mail and SHA-256. `publicKey`
 * is base64 without white space. Other TXT records at the same name are ignored.
 */
export function dkimProblem(texts: readonly string[], publicKey: string): string | null {
  const keys = texts.map(parseTagList).filter((tags) => tags?.has("p") === true);
  const [tags] = keys;
  if (!tags) return `has no DKIM key record: no TXT record there has a tag "p="${found(texts)}`;
  if (keys.length > 1) return "has more than one DKIM key record, and verifiers may read either: remove the other one";
  const [first] = tags.keys();
  if (tags.has("v") && (first !== "v" || tags.get("v") !== "DKIM1")) {
    return 'has a key record whose tag "v" is not "DKIM1" in the first place';
  }
  const published = (tags.get("p") ?? "").replace(/\s+/g, "");
  if (published === "") return 'has a key record whose "p=" is empty, which revokes the key';
  if ((tags.get("k") ?? "rsa") !== "rsa") return 'has a key record for another kind of key than "k=rsa"';
  if (published !== publicKey)
    return `has a key record with another key: "p=" should begin with ${publicKey.slice(0, 60)}`;
  if (!isListed(tags.get("h"), ["sha256"])) return 'has a key record whose "h=" does not allow sha256';
  if (!isListed(tags.get("s"), ["*", "email"])) return 'has a key record whose "s=" does not allow e-mail';
  return null;
}

/**
 * A DMARC record (RFC 7489, 6.3 and 6.6.3), with any policy. Expects at least one: if `hasDmarc` finds none, the parent
 * domain's record applies.
 */
export function dmarcProblem(texts: readonly string[]): string | null {
  const records = texts.filter(isDmarc);
  const [record = ""] = records;
  if (records.length > 1) return "has more than one DMARC record, so that none of them counts";
  const policy = parseTagList(record)?.get("p")?.toLowerCase();
  if (policy !== undefined && DMARC_POLICIES.includes(policy)) return null;
  return `has a DMARC record without a policy "p=none", "p=quarantine" or "p=reject"${found([record])}`;
}

/** Whether any of the records at a name is a DMARC record. */
export function hasDmarc(texts: readonly string[]): boolean {
  return texts.some(isDmarc);
}

function isDmarc(text: string): boolean {
  return /^v\s*=\s*DMARC1\s*(;|$)/.test(text);
}

const DMARC_POLICIES: readonly string[] = ["none", "quarantine", "reject"];
const QUOTED_CHARS_MAX = 120;

/** An optional list, separated by colons; if absent, it allows everything. */
function isListed(list: string | undefined, allowed: readonly string[]): boolean {
  return list === undefined || list.split(":").some((item) => allowed.includes(item.trim().toLowerCase()));
}

function sameName(one: string, other: string): boolean {
  return one.toLowerCase().replace(/\.$/, "") === other.toLowerCase();
}

/** Describes the records that were found instead, shortened and in printable characters. */
function found(texts: readonly string[]): string {
  const [text] = texts;
  if (text === undefined) return "";
  const printable = text.replace(/[^\x20-\x7e]/g, "?");
  return `; found: ${printable.length > QUOTED_CHARS_MAX ? `${printable.slice(0, QUOTED_CHARS_MAX)}…` : printable}`;
}
