import { zipSync } from "fflate";
import type { AppleContent } from "../../../domain/channels/wallet.ts";
import { stringsFile } from "../request/apple-languages.ts";
import { OF_FORM } from "../request/apple-personalization.ts";
import { cmsSignature } from "./cms-signature.ts";
import type { PassSigner } from "./pass-signers.ts";

/** The contents of a bundle. */
export interface PassParts {
  readonly content: AppleContent;
  readonly serial: string;
  readonly authenticationToken: string;
  /** The address from which devices fetch updates. */
  readonly webServiceUrl: string;
  /** By SHA-256 in hex, which the content refers to. */
  readonly images: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

/**
 * Creates the `.pkpass` file: a zip of pass.json, the images, manifest.json (SHA-1 of each file) and the detached
 * signature over the manifest. Null if an image is missing.
 */
export async function signedBundle(
  parts: PassParts,
  signer: PassSigner,
  nowMs: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const files: Record<string, Uint8Array<ArrayBuffer>> = { "pass.json": jsonBytes(passJson(parts, signer)) };
  for (const [language, texts] of Object.entries(parts.content.strings ?? {})) {
    files[`${language}.lproj/pass.strings`] = new TextEncoder().encode(stringsFile(texts));
  }
  const { personalization } = parts.content;
  if (personalization !== undefined) files["personalization.json"] = jsonBytes(personalization);
  for (const [name, hash] of Object.entries(parts.content.images)) {
    if (personalization === undefined && OF_FORM.test(name)) continue;
    const image = parts.images.get(hash);
    if (image === undefined) return null;
    files[name] = image;
  }
  const hashes = await Promise.all(
    Object.entries(files).map(async ([name, bytes]) => [name, await sha1(bytes)] as const),
  );
  const manifest = jsonBytes(Object.fromEntries(hashes));
  const signature = await cmsSignature(signer.cms, manifest, nowMs);
  // Not compressed: PNGs already are, and the rest is small.
  return zipSync({ ...files, "manifest.json": manifest, signature }, { level: 0, mtime: zipTime(nowMs) });
}

/** Creates the `.pkpasses` file: a zip of `.pkpass` files (Apple, Distributing and updating a pass). */
export function passesFile(files: Readonly<Record<string, Uint8Array<ArrayBuffer>>>, ms: number) {
  return zipSync({ ...files }, { level: 0, mtime: zipTime(ms) });
}

/** Builds pass.json. The members that the service itself sets come last, so a request cannot replace them. */
function passJson({ content, serial, authenticationToken, webServiceUrl }: PassParts, signer: PassSigner) {
  // Devices before iOS 27 do not support the style, and open no pass without a supported one.
  const forOlder = content.style === "posterGeneric" ? { generic: content.pass["posterGeneric"] } : {};
  return {
    ...forOlder,
    ...content.pass,
    formatVersion: 1,
    passTypeIdentifier: signer.passTypeId,
    teamIdentifier: signer.teamId,
    serialNumber: serial,
    webServiceURL: webServiceUrl,
    authenticationToken,
  };
}

function jsonBytes(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Hashes off this thread: images can be large. */
async function sha1(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Buffer.from(await crypto.subtle.digest("SHA-1", bytes)).toString("hex");
}

/** Clamps a time to the range of zip timestamps, 1980 to 2107. */
function zipTime(nowMs: number): Date {
  return new Date(Math.min(Math.max(nowMs, Date.UTC(1980, 0, 2)), Date.UTC(2098, 0)));
}
