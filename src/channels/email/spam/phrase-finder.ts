import { foldedWords } from "./folded-words.ts";

/**
 * Finds phrases of several families in a text, in one pass over its words. Immutable.
 *
 * 1. A phrase matches whole words, compared as `foldedWords` returns them; a `*` at its end matches any ending of its
 *    last word.
 * 2. The result counts the distinct phrases found per family, so repetitions do not count.
 */
export class PhraseFinder<Family extends string> {
  /** Keyed by the first word of the phrase, or, if the phrase is a single prefix, by its first letters. */
  private readonly byFirstWord = new Map<string, Phrase<Family>[]>();
  private readonly byPrefix = new Map<string, Phrase<Family>[]>();

  constructor(families: Readonly<Record<Family, readonly string[]>>) {
    // Guaranteed by the type of the argument, whose keys these are.
    for (const family of Object.keys(families) as Family[]) {
      for (const phrase of families[family]) this.add(family, phrase);
    }
  }

  /** Counts the distinct phrases of each family that occur in any of the texts; families without any are omitted. */
  find(texts: readonly (readonly string[])[]): ReadonlyMap<Family, number> {
    const found = new Set<Phrase<Family>>();
    for (const words of texts) this.findIn(words, found);
    const counts = new Map<Family, number>();
    for (const { family } of found) counts.set(family, (counts.get(family) ?? 0) + 1);
    return counts;
  }

  private add(family: Family, text: string): void {
    const words = foldedWords(text);
    const [first = ""] = words;
    const open = text.endsWith("*");
    const alone = open && words.length === 1;
    const index = alone ? this.byPrefix : this.byFirstWord;
    const key = alone ? first.slice(0, PREFIX_CHARS) : first;
    const phrases = index.get(key) ?? [];
    phrases.push({ family, words, open });
    index.set(key, phrases);
  }

  private findIn(words: readonly string[], found: Set<Phrase<Family>>): void {
    for (const [at, word] of words.entries()) {
      this.match(this.byFirstWord.get(word), words, at, found);
      if (word.length >= PREFIX_CHARS) this.match(this.byPrefix.get(word.slice(0, PREFIX_CHARS)), words, at, found);
    }
  }

  private match(
    phrases: readonly Phrase<Family>[] | undefined,
    words: readonly string[],
    at: number,
    found: Set<Phrase<Family>>,
  ): void {
    if (phrases === undefined) return;
    for (const phrase of phrases) if (standsAt(phrase, words, at)) found.add(phrase);
  }
}

interface Phrase<Family> {
  readonly family: Family;
  readonly words: readonly string[];
  /** The last word may have any ending. */
  readonly open: boolean;
}

/** Minimum letters of a phrase that is a single open word. */
const PREFIX_CHARS = 4;

function standsAt({ words, open }: Phrase<string>, text: readonly string[], at: number): boolean {
  const last = words.length - 1;
  for (let index = 0; index <= last; index += 1) {
    const wanted = words[index] ?? "";
    const word = text[at + index];
    if (word === undefined) return false;
    if (word !== wanted && !(open && index === last && word.startsWith(wanted))) return false;
  }
  return true;
}
