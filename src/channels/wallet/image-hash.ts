/**
 * Before the hash of an image whose passes are counted (`passImageUses`): the image goes with the last of them. An image without it is
 * never removed: a release that counts no uses, and works on while this one starts, would miss it. Such a release makes no hash with
 * the letter, so it never shares a counted image.
 */
const COUNTED = "u";

/** What an image is known by: the SHA-256 of its bytes in hex. */
export function imageHash(png: Uint8Array): string {
  // oxlint-disable-next-line eslint/no-restricted-globals -- says the same of the same bytes anywhere
  return new Bun.CryptoHasher("sha256").update(png).digest("hex");
}

/** What an image is known by that goes with its last pass. */
export function countedImageHash(png: Uint8Array): string {
  return COUNTED + imageHash(png);
}

export function isCounted(hash: string): boolean {
  return hash.startsWith(COUNTED);
}
