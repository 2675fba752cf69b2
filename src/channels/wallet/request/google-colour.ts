import { fault } from "./fault.ts";
import type { Reader } from "./readers.ts";

/** The platform's accent, in what brings no colour: the object of a generic pass, the class of an event ticket. */
export const GOOGLE_ACCENT = "#1A56DB";

/** A colour as Google's wallet takes it (`hexBackgroundColor`). */
export const readGoogleColour: Reader = (value, field) => {
  if (typeof value === "string" && /^#[0-9a-f]{6}$/i.test(value)) return value;
  throw fault(field, "must be a colour such as #0B1F3A");
};
