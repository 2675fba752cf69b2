/**
 * Splits a text into words, folded so that spellings which read alike become equal: without case, accents and invisible
 * characters, and with compatibility letters (full width, mathematical) as plain ones. Every Chinese, Japanese or Thai
 * character is a word of its own, because those scripts do not separate words. Takes time proportional to the length.
 */
export function foldedWords(text: string): string[] {
  return folded(text).match(WORD) ?? [];
}

const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}]+/gu;

/** Reduces a text to base characters in lower case. */
export function folded(text: string): string {
  return text
    .replace(INVISIBLE, "")
    .replace(WHOLE_PHRASES, " ")
    .replace(MARKS_TOO_MANY, "$1")
    .normalize("NFKD")
    .replace(MARKS, "")
    .toLowerCase()
    .replace(UNDIVIDED, (letter) => PARTS[letter] ?? letter);
}

/** Letters that Unicode does not decompose, although people read them so. */
const PARTS: Readonly<Record<string, string>> = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ł: "l", ı: "i" };
const UNDIVIDED = /[ßæœøđłı]/g;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu;
/** Single characters that stand for whole Arabic phrases; one of them expands to eighteen. */
const WHOLE_PHRASES = /[\ufdf0-\ufdfd]/g;
const MARKS = /\p{M}+/gu;
/** Normalisation sorts a letter's marks by insertion: 160,000 of them on one letter took half a minute. */
const MARKS_TOO_MANY = /(\p{M}{4})\p{M}+/gu;
