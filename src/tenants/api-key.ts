import { createHash } from "node:crypto";
import type { Random } from "../domain/random.ts";

/** Base58: letters and digits except those that look alike (0 O I l). */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const SECRET_CHARS = 28;
const CHECKSUM_CHARS = 4;
const API_KEY = /^wb_[1-9A-HJ-NP-Za-km-z]{32}$/;
const PREFIX_CHARS = "wb_".length + 4;

/** Creates an API key: `wb_`, 28 random characters (164 bits), and a four-character checksum. */
export function newApiKey(random: Random): string {
  const secret = `wb_${randomText(random, SECRET_CHARS)}`;
  return secret + computeChecksum(secret);
}

/** Creates a random id without meaning, for example the id of a key. */
export function randomText(random: Random, chars: number): string {
  // Bytes from here on are discarded: they would favour the first characters of the alphabet.
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

/** Whether the text has the form of one of our API keys; other texts need no lookup. */
export function isApiKey(text: string): boolean {
  return API_KEY.test(text);
}

/** Whether the last characters are the checksum of those before; keys of former releases have none. */
export function hasChecksum(apiKey: string): boolean {
  return apiKey.endsWith(computeChecksum(apiKey.slice(0, -CHECKSUM_CHARS)));
}

/**
 * Returns the CRC-32 in base58, modulo the range of four characters: one invented text in eleven million has the right
 * checksum.
 */
function computeChecksum(text: string): string {
  let rest = Bun.hash.crc32(text);
  let checksum = "";
  for (let at = 0; at < CHECKSUM_CHARS; at += 1) {
    checksum += ALPHABET.charAt(rest % ALPHABET.length);
    rest = Math.floor(rest / ALPHABET.length);
  }
  return checksum;
}

/** Returns the displayable part of a key, which tells keys apart; 140 bits stay secret. */
export function apiKeyPrefix(apiKey: string): string {
  return apiKey.slice(0, PREFIX_CHARS);
}

/**
 * Returns the stored form of a key: its SHA-256 in hex. A fast hash suits an unguessable secret, and the timing of a hash
 * lookup does not help to find a key.
 */
export function apiKeyHash(apiKey: string): string {
  return createHash("sha256").update(apiKey).digest("hex");
}
