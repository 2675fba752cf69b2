import { parseTagList } from "./tag-list.ts";

/*
 * Judges published records as receiving mail servers would. Each rule takes all TXT records at a name and returns the
 * problem as the end of a sentence that begins with the name, or null.
 */

/**
 * Judges SPF at the return path (RFC 7208), which requires exactly one record, in which the platform's `include` passes
 * before any mechanism that ends the evaluation. Other mechanisms are up to the tenant.
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
 * Judges a DKIM key record (RFC 6376, 3.6.1), which must contain the public key, must not be revoked, and must allow
 * e-mail and SHA-256. `publicKey` is base64 without white space. Other TXT records at the same name are ignored.
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
  if (published !== publicKey) return keyProblem(published, publicKey);
  if (!isListed(tags.get("h"), ["sha256"])) return 'has a key record whose "h=" does not allow sha256';
  if (!isListed(tags.get("s"), ["*", "email"])) return 'has a key record whose "s=" does not allow e-mail';
  return null;
}

/** Strings of a TXT record end at 255 characters, and some panels keep the first one or repeat a part. */
function keyProblem(published: string, publicKey: string): string {
  if (publicKey.startsWith(published)) {
    return `has a key record that is cut off: ${published.length} of the ${publicKey.length} characters of "p=" are there; publish the rest as further strings of the same record`;
  }
  return `has a key record with another key: "p=" should begin with ${publicKey.slice(0, 60)}`;
}

/** The one DMARC policy record among the TXT records at a name. Several at one name do not count (RFC 9989, 4.10). */
export interface DmarcRecord {
  readonly text: string;
  /** `y`: the name is a public suffix. `n`: an organization begins at the name. */
  readonly psd: "y" | "n" | "u";
}

/** Finds the DMARC policy record; `many` if there are several, which receivers discard. */
export function dmarcRecord(texts: readonly string[]): DmarcRecord | "many" | null {
  const records = texts.filter(isDmarc);
  const [text] = records;
  if (text === undefined) return null;
  if (records.length > 1) return "many";
  const psd = dmarcTags(text)?.get("psd")?.toLowerCase();
  return { text, psd: psd === "y" || psd === "n" ? psd : "u" };
}

/**
 * Judges whether receivers apply a DMARC record (RFC 9989, 4.7 and 4.10.1), whatever its policy. A record without `p`
 * means `none`, as does one with invalid policies if it names an address for reports; otherwise DMARC does not apply.
 * Tags that are unknown or malformed are ignored.
 */
export function dmarcProblem({ text }: DmarcRecord): string | null {
  const tags = dmarcTags(text);
  if (!tags) return `has a DMARC record that repeats a tag${found([text])}`;
  const wrong = ["p", "sp", "np"].find((name) => !isDmarcPolicy(tags.get(name)));
  if (wrong === undefined || namesReports(tags.get("rua"))) return null;
  return `has a DMARC record whose policy "${wrong}" is not "none", "quarantine" or "reject"${found([text])}`;
}

/** `"v"` in any case, the version in its own (RFC 9989, 4.8). */
function isDmarc(text: string): boolean {
  return /^[vV]\s*=\s*DMARC1\s*(;|$)/.test(text);
}

/** Parses the tags after the version, with names in lower case. Null if one is repeated (RFC 6376, 3.2). */
function dmarcTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>();
  for (const part of text.split(";").slice(1)) {
    const [, name = "", value = ""] = /^\s*([A-Za-z]+)\s*=\s*(.*\S)\s*$/s.exec(part) ?? [];
    if (name === "") continue;
    if (tags.has(name.toLowerCase())) return null;
    tags.set(name.toLowerCase(), value);
  }
  return tags;
}

function isDmarcPolicy(value: string | undefined): boolean {
  return value === undefined || DMARC_POLICIES.includes(value.toLowerCase());
}

function namesReports(rua: string | undefined): boolean {
  return (rua ?? "").split(",").some((uri) => /^\s*(mailto:[^\s@]+@[^\s@]+|https?:\/\/[^\s/]\S*)\s*$/i.test(uri));
}

const DMARC_POLICIES: readonly string[] = ["none", "quarantine", "reject"];
const QUOTED_CHARS_MAX = 120;

/** Whether an optional list, separated by colons, allows one of the values; an absent list allows all. */
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
