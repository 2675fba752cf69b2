import { EngineError } from "../clickhouse/engine-error.ts";

export interface Token {
  readonly kind: "word" | "name" | "string" | "sign";
  /** A word or quoted name in lower case without quotes, or a string with its quotes, verbatim. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Tokenizes a statement as the engine's lexer does (ClickHouse, src/Parsers/Lexer.cpp), except for numbers, on which no
 * decision depends: they become words and punctuation. Throws `EngineError` wherever the two might differ: heredocs,
 * variables, non-ASCII quotes and spaces, nested comments, a backslash in a quoted name.
 */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  if (text.includes("\0")) throw unreadable("there is a NUL: write it as \\0, within quotes");
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const { groups } = TOKEN.exec(text) ?? {};
    if (groups === undefined) throw unreadable(`position ${at + 1} cannot be read`);
    const { comment, string, quote, word, sign } = groups;
    if (comment?.includes("/*", 2) === true) throw unreadable("a comment has another one in it");
    if (quote !== undefined) TOKEN.lastIndex = quoteEnd(text, at, quote);
    const end = TOKEN.lastIndex;
    if (word !== undefined) tokens.push({ kind: "word", text: word.toLowerCase(), start: at, end });
    else if (sign !== undefined) tokens.push({ kind: "sign", text: sign, start: at, end });
    else if (string !== undefined || quote === "'")
      tokens.push({ kind: "string", text: text.slice(at, end), start: at, end });
    else if (quote !== undefined) tokens.push({ kind: "name", text: unquoted(text.slice(at, end)), start: at, end });
    if (tokens.length > TOKENS_MAX)
      throw new EngineError(62, "SYNTAX_ERROR", `More than ${TOKENS_MAX} words and signs`);
  }
  return tokens;
}

/** Tokens are checked on the event loop's thread; this many take 40 ms. A list of 40,000 numbers fits. */
const TOKENS_MAX = 80_000;

export const isWord = (token: Token | undefined, word: string) => token?.kind === "word" && token.text === word;
export const isSign = (token: Token | undefined, sign: string) => token?.kind === "sign" && token.text === sign;
export const isName = (token: Token | undefined) => token?.kind === "word" || token?.kind === "name";

/**
 * The only string prefixes are `x'…'` and `b'…'` with their own digits: the engine ends those at the next quote,
 * whatever precedes it, so in all other cases a letter that touches a quote is refused.
 */
const TOKEN = new RegExp(
  [
    "(?<space>[ \\t\\n\\r\\f\\v]+|--[^\\n]*|#[ !][^\\n]*)",
    "(?<comment>/\\*[^]*?\\*/)",
    "(?<string>[xX]'[0-9a-fA-F]*'|[bB]'[01]*')",
    "(?<quote>['\"`])",
    "(?<word>[A-Za-z0-9_]{2,}(?![A-Za-z0-9_$])|[A-Za-z0-9_](?![A-Za-z0-9_$']))",
    "(?<sign>/(?![/*])|-(?!-)|[!%()*+,.:;<=>?[\\]{|}])",
  ].join("|"),
  "uy",
);

/**
 * Returns the index just past the quote that closes the one at `from`. Hand-written: a regular expression would take
 * long to find that there is none.
 */
function quoteEnd(text: string, from: number, quote: string): number {
  for (let at = from + 1; at < text.length; at += 1) {
    const char = text[at];
    // An escape in a name could spell any other name; no name of the event store needs one.
    if (char === "\\" && quote !== "'") throw unreadable("a quoted name has a backslash");
    if (char === "\\" || (char === quote && text[at + 1] === quote)) at += 1;
    else if (char === quote) return at + 1;
  }
  throw unreadable(`the quote at position ${from + 1} is not closed`);
}

function unquoted(name: string): string {
  const quote = name.charAt(0);
  return name
    .slice(1, -1)
    .replaceAll(quote + quote, quote)
    .toLowerCase();
}

const unreadable = (why: string) => new EngineError(62, "SYNTAX_ERROR", `Syntax error: ${why}`);

/** Formats a text as a string literal of the engine's SQL. */
export function sqlString(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\0", "\\0")}'`;
}
