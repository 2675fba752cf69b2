/**
 * Makes a text fit for a header: one line, no control characters, well-formed Unicode, at most `charsMax` UTF-16 units.
 * The line and paragraph separators count as line breaks.
 */
export function headerText(text: string, charsMax: number): string {
  const line = text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  // Cutting can halve a surrogate pair, so well-formedness comes last.
  return line.slice(0, charsMax).toWellFormed();
}
