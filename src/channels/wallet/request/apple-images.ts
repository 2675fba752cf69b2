import { isJsonObject, type Json } from "../../../domain/texts/json.ts";
import { countedImageHash, imageHash } from "../image-hash.ts";
import { walletLimits } from "../limits.ts";
import { BASE64 } from "./apple-values.ts";
import { type Checked, Fault, fault, snakeCase } from "./readers.ts";

/** Member name → file name in the bundle. */
export const IMAGE_FILES: ReadonlyMap<string, string> = new Map(
  [
    "icon",
    "logo",
    "strip",
    "thumbnail",
    "background",
    "footer",
    "artwork",
    "primaryLogo",
    "secondaryLogo",
    "venueMap",
    "personalizationLogo",
  ].flatMap((image) => [
    [`${image}Base64`, `${image}.png`],
    [`${image}2xBase64`, `${image}@2x.png`],
    [`${image}3xBase64`, `${image}@3x.png`],
  ]),
);

/** File name → the image's id (`imageHash`). */
export type ImageFiles = Readonly<Record<string, string>>;

export interface PassImages {
  readonly files: ImageFiles;
  /** Bytes of the new images, by id. */
  readonly bytes: ReadonlyMap<string, Uint8Array>;
}

const ICONS = ["icon.png", "icon@2x.png", "icon@3x.png"];

/**
 * The pass's previous images with the members' changes applied. A PNG replaces an image, null removes it, an empty
 * string leaves it unchanged. A pass without an icon gets the placeholder, and one without the smallest icon gets its
 * next larger one, since a device requires `icon.png`. The sizes of the previous images are unknown here;
 * `imagesProblem` adds them up.
 */
export function readImages(members: ReadonlyMap<string, Json>, before: ImageFiles): Checked<PassImages> {
  const bytes = new Map<string, Uint8Array>();
  const files = new Map(Object.entries(withoutStandIns(before)));
  const changed = changeFiles({ files, bytes }, members, { folder: "", field: "pass_data" });
  if (changed !== null) return changed;
  const languages = members.get("localizations");
  if (languages === null) for (const file of files.keys()) if (file.includes("/")) files.delete(file);
  for (const [language, localized] of Object.entries(isJsonObject(languages) ? languages : {})) {
    const folder = `${language}.lproj/`;
    if (!isJsonObject(localized)) {
      for (const file of files.keys()) if (file.startsWith(folder)) files.delete(file);
      continue;
    }
    const place = { folder, field: `pass_data.localizations.${language}` };
    const problem = changeFiles({ files, bytes }, new Map(Object.entries(localized)), place);
    if (problem !== null) return problem;
  }
  const icons = ICONS.filter((file) => files.has(file));
  if (icons.length === 0) {
    for (const [file, png] of PLACEHOLDER_ICON) files.set(file, put(bytes, png, imageHash));
  }
  const smallest = files.get(icons[0] ?? "");
  if (smallest !== undefined) files.set("icon.png", smallest);
  const problem = sizeProblem(Array.from(files.values(), (hash) => bytes.get(hash)?.byteLength ?? 0));
  if (problem !== null) return problem;
  return { files: Object.fromEntries(files), bytes };
}

interface ReadFiles {
  readonly files: Map<string, string>;
  readonly bytes: Map<string, Uint8Array>;
}

/** Does to the files in a folder of the bundle what the members say. */
function changeFiles(
  { files, bytes }: ReadFiles,
  members: ReadonlyMap<string, Json>,
  { folder, field }: { readonly folder: string; readonly field: string },
): Fault | null {
  for (const [member, name] of IMAGE_FILES) {
    const value = members.get(member);
    if (value === undefined || value === "") continue;
    const image = value === null ? null : readPng(value, `${field}.${snakeCase(member)}`, getPixelsMax(name));
    if (image instanceof Fault) return image;
    const file = `${folder}${name}`;
    if (image === null) files.delete(file);
    else files.set(file, put(bytes, image, countedImageHash));
  }
  return null;
}

/** Returns a fault if a pass's images are too large together. `sizes`: bytes of each file. */
export function sizeProblem(sizes: readonly number[]): Fault | null {
  if (addUp(sizes) <= walletLimits.passImagesBytesMax) return null;
  return fault("pass_data", `must not have images of more than ${walletLimits.passImagesBytesMax} bytes together`);
}

export function addUp(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0);
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

function put(bytes: Map<string, Uint8Array>, png: Uint8Array, hashImage: typeof imageHash): string {
  const hash = hashImage(png);
  bytes.set(hash, png);
  return hash;
}

function getPixelsMax(file: string): number {
  return ICONS.includes(file) ? walletLimits.passIconPixelsMax : walletLimits.passImagePixelsMax;
}

const DATA_URL = /^data:image\/png;base64,/i;
/** Empty: it says nothing. */
export const PNG_PATTERN = `^(?:(?:${DATA_URL.source.slice(1)})?${BASE64.source.slice(1, -1)})?$`;
const SIGNATURE = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const END = Buffer.from("0000000049454e44ae426082", "hex");

/**
 * The bytes of a PNG from strict base64 (RFC 4648, 4) or a base64 data URL. Checks its signature, header and end (W3C
 * PNG, 5) without decoding pixels.
 */
function readPng(value: Json, field: string, pixelsMax: number): Checked<Uint8Array> {
  if (typeof value !== "string") return fault(field, "must be a PNG in base64");
  const text = value.replace(DATA_URL, "");
  // Precedes decoding, so that an oversized text costs no time.
  if (text.length > Math.ceil(walletLimits.passImageBytesMax / 3) * 4) {
    return fault(field, `must not be larger than ${walletLimits.passImageBytesMax} bytes`);
  }
  if (text.length % 4 !== 0 || !BASE64.test(text)) return fault(field, "is not valid base64");
  const bytes = Buffer.from(text, "base64");
  if (!isPng(bytes)) return fault(field, "is not a PNG image");
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  if (width < 1 || height < 1 || width > pixelsMax || height > pixelsMax) {
    return fault(field, `must be 1 to ${pixelsMax} pixels wide and high, not ${width} by ${height}`);
  }
  return new Uint8Array(bytes);
}

/** Header, at least one data chunk, end. */
function isPng(bytes: Buffer): boolean {
  return (
    bytes.length > SIGNATURE.length + 17 + END.length &&
    bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE) &&
    bytes.subarray(-END.length).equals(END)
  );
}

/**
 * The icon of passes that bring none (a card on the base background), by file name. Devices open no pass without an
 * icon.
 */
const PLACEHOLDER_ICON: ReadonlyMap<string, Uint8Array> = new Map([
  [
    "icon.png",
    decodeBase64(
      "iVBORw0KGgoAAAANSUhEUgAAAB0AAAAdAQMAAABsXfVMAAAABlBMVEULHzr///+yOHeIAAAAGklEQVR42mNgIBIw//+HnWD4/wOZwK2OOAAAVpEZ5kmz" +
        "EUcAAAAASUVORK5CYII=",
    ),
  ],
  [
    "icon@2x.png",
    decodeBase64(
      "iVBORw0KGgoAAAANSUhEUgAAADoAAAA6AQMAAADbddhrAAAABlBMVEULHzr///+yOHeIAAAAPUlEQVR42mNgGGyA////+X/QGf8xGMSrYf7/f/4HEIPx////" +
        "D8B2/P///wCUMR+DAZGCK4Zrp5Z74IzBBQDY42HhRFfqRQAAAABJRU5ErkJggg==",
    ),
  ],
  [
    "icon@3x.png",
    decodeBase64(
      "iVBORw0KGgoAAAANSUhEUgAAAFcAAABXAQMAAABLBksvAAAABlBMVEULHzr///+yOHeIAAAARklEQVR42mNgGAUEgP3////P//9BkP2fCDYtzWEHsw+A2cxg" +
        "9Q1gNiOYDfUMiPkPwT5PBBumHtkcZPOR7R3M4YPMHgV4AACAAuLjm03gkwAAAABJRU5ErkJggg==",
    ),
  ],
]);

function decodeBase64(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

const PLACEHOLDER_HASHES = new Set(Array.from(PLACEHOLDER_ICON.values(), imageHash));
