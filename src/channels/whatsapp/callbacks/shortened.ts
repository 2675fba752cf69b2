import type { Json } from "../../../domain/texts/json.ts";

const characters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Cuts a text to at most `charsMax` UTF-16 units, between characters as readers see them; null if the value is no text. */
export function shortened(value: Json | undefined, charsMax: number): string | null {
  if (typeof value !== "string") return null;
  if (value.length <= charsMax) return value.toWellFormed();
  // Segments only the end of the text, so a long text takes no longer.
  const from = Math.max(0, charsMax - CHARACTER_CHARS_MAX);
  const last = characters.segment(value.slice(from, charsMax + CHARACTER_CHARS_MAX)).containing(charsMax - from);
  const end = last === undefined || last.index === 0 ? charsMax : from + last.index;
  const text = value.slice(0, end);
  // Half of a pair ends it where no character was found.
  return (text.isWellFormed() ? text : text.replace(/[\ud800-\udbff]$/, "")).toWellFormed();
}

/** The longest emoji, a family or a flag, have about thirty. */
const CHARACTER_CHARS_MAX = 64;
