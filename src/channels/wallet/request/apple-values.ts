import { isCalendarDay } from "../../../domain/calendar-day.ts";
import type { Json } from "../../../domain/texts/json.ts";
import { isP256Key } from "../p256-key.ts";
import { type Checked, Fault, fault, type Reader, readText } from "./readers.ts";

// The pattern of a text that may have line breaks and tabs, but no other control characters.
const BLANKS = "[^\\S\\v\\f]*";
const PART = "(\\d{1,2}|[01]\\d\\d|2[0-4]\\d|25[0-5])";
const RGB = `[rR][gG][bB]\\(${[PART, PART, PART].map((part) => `${BLANKS}${part}${BLANKS}`).join(",")}\\)`;
export const COLOUR = new RegExp(`^${BLANKS}(?:(#(?:[0-9A-Fa-f]{3}){1,2})|${RGB})${BLANKS}$`);

/** A colour as pass.json holds it, `rgb(11, 31, 58)`, from that form or `#0B1F3A`: older devices know no other form. */
export function readColour(value: Json, field: string): Checked<string> {
  const text = readText(value, field);
  if (text instanceof Fault) return text;
  const found = COLOUR.exec(text);
  if (found === null) return fault(field, "must be a colour such as rgb(11, 31, 58) or #0B1F3A");
  const [, hex, ...parts] = found;
  return `rgb(${(hex === undefined ? parts.map(Number) : hexParts(hex)).join(", ")})`;
}

function hexParts(text: string): readonly number[] {
  const digits = text.length === 4 ? text.slice(1).replace(/./g, "$&$&") : text.slice(1);
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

export const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d)(:[0-5]\d)?(?:[.,]\d{1,9})?([Zz]|[+-](?:0\d|1[0-4]):[0-5]\d)$/;

/** A date with time and zone (W3C NOTE-datetime), the form that Apple's devices read. Drops fractions of a second. */
export const readDate: Reader = (value, field) => {
  const text = readText(value, field);
  if (text instanceof Fault) return text;
  const [, date = "", hours = "", minutes = "", seconds = "", zone = ""] = DATE_TIME.exec(text) ?? [];
  if (!isCalendarDay(date)) {
    return fault(field, "must be a date with time and zone, such as 2026-12-31T23:59:00Z or 2026-12-31T23:59:00+01:00");
  }
  return `${date}T${hours}:${minutes}${seconds}${zone.toUpperCase()}`;
};

export const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The key that a reader's answers are encrypted for: base64 of an X.509 SubjectPublicKeyInfo, ECDH on P-256. */
export const readPublicKey: Reader = (value, field) => {
  const text = readText(value, field);
  if (text instanceof Fault) return text;
  if (BASE64.test(text) && isP256Key(Buffer.from(text, "base64"))) return text;
  return fault(
    field,
    "must be a public key for ECDH on P-256: its SubjectPublicKeyInfo in base64, without BEGIN and END",
  );
};

export const ENCODING = /^[A-Za-z0-9][A-Za-z0-9._:+-]{0,39}$/;
const LATIN_1 = /^iso-?8859-1$|^latin-?1$/i;
// The whole range of ISO 8859-1.
const IN_LATIN_1 = /^[\u0000-\u00ff]*$/;

/** A barcode message's encoding: the given one, or else the first universally supported one that can represent it. */
export function readEncoding(value: Json | undefined, message: string, field: string): Checked<string> {
  const isLatin = IN_LATIN_1.test(message);
  if (value === undefined || value === null || value === "") return isLatin ? "iso-8859-1" : "utf-8";
  if (typeof value !== "string" || !ENCODING.test(value)) {
    return fault(field, "must be the name of an encoding, such as iso-8859-1");
  }
  if (LATIN_1.test(value) && !isLatin) return fault(field, "must be one that the message can be written in: use utf-8");
  return value;
}

/** Texts that the linear formats of iOS 27 can encode; the others accept any text. */
const FITS: Readonly<Record<string, readonly [RegExp, string]>> = {
  PKBarcodeFormatCode39: [
    /^[0-9A-Z .$/+%-]+$/,
    "must have only digits, capital letters, spaces and . $ / + % - in Code 39",
  ],
  PKBarcodeFormatCodabar: [/^[A-D]?[0-9.$/+:-]+[A-D]?$/i, "must have only digits and . $ / + : - in Codabar"],
  PKBarcodeFormatEAN13: [/^\d{12,13}$/, "must have 12 or 13 digits in EAN-13"],
  PKBarcodeFormatI2of5: [/^\d+$/, "must have only digits in Interleaved 2 of 5"],
};

/** Why a barcode of the format cannot hold the message, so that no device would show it; null: it can. */
export function barcodeMisfit(format: string, message: string): string | null {
  const [pattern, why] = FITS[format] ?? [];
  if (pattern !== undefined && why !== undefined && !pattern.test(message)) return why;
  const isWhole = format === "PKBarcodeFormatEAN13" && message.length === 13;
  return isWhole && ean13Sum(message) % 10 !== 0 ? "must end with the check digit of EAN-13" : null;
}

function ean13Sum(digits: string): number {
  return Array.from(digits, Number).reduce((sum, digit, i) => sum + digit * (i % 2 === 0 ? 1 : 3), 0);
}
