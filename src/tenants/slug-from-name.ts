import type { Random } from "../domain/random.ts";
import { randomText } from "./api-key.ts";

const BASE_CHARS_MAX = 56;
const SUFFIX_CHARS = 6;

/** Derives a tenant's id from its name; with `random`, one that is still free. */
export function slugFromName(name: string, random: Random | null): string {
  const base = name
    // An accented letter becomes the letter and its accents; the accents go with everything else that a slug cannot hold.
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, BASE_CHARS_MAX)
    .replace(/-$/, "");
  const slug = base === "" ? "tenant" : base;
  return random === null ? slug : `${slug}-${randomText(random, SUFFIX_CHARS).toLowerCase()}`;
}
