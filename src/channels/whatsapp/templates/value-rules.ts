import { Type } from "@sinclair/typebox";
import {
  CONTROL,
  CONTROL_IN_LINES,
  NO_CONTROL_IN_LINES_PATTERN,
  NO_CONTROL_PATTERN,
} from "../../../domain/texts/control-characters.ts";
import { EXACT_CHARS_MAX, isExactNumber, type Json, toNumber } from "../../../domain/texts/json.ts";
import { NOT_BLANK } from "../../../http/schemas.ts";
import { chatLimits } from "../limits.ts";

/** A line of text, which `complaintAboutLine` checks. */
export function line(maxLength: number, description?: string) {
  return filled(maxLength, NO_CONTROL_PATTERN, description);
}

/** A text of several lines, which `complaintAboutLines` checks. */
export function lines(maxLength: number, description?: string) {
  return filled(maxLength, NO_CONTROL_IN_LINES_PATTERN, description);
}

function filled(maxLength: number, pattern: string, description: string | undefined) {
  const said = description === undefined ? null : { description };
  return Type.String({ minLength: 1, maxLength, pattern, ...NOT_BLANK, ...said });
}

/** A text that fills a place in a template, which `complaintAbout` checks. */
export function filling(maxLength: number, description?: string) {
  return filled(maxLength, FEW_BLANKS_PATTERN, description);
}

/** A text, number or boolean that fills a place in a template. */
export function fillingValue(maxLength: number, description?: string) {
  const said = description === undefined ? {} : { description };
  return Type.Union([filling(maxLength), Type.Number(), Type.Boolean()], said);
}

const BLANKS_IN_A_ROW = / {5}/;
/** No more than four blanks in a row, and no control characters. */
const FEW_BLANKS_PATTERN = `^ {0,4}(?:[^ ${CONTROL.source.slice(1)}+(?: {1,4}|$))*$`;
/** A value that fills a placeholder of a template. */
export const TemplateValue = fillingValue(chatLimits.chatParamCharsMax);

/**
 * Describes what is wrong with one value: the provider allows little in a text parameter. Completes "it …"; null if it
 * is valid.
 */
export function complaintAbout(value: unknown, charsMax: number): string | null {
  if (typeof value === "boolean") return null;
  const number = toNumber(value);
  if (number !== null) {
    // The digits would arrive, but the caller's own JSON may have rounded them already.
    const isSafe = Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number);
    if (!isSafe) return "is too large for a number: send it as a string";
    return isExactNumber(value) && value.rawJSON.length > EXACT_CHARS_MAX
      ? "has too many digits: send it as a string"
      : null;
  }
  if (typeof value !== "string") return "must be a string, a number or a boolean";
  if (value.trim() === "") return "must not be empty";
  if (isLonger(value, charsMax)) return `must not be longer than ${charsMax} characters`;
  if (!isPlainLine(value)) return "must not contain line breaks, tabs or other control characters";
  return BLANKS_IN_A_ROW.test(value) ? "must not contain more than four blanks in a row" : null;
}

/** Whether the text has more Unicode characters: an emoji is one. */
export function isLonger(text: string, charsMax: number): boolean {
  return text.length > 2 * charsMax || (text.length > charsMax && Array.from(text).length > charsMax);
}

export function isPlainLine(text: string): boolean {
  return !CONTROL.test(text) && text.isWellFormed();
}

/** Returns a sentence that says why a line of text is invalid; null if it is valid or absent. */
export function complaintAboutLine(value: Json | undefined, charsMax: number, member: string): string | null {
  if (value === undefined) return null;
  const isFine = typeof value === "string" && value.trim() !== "" && !isLonger(value, charsMax) && isPlainLine(value);
  return isFine ? null : `${member} must be a text of 1 to ${charsMax} characters without control characters`;
}

/** Returns a sentence that says why a text of several lines is invalid, or null. */
export function complaintAboutLines(value: Json, charsMax: number, member: string): string | null {
  if (typeof value !== "string") return `${member} must be a string`;
  if (value.trim() === "") return `${member} must not be empty`;
  if (isLonger(value, charsMax)) return `${member} must not be longer than ${charsMax} characters`;
  return CONTROL_IN_LINES.test(value) || !value.isWellFormed() ? `${member} must not contain control characters` : null;
}
