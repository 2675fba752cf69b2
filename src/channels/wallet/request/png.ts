import type { Json } from "../../../domain/json.ts";
import { walletLimits } from "../limits.ts";
import { fault } from "./fault.ts";

const DATA_URL = /^data:image\/png;base64,/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const SIGNATURE = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const END = Buffer.from("0000000049454e44ae426082", "hex");

/**
 * The bytes of a PNG from strict base64 (RFC 4648, 4) or a base64 data URL. Checks its signature, header and end (W3C
 * PNG, 5) without decoding pixels. Throws an `ApiError` 400 that begins with `field`.
 */
export function readPng(value: Json, field: string): Uint8Array {
  if (typeof value !== "string") throw fault(field, "must be a PNG in base64");
  const text = value.replace(DATA_URL, "");
  // Before anything is decoded: what is too long costs nothing.
  if (text.length > Math.ceil(walletLimits.passImageBytesMax / 3) * 4) {
    throw fault(field, `must not be larger than ${walletLimits.passImageBytesMax} bytes`);
  }
  if (text.length % 4 !== 0 || !BASE64.test(text)) throw fault(field, "is not valid base64");
  const bytes = Buffer.from(text, "base64");
  if (!isPng(bytes)) throw fault(field, "is not a PNG image");
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  if (width < 1 || height < 1 || width > walletLimits.passImagePixelsMax || height > walletLimits.passImagePixelsMax) {
    throw fault(
      field,
      `must be 1 to ${walletLimits.passImagePixelsMax} pixels wide and high, not ${width} by ${height}`,
    );
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
