import { EngineError } from "./engine-error.ts";

export interface Token {
  readonly kind: "word" | "name" | "string" | "sign";
  /** A word or a quoted name: in lower case, without its quotes. A string: with them, as it stands. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Cuts a statement as the engine's lexer does (ClickHouse, src/Parsers/Lexer.cpp), less its numbers, which no decision
 * depends on: they come as words and signs. Throws `EngineError` at whatever is not surely cut alike: heredocs, variables,
 * quotes and blanks beyond ASCII, nested comments, a backslash in a quoted name.
 */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const { groups } = TOKEN.exec(text) ?? {};
    if (groups === undefined) throw unreadable(`position ${at + 1} cannot be read`);
    const { comment, string, name, word, sign } = groups;
    const span = { start: at, end: TOKEN.lastIndex };
    if (comment?.includes("/*", 2) === true) throw unreadable("a comment has another one in it");
    if (string?.includes("\0") === true) throw unreadable("a string has a NUL: write it as \\0");
    if (word !== undefined) tokens.push({ kind: "word", text: word.toLowerCase(), ...span });
    else if (name !== undefined) tokens.push({ kind: "name", text: unquoted(name), ...span });
    else if (string !== undefined) tokens.push({ kind: "string", text: string, ...span });
    else if (sign !== undefined) tokens.push({ kind: "sign", text: sign, ...span });
  }
  return tokens;
}

export const isWord = (token: Token | undefined, word: string) => token?.kind === "word" && token.text === word;
export const isSign = (token: Token | undefined, sign: string) => token?.kind === "sign" && token.text === sign;
export const isName = (token: Token | undefined) => token?.kind === "word" || token?.kind === "name";

/**
 * Of the prefixes of strings only `x'…'` and `b'…'` with their own digits: the engine ends those at the next quote, whatever
 * is before it, so a letter that touches a quote is not read in any other case.
 */
const TOKEN = new RegExp(
  [
    "(?<space>[ \\t\\n\\r\\f\\v]+|--[^\\n]*|#[ !][^\\n]*)",
    "(?<comment>/\\*[^]*?\\*/)",
    "(?<string>(?:[xX](?=')'[0-9a-fA-F]*|[bB](?=')'[01]*)'|'(?:[^'\\\\]|\\\\[^]|'')*')",
    '(?<name>`(?:[^`\\\\]|``)*`|"(?:[^"\\\\]|"")*")',
    "(?<word>[A-Za-z0-9_]{2,}(?![A-Za-z0-9_$])|[A-Za-z0-9_](?![A-Za-z0-9_$']))",
    "(?<sign>/(?![/*])|-(?!-)|[!%()*+,.:;<=>?[\\]{|}])",
  ].join("|"),
  "uy",
);

function unquoted(name: string): string {
  const quote = name.charAt(0);
  return name
    .slice(1, -1)
    .replaceAll(quote + quote, quote)
    .toLowerCase();
}

const unreadable = (why: string) => new EngineError(62, "SYNTAX_ERROR", `Syntax error: ${why}`);
