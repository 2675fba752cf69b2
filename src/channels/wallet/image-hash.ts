/**
 * Prefix of the hash of an image whose passes are counted (`passImageUses`): the image is removed with the last of
 * them. An image without it is never removed, because a release that does not count uses, and still runs while this one
 * starts, may need it. Such a release never creates a hash with the prefix, so it never shares a counted image.
 */
const COUNTED = "u";

/** Returns an image's id: the SHA-256 of its bytes in hex. */
export function imageHash(png: Uint8Array): string {
  // oxlint-disable-next-line eslint/no-restricted-globals -- says the same of the same bytes anywhere
  return new Bun.CryptoHasher("sha256").update(png).digest("hex");
}

/** Returns the id of an image that is removed with its last pass. */
export function countedImageHash(png: Uint8Array): string {
  return COUNTED + imageHash(png);
}

export function isCounted(hash: string): boolean {
  return hash.startsWith(COUNTED);
}
