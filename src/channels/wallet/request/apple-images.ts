import type { Json } from "../../../domain/json.ts";
import { snakeCase } from "./member-names.ts";
import { PLACEHOLDER_ICON } from "./placeholder-icon.ts";
import { readPng } from "./png.ts";

/** Member name → file name in the bundle. */
export const IMAGE_FILES: ReadonlyMap<string, string> = new Map(
  ["icon", "logo", "strip", "thumbnail", "background", "footer"].flatMap((image) => [
    [`${image}Base64`, `${image}.png`],
    [`${image}2xBase64`, `${image}@2x.png`],
    [`${image}3xBase64`, `${image}@3x.png`],
  ]),
);

/** File name → SHA-256 of its bytes in hex. */
export type ImageFiles = Readonly<Record<string, string>>;

export interface PassImages {
  readonly files: ImageFiles;
  /** Bytes of the new images, by SHA-256. */
  readonly bytes: ReadonlyMap<string, Uint8Array>;
}

const ICONS = ["icon.png", "icon@2x.png", "icon@3x.png"];

/**
 * The pass's previous images with the members' changes applied. A PNG replaces an image, null removes it, an empty
 * string changes nothing. A pass without an icon gets the placeholder, and one without the smallest icon gets its next
 * larger one, since a device requires `icon.png`. Throws an `ApiError` 400 that names the field.
 */
export function readImages(members: ReadonlyMap<string, Json>, before: ImageFiles): PassImages {
  const bytes = new Map<string, Uint8Array>();
  const files = new Map(Object.entries(withoutStandIns(before)));
  for (const [member, file] of IMAGE_FILES) {
    const value = members.get(member);
    if (value === undefined || value === "") continue;
    if (value === null) files.delete(file);
    else files.set(file, put(bytes, readPng(value, `pass_data.${snakeCase(member)}`)));
  }
  const icons = ICONS.filter((file) => files.has(file));
  if (icons.length === 0) for (const [file, png] of PLACEHOLDER_ICON) files.set(file, put(bytes, png));
  const smallest = files.get(icons[0] ?? "");
  if (smallest !== undefined) files.set("icon.png", smallest);
  return { files: Object.fromEntries(files), bytes };
}

/** Drops the placeholder, and a larger icon standing in for the smallest: sent images replace them. */
function withoutStandIns(files: ImageFiles): ImageFiles {
  const { "icon.png": icon, "icon@2x.png": icon2x, "icon@3x.png": icon3x } = files;
  const own = Object.entries(files).filter(([file, hash]) => {
    if (PLACEHOLDER_HASHES.has(hash)) return false;
    return file !== "icon.png" || (icon !== icon2x && icon !== icon3x);
  });
  return Object.fromEntries(own);
}

function put(bytes: Map<string, Uint8Array>, png: Uint8Array): string {
  const hash = sha256(png);
  bytes.set(hash, png);
  return hash;
}

function sha256(png: Uint8Array): string {
  // oxlint-disable-next-line eslint/no-restricted-globals -- says the same of the same bytes anywhere
  return new Bun.CryptoHasher("sha256").update(png).digest("hex");
}

const PLACEHOLDER_HASHES = new Set(Array.from(PLACEHOLDER_ICON.values(), sha256));
