import { createHash } from "node:crypto";
import type { Random } from "../domain/random.ts";

/** Base58: letters and digits without those that look alike (0 O I l). */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const SECRET_CHARS = 28;
const CHECKSUM_CHARS = 4;
const API_KEY = /^wb_[1-9A-HJ-NP-Za-km-z]{32}$/;
const PREFIX_CHARS = "wb_".length + 4;

/** A new API key: `wb_`, 28 characters with 164 bits of chance, and a checksum of four. */
export function newApiKey(random: Random): string {
  const secret = `wb_${randomText(random, SECRET_CHARS)}`;
  return secret + checksumOf(secret);
}

/** An id that tells things apart and gives nothing away, for example of a key. */
export function randomText(random: Random, chars: number): string {
  // Bytes from here on are thrown away: they would make the first characters of the alphabet likelier.
  const usableBelow = 256 - (256 % ALPHABET.length);
  const bytes = new Uint8Array(chars * 2);
  let text = "";
  while (text.length < chars) {
    for (const byte of random.fill(bytes)) {
      if (byte < usableBelow && text.length < chars) text += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return text;
}

/** Whether the text can be an API key of ours; anything else needs no look-up. */
export function isApiKey(text: string): boolean {
  return API_KEY.test(text);
}

/** Whether the last characters are the checksum of those before them; keys of former releases have none. */
export function hasChecksum(apiKey: string): boolean {
  return apiKey.endsWith(checksumOf(apiKey.slice(0, -CHECKSUM_CHARS)));
}

/** CRC-32 in base58, modulo what four characters hold: one text in eleven million that is made up has the right one. */
function checksumOf(text: string): string {
  let rest = Bun.hash.crc32(text);
  let checksum = "";
  for (let at = 0; at < CHECKSUM_CHARS; at += 1) {
    checksum += ALPHABET.charAt(rest % ALPHABET.length);
    rest = Math.floor(rest / ALPHABET.length);
  }
  return checksum;
}

/** What may be shown of a key, to tell keys apart: 140 bits of it stay secret. */
export function apiKeyPrefix(apiKey: string): string {
  return apiKey.slice(0, PREFIX_CHARS);
}

/**
 * What is stored of a key: its SHA-256 in hex. A fast hash is right for a secret that nobody can guess, and looking a
 * hash up leaks by its timing nothing that helps to find a key.
 */
export function apiKeyHash(apiKey: string): string {
  return createHash("sha256").update(apiKey).digest("hex");
}
