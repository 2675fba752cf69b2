import { gappyWords, mixedWords, obfuscatedWords, splitWords, styledLetters } from "./disguised-words.ts";
import type { MessageTraits } from "./message-traits.ts";
import type { SpamRule } from "./spam-rule.ts";

/**
 * Above the highest threshold that can be configured (1000), whatever the other rules add: these strings exist to be
 * recognised. https://spamassassin.apache.org/gtube/, and rspamd's two variants of it that ask for milder treatment.
 */
const TEST_STRING_SCORE = 1001;
const TEST_STRING = /[XYZ]JS\*C4JDBQADN1\.NSBN3\*2IDNEN\*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL\*C\.34X/;

/** Rules about the message's construction. */
export const MARKUP_RULES: readonly SpamRule[] = [
  {
    name: "GTUBE",
    score: TEST_STRING_SCORE,
    description: "The message has the test string for spam filters",
    matches: ({ subject, source, text }) => [subject, source, text].some((each) => TEST_STRING.test(each)),
  },
  {
    name: "BODY_CAPITALS",
    score: 1.5,
    description: "More than 60 % of the letters are capitals",
    matches: ({ letters: { cased, capitals } }) => cased >= 60 && capitals > 0.6 * cased,
  },
  {
    name: "BODY_SHOUTS",
    score: 1.2,
    description: "The message has rows of exclamation marks, or one for every few words",
    matches: ({ text, wordCount }) => shouts(text, wordCount),
  },
  {
    name: "HIDDEN_TEXT",
    score: 1.2,
    description: "The message has more text that is not displayed than a preview line needs",
    matches: ({ html }) => characters(html.hiddenText) > 250,
  },
  {
    name: "HIDDEN_MOST",
    score: 2.3,
    description: "The message has more text that is not displayed than text that is",
    matches: ({ html, text }) => {
      const hidden = characters(html.hiddenText);
      return hidden > 250 && hidden > characters(text);
    },
  },
  {
    name: "CAMOUFLAGED_TEXT",
    score: 2.5,
    description: "The message has text in the colour of its background, or of no size",
    matches: ({ html }) => characters(html.camouflagedText) > 160,
  },
  {
    name: "BROKEN_WORDS",
    score: 2,
    description: "Words are broken by comments, empty elements or invisible characters",
    matches: ({ html, text }) => html.brokenWords + splitWords(text) >= 3,
  },
  {
    name: "DISGUISED_WORDS",
    score: 2,
    description: "The message hides words behind digits, signs or gaps, like v1agra or F R E E",
    matches: ({ text }) => obfuscatedWords(text) + gappyWords(text) > 0,
  },
  {
    name: "MIXED_SCRIPTS",
    score: 2.5,
    description: "The message puts letters of other alphabets into words, where they look the same",
    matches: ({ text, subject }) => mixedWords(text) + mixedWords(subject) >= 2,
  },
  {
    name: "STYLED_LETTERS",
    score: 2,
    description: "The message writes with mathematical or full-width letters in place of plain ones",
    matches: ({ text, subject }) => styledLetters(text) + styledLetters(subject) >= 10,
  },
  {
    name: "REVERSED_TEXT",
    score: 1.5,
    description: "The message turns the direction of text with override characters",
    matches: ({ text, subject }) => /[\u202d\u202e]/.test(text) || /[\u202d\u202e]/.test(subject),
  },
  {
    name: "BIG_MONEY",
    score: 1.8,
    description: "The message speaks of a sum of a million or more",
    matches: ({ text }) => /(?:[$€£¥₽]|\b(?:usd|eur|gbp)) ?\d{1,3}(?:[.,' ]\d{3}){2}/i.test(text),
  },
  {
    name: "ENCODED_TEXT",
    score: 1.5,
    description: "The message shows a long run of encoded data",
    matches: ({ text }) => text.split(/\s+/).some(isEncoded),
  },
  {
    name: "PLACEHOLDER_LEFT",
    score: 1,
    description: "The message has a placeholder that was not filled in",
    matches: ({ text, subject }) => PLACEHOLDER.test(text) || PLACEHOLDER.test(subject),
  },
  {
    name: "IMAGE_ONLY",
    score: 2.5,
    description: "The message has images and hardly any text",
    matches: ({ html, wordCount }) => html.images > 0 && wordCount < 15,
  },
  {
    name: "IMAGES_MANY",
    score: 1,
    description: "The message has many images with little text",
    matches: ({ html, wordCount }) => html.images >= 8 && wordCount < 3 * html.images,
  },
  { name: "FORM", score: 0.8, description: "The message has a form", matches: ({ html }) => html.forms > 0 },
  {
    name: "PASSWORD_FIELD",
    score: 3,
    description: "The message asks for a password in the message",
    matches: ({ html }) => html.passwordFields > 0,
  },
  {
    name: "FRAME",
    score: 1,
    description: "The message loads another page or object into the message",
    matches: ({ html }) => html.frames > 0,
  },
  {
    name: "REFRESH",
    score: 2,
    description: "The message leads the reader to another page by itself",
    matches: ({ html }) => html.refreshes > 0,
  },
  {
    name: "SCRIPT_HANDLER",
    score: 1,
    description: "The message has attributes that would run a script",
    matches: ({ html }) => html.handlers > 0,
  },
  {
    name: "DATA_ATTACHMENT",
    score: 2.5,
    description: "The message carries a page, script or file inside of a link",
    matches: ({ html }) => html.dataUrls.length > 0,
  },
  {
    name: "UNBALANCED_HTML",
    score: 0.6,
    description: "The message leaves many elements unclosed, or closes what it did not open",
    matches: ({ html }) => html.unbalanced > 8,
  },
  {
    name: "TOO_LONG",
    score: 1,
    description: "The message is longer than a mail program would show",
    matches: ({ html }) => html.cut,
  },
];

/** Placeholders of this and other programs: `{{.x}}`, `${x}`, `%%x%%`, `*|X|*`, `[FIRST NAME]`. */
const PLACEHOLDER =
  /\{\{[^{}]{1,60}\}\}|\$\{[\w.]{1,40}\}|%%[\w ]{1,40}%%|\*\|[\w:]{1,40}\|\*|\[(?:first|last|full)[_ ]?name\]|<%=/i;

/** Counts letters and digits, not the fillers and spaces that pad preview lines. */
function characters(text: string): number {
  return text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
}

function shouts(text: MessageTraits["text"], wordCount: number): boolean {
  const marks = text.match(/[!！]/g)?.length ?? 0;
  const rows = text.match(/[!！]{2,}/g)?.length ?? 0;
  return rows >= 2 || (marks >= 4 && marks * 12 > wordCount);
}

const ENCODED_CHARS_MIN = 200;

function isEncoded(word: string): boolean {
  if (word.length < ENCODED_CHARS_MIN || !/^[A-Za-z0-9+/_=-]+$/.test(word)) return false;
  return /[a-z]/.test(word) && /[A-Z]/.test(word) && /\d/.test(word);
}
