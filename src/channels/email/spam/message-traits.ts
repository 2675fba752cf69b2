import { foldedWords } from "./folded-words.ts";
import { type HtmlReading, readHtml } from "./html-reader.ts";
import { type LinkTarget, linkTarget } from "./link-target.ts";
import { PHRASES, type PhraseFamily } from "./phrase-families.ts";
import { PhraseFinder } from "./phrase-finder.ts";
import type { ScoredMessage } from "./spam.ts";

/** The parsed message, shared by all rules. */
export interface MessageTraits {
  readonly subject: string;
  readonly from: string;
  readonly html: HtmlReading;
  /** The raw HTML, for patterns that may appear anywhere; cut like the reading. */
  readonly source: string;
  /** The text that a reader sees: of the HTML, or of the text alternative if the HTML has none. */
  readonly text: string;
  /** Words of `text`. */
  readonly wordCount: number;
  /** Letters of `text` that have a case, and the number of capitals among them. */
  readonly letters: CaseCount;
  readonly subjectLetters: CaseCount;
  /** Links in the HTML and addresses in the text. */
  readonly links: readonly LinkTarget[];
  /** Number of distinct phrases in the visible text, the hidden text and the subject. */
  readonly phrases: ReadonlyMap<PhraseFamily, number>;
  readonly subjectPhrases: ReadonlyMap<PhraseFamily, number>;
}

export interface CaseCount {
  readonly cased: number;
  readonly capitals: number;
}

const SOURCE_CHARS_MAX = 1024 * 1024;
const TEXT_CHARS_MAX = 200_000;
const TEXT_LINKS_MAX = 100;

/** Takes time proportional to the length of the message, up to bounds; the excess is ignored. */
export function messageTraits({ subject, html, text: alternative, from }: Omit<ScoredMessage, "raw">): MessageTraits {
  const reading = readHtml(html);
  const plain = alternative?.slice(0, TEXT_CHARS_MAX) ?? "";
  const text = /\S/.test(reading.text) ? reading.text : plain;
  const subjectWords = foldedWords(subject);
  const textWords = foldedWords(text);
  const unseenWords = foldedWords(`${reading.hiddenText} ${reading.camouflagedText}`);
  const plainWords = text === plain ? [] : foldedWords(plain);
  return {
    subject,
    from,
    html: reading,
    source: html.slice(0, SOURCE_CHARS_MAX),
    text,
    wordCount: textWords.length,
    letters: caseCount(text),
    subjectLetters: caseCount(subject),
    links: [...reading.links, ...addressesIn(text)].map(linkTarget),
    phrases: FINDER.find([subjectWords, textWords, unseenWords, plainWords]),
    subjectPhrases: FINDER.find([subjectWords]),
  };
}

const FINDER = new PhraseFinder(PHRASES);

/** Finds addresses in a text, which mail programs turn into links, too. */
function addressesIn(text: string): { href: string; label: string }[] {
  const found: { href: string; label: string }[] = [];
  for (const [href] of text.matchAll(/\bhttps?:\/\/[^\s<>"']{1,500}/gi)) {
    if (found.push({ href, label: "" }) === TEXT_LINKS_MAX) break;
  }
  return found;
}

function caseCount(text: string): CaseCount {
  const capitals = text.match(/\p{Lu}/gu)?.length ?? 0;
  return { capitals, cased: capitals + (text.match(/\p{Ll}/gu)?.length ?? 0) };
}
