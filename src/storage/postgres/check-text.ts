import { type Invalid, invalid } from "../../domain/store-result.ts";

export interface TextRule {
  /** Name of the field, as the operator wrote it. */
  readonly field: string;
  readonly charsMax: number;
  /** Whether line breaks and tabs are allowed. */
  readonly multiline?: boolean;
}

const CONTROL = /\p{Cc}/u;
const CONTROL_BUT_LAYOUT = /[^\P{Cc}\t\n\r]/u;

/**
 * Checks that a text can be stored: it is not blank or too long, and contains no control character and no character
 * that PostgreSQL cannot store (NUL, half a surrogate pair). Returns null if so.
 */
export function checkText(text: string, { field, charsMax, multiline = false }: TextRule): Invalid | null {
  if (text.trim() === "") return invalid(`The field "${field}" must not be empty.`);
  if (text.length > charsMax) return invalid(`The field "${field}" must have at most ${charsMax} characters.`);
  if (!text.isWellFormed()) return invalid(`The field "${field}" must be valid Unicode.`);
  if ((multiline ? CONTROL_BUT_LAYOUT : CONTROL).test(text)) {
    return invalid(`The field "${field}" must not hold control characters.`);
  }
  return null;
}
