import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { GoogleIssuer } from "../domain/channels/wallet.ts";
import { isJsonObject } from "../domain/texts/json.ts";

/*
 * Parses environment text into typed values. Each parser returns undefined for invalid text; the table of settings describes
 * the valid form.
 */

/** The location of Redis, in the form of the queue's connection. */
export type RedisLocation =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "cluster"; readonly urls: readonly string[] };

export interface Mailbox {
  readonly address: string;
  /** Empty if none was given. */
  readonly name: string;
}

export const MASTER_KEY_BYTES = 32;
/** A token or password of at least this many characters. */
export const TOKEN_CHARS_MIN = 16;

export function wholeNumber(min: number, max: number) {
  return {
    expected: `a whole number from ${min} to ${max}`,
    parse: (text: string) => inRange(/^\d{1,9}$/.test(text) ? Number(text) : Number.NaN, min, max),
  };
}

/** A listener's address. */
export const hostOrAddress = {
  expected: "a host name or an IP address",
  parse: (text: string) => matching(text, /^[A-Za-z0-9._:-]{1,253}$/),
};

/** How many processes in total, or how many of a role besides the main one. */
export type ProcessCount = { readonly total: number } | { readonly api: number; readonly dispatcher: number };

const PROCESSES_MAX = 64;

/** `4`, or `api=1,dispatcher=2`; roles not listed stay in the main process. */
export function processCount(text: string): ProcessCount | undefined {
  const { parse } = wholeNumber(1, PROCESSES_MAX);
  const total = parse(text);
  if (total !== undefined) return { total };
  const beside = { api: 0, dispatcher: 0 };
  for (const item of text.split(",")) {
    const [name = "", count = "", ...rest] = item.split("=").map((part) => part.trim());
    const role = parseChoice(name, ["api", "dispatcher"]);
    const many = parse(count);
    if (role === undefined || many === undefined || rest.length > 0 || beside[role] > 0) return undefined;
    beside[role] = many;
  }
  return beside;
}

/** A web address without a trailing slash, so that paths can be appended to it. */
export function webUrl(example: string) {
  return {
    expected: `a web address like ${example}`,
    parse: (text: string) => {
      const url = parseUrl(text, ["http:", "https:"]);
      return url === undefined || /[?#]/.test(url) ? undefined : url.replace(/\/+$/, "");
    },
  };
}

export function inRange(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined;
}

export function matching(text: string, pattern: RegExp): string | undefined {
  return pattern.test(text) ? text : undefined;
}

export function parseChoice<const T extends string>(text: string, choices: readonly T[]): T | undefined {
  return choices.find((choice) => choice === text);
}

/** The items of a comma-separated list, if there is at least one and all are valid. */
export function list<T>(text: string, parseItem: (item: string) => T | undefined): readonly T[] | undefined {
  const items: T[] = [];
  for (const part of text.split(",")) {
    const item = parseItem(part.trim());
    if (item === undefined) return undefined;
    items.push(item);
  }
  return items;
}

export function distinct<T>(items: readonly T[] | undefined): readonly T[] | undefined {
  return items && Array.from(new Set(items));
}

/** The text, if it is a URL with one of the protocols and a host. */
export function parseUrl(text: string, protocols: readonly string[]): string | undefined {
  const url = URL.parse(text);
  const fits = url !== null && protocols.includes(url.protocol) && url.hostname !== "" && !/\s/.test(text);
  return fits ? text : undefined;
}

export function redisAddress(text: string): RedisLocation | undefined {
  const urls = list(text, (item) => parseUrl(item, ["redis:", "rediss:"]));
  const [first, ...others] = urls ?? [];
  if (urls === undefined || first === undefined) return undefined;
  return others.length === 0 ? { kind: "url", url: first } : { kind: "cluster", urls };
}

/** A name of at least two labels (RFC 1123, 2.1), in lower case; not an IP address. */
export function hostName(text: string): string | undefined {
  const name = text.toLowerCase();
  const isName = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name);
  return isName && name.length <= 220 ? name : undefined;
}

export function masterKey(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === MASTER_KEY_BYTES ? new Uint8Array(bytes) : undefined;
}

/** `Name <address>`, `"Name" <address>` or a bare address (RFC 5322, 3.4, without comments and groups). */
/** An address in security.txt: a web address has to be one of https (RFC 9116, 2.5.3). */
export function contact(text: string): string | undefined {
  if (/^(https:\/\/|mailto:|tel:)[!-~]+$/.test(text)) return text;
  return mailbox(text)?.address === text ? `mailto:${text}` : undefined;
}

export function mailbox(text: string): Mailbox | undefined {
  const [, name = "", named] = /^([^<>]*)<([^<>]+)>$/.exec(text) ?? [];
  const address = named ?? text;
  if (!/^[^\s<>()@,;:"]{1,64}@[A-Za-z0-9.-]{1,253}$/.test(address) || Buffer.byteLength(address) > 254)
    return undefined;
  // A line break in the name would end the header that contains it.
  return hasControlCharacter(name) ? undefined : { address, name: name.trim().replace(/^"(.*)"$/, "$1") };
}

/** A network in CIDR notation; a bare address is a network of one. */
export function network(text: string): string | undefined {
  const [address = "", prefix, ...rest] = text.split("/");
  const bits = countBits(address);
  if (bits === 0 || rest.length > 0) return undefined;
  const length = prefix ?? String(bits);
  return /^\d{1,3}$/.test(length) && Number(length) <= bits ? `${address}/${length}` : undefined;
}

/** `host:port`, where the host is an IP address (version 6 in brackets) or a name. An address alone has the port 53. */
export function nameServer(text: string): string | undefined {
  if (isIP(text) === 4) return `${text}:53`;
  if (isIP(text) === 6) return `[${text}]:53`;
  const [, v6, host = "", port] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const isHost = v6 === undefined ? isIP(host) === 4 || HOST_NAME.test(host) : isIP(v6) === 6;
  return isHost && inRange(Number(port), 1, 65_535) !== undefined ? text : undefined;
}

/** Matches one label or more, the last of which is not a number: that would be a mistyped address. */
const HOST_NAME = /^(?!(?:.*\.)?\d+$)[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

function countBits(address: string): 0 | 32 | 128 {
  const family = isIP(address);
  if (family === 0) return 0;
  return family === 4 ? 32 : 128;
}

function hasControlCharacter(text: string): boolean {
  return Array.from(text).some((character) => character < " " || character === "\x7f");
}

/** PEM (RFC 7468) with the labelled content, or the path of such a file. Line breaks may be written as `\\n`. */
export function pemText(label: "CERTIFICATE" | "PRIVATE KEY") {
  return {
    expected: `PEM with a ${label}, or the path of a file with it`,
    parse: (text: string) => {
      const pem = text.startsWith("-----BEGIN ") ? text.replaceAll("\\n", "\n") : fileText(text);
      // `RSA PRIVATE KEY` and `ENCRYPTED PRIVATE KEY` are keys as well.
      return pem !== undefined && new RegExp(`-----BEGIN (?:[A-Z]+ )?${label}-----`).test(pem) ? pem : undefined;
    },
  };
}

/** A Google service account, from its JSON key or the path of the file that holds it. */
export function serviceAccount(text: string): GoogleServiceAccount | undefined {
  const json = text.startsWith("{") ? text : fileText(text);
  const account = json === undefined ? null : parseServiceAccount(parseJson(json));
  return account !== null && isRsaKey(account.privateKeyPem) ? account : undefined;
}

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === "rsa";
  } catch {
    // Not a readable key.
    return false;
  }
}

function fileText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Any reason will do: the setting's own error describes the valid form.
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The account that signs for an issuer. */
type GoogleServiceAccount = Pick<GoogleIssuer, "clientEmail" | "privateKeyPem">;

/**
 * Reads the JSON key of a service account, as Google's console issues it; null if the value is not one. Does not check
 * whether the key can sign.
 */
function parseServiceAccount(value: unknown): GoogleServiceAccount | null {
  if (!isJsonObject(value)) return null;
  const { client_email, private_key } = value;
  if (typeof client_email !== "string" || !/^[^\s@]{1,190}@[^\s@]{1,63}$/.test(client_email)) return null;
  if (typeof private_key !== "string" || private_key.length > KEY_CHARS_MAX) return null;
  // In environments and forms, line breaks often stay escaped as in JSON.
  const privateKeyPem = private_key.replaceAll("\\n", "\n").trim();
  const isPem = /^-----BEGIN (?:RSA )?PRIVATE KEY-----\r?\n[\s\S]+\n-----END (?:RSA )?PRIVATE KEY-----$/;
  return isPem.test(privateKeyPem) ? { clientEmail: client_email, privateKeyPem: `${privateKeyPem}\n` } : null;
}

/** An 8192-bit key has some 6,400. */
const KEY_CHARS_MAX = 10_000;
