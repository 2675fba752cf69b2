import { folded } from "./folded-words.ts";

/** Words that people write with digits or gaps only to evade a filter. */
const DISGUISED = new Set(
  (
    "account bank bitcoin cash casino cheap cialis click credit dollars earn free income lottery money paypal password " +
    "penis pharmacy pills porn prize profit rolex sex verify viagra winner xanax"
  ).split(" "),
);
const WORD_CHARS_MIN = 3;
const WORD_CHARS_MAX = 24;
const WORD = /[\p{L}\d@$!|€]+/gu;
const SIGNS: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
  "!": "i",
  "|": "l",
  "€": "e",
};

/** Counts words like `v1agra`, `fr33` and `ca$h`. */
export function obfuscatedWords(text: string): number {
  let count = 0;
  for (const [found] of text.matchAll(WORD)) {
    const word = withoutMarksAtEnd(found);
    if (word.length < WORD_CHARS_MIN || word.length > WORD_CHARS_MAX) continue;
    if (!/[\d@$!|€]/.test(word) || !/\p{L}/u.test(word)) continue;
    const base = folded(word);
    const plain = base.replace(/[013457@$!|€]/g, (sign) => SIGNS[sign] ?? sign);
    // A one stands for an i as well as for an l.
    const other = base.replace(/[013457@$!|€]/g, (sign) => (sign === "1" ? "l" : (SIGNS[sign] ?? sign)));
    if (DISGUISED.has(plain) || DISGUISED.has(other)) count += 1;
  }
  return count;
}

/** Removes marks at a word's end. A regular expression would be quadratic in a long row of marks. */
function withoutMarksAtEnd(word: string): string {
  let end = word.length;
  while (end > 0 && "!|$".includes(word.charAt(end - 1))) end -= 1;
  return word.slice(0, end);
}

/** Letters separated by one character each. */
const GAPPY = /(?<![\p{L}\p{N}])\p{L}(?:[ .*_~-]\p{L}){3,20}(?![\p{L}\p{N}])/gu;

/** Counts words like `v.i.a.g.r.a`, and all words in spaced capitals, like `F R E E`. */
export function gappyWords(text: string): number {
  let count = 0;
  for (const [found] of text.matchAll(GAPPY)) {
    const letters = found.replace(/[ .*_~-]/g, "");
    if (DISGUISED.has(folded(letters)) || /^\p{Lu}(?: \p{Lu})+$/u.test(found)) count += 1;
  }
  return count;
}

/** Counts Latin words that contain Cyrillic or Greek look-alikes: `Pаypаl`. */
export function mixedWords(text: string): number {
  let count = 0;
  for (const [word] of text.matchAll(/\p{L}{3,}/gu)) {
    if (/\p{Script=Latin}/u.test(word) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(word)) count += 1;
  }
  return count;
}

/** Counts mathematical and full-width letters used in place of plain Latin ones. */
export function styledLetters(text: string): number {
  return text.match(/[\u{1d400}-\u{1d7ff}\uff21-\uff3a\uff41-\uff5a\u24b6-\u24e9\u{1f130}-\u{1f169}]/gu)?.length ?? 0;
}

/** Counts invisible characters between two letters of scripts that need none. */
export function splitWords(text: string): number {
  const found = text.match(
    /[\p{Script=Latin}\p{Script=Cyrillic}][\u200b-\u200d\u2060\ufeff]+(?=[\p{Script=Latin}\p{Script=Cyrillic}])/gu,
  );
  return found?.length ?? 0;
}
