import { ApiError } from "../domain/errors.ts";

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
 * @throws ApiError 400 if the text is empty, too long, or contains a control character or something PostgreSQL cannot store
 * (NUL, half a surrogate pair).
 */
export function checkText(text: string, { field, charsMax, multiline = false }: TextRule): void {
  if (text.trim() === "") throw new ApiError(400, `The field "${field}" must not be empty.`);
  if (text.length > charsMax) throw new ApiError(400, `The field "${field}" must have at most ${charsMax} characters.`);
  if (!text.isWellFormed()) throw new ApiError(400, `The field "${field}" must be valid Unicode.`);
  if ((multiline ? CONTROL_BUT_LAYOUT : CONTROL).test(text)) {
    throw new ApiError(400, `The field "${field}" must not hold control characters.`);
  }
}
