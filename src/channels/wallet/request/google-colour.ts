import { fault } from "./fault.ts";
import type { Reader } from "./readers.ts";

/** The platform's accent, used if no colour is given: by a generic pass's object and an event ticket's class. */
export const GOOGLE_ACCENT = "#1A56DB";

/** A colour in the form that Google's wallet accepts (`hexBackgroundColor`). */
export const readGoogleColour: Reader = (value, field) => {
  if (typeof value === "string" && /^#[0-9a-f]{6}$/i.test(value)) return value;
  throw fault(field, "must be a colour such as #0B1F3A");
};
