import { EngineError } from "./engine-error.ts";
import { isReadSetting } from "./read-settings.ts";

/** A statement that may be run for an analyst. */
export interface ReadStatement {
  /** One statement, without what ends it. */
  readonly sql: string;
  /** The format that the text itself names. */
  readonly format: string | null;
  /**
   * Whether its rows can be handed out as they come. Only a lone SELECT: the engine evaluates sub-selects that stand for a
   * value before it gives the stream, and does so on the thread that asks for it, which would be the event loop's. And only
   * where its format is surely known: most formats repeat their head in each piece.
   */
  readonly isStreamable: boolean;
}

/**
 * Reads a statement as far as it takes to see that it only reads. Throws `EngineError` where it does not, or where that
 * cannot be told.
 *
 * The analyst's role already refuses most of what is refused here. It does not know the function `file()`, `INTO OUTFILE`
 * and formats that read a file named by a setting, which all work past access rights inside a process, nor `KILL`, `USE`
 * and `SET`. So this has to agree with the engine on what is a word and what is inside quotes or a comment
 * (ClickHouse, src/Parsers/Lexer.cpp), and refuses what it does not know.
 */
export function readStatement(text: string): ReadStatement {
  const tokens = tokensOf(text);
  const end = tokens.findIndex(({ text: of, kind }) => kind === "sign" && of === ";");
  const own = end === -1 ? tokens : tokens.slice(0, end);
  const last = own.at(-1);
  if (last === undefined) throw new EngineError(62, "SYNTAX_ERROR", "Empty query");
  if (end !== -1 && tokens.slice(end).some(({ text: of }) => of !== ";"))
    throw new EngineError(62, "SYNTAX_ERROR", "Multi-statements are not allowed: send one statement a request");
  checkStart(own);
  own.forEach((token, at) => checkToken(token, own.slice(at + 1, at + 3)));
  checkSettings(own);
  const format = formatOf(text, own);
  const has = (word: string) => own.filter((token) => isWord(token, word)).length;
  return {
    sql: text.slice(0, last.end),
    format,
    isStreamable:
      isWord(own[0], "select") && has("select") === 1 && has("from") > 0 && (format !== null || has("format") === 0),
  };
}

const STARTS: ReadonlySet<string> = new Set(["select", "with", "show", "describe", "desc", "exists", "explain"]);

/** Functions that read the machine's files, call other hosts or write to its log, under any case of their name. */
const FUNCTIONS_REFUSED: ReadonlySet<string> = new Set([
  "file",
  "catboostevaluate",
  "naivebayesclassifier",
  "aigenerate",
  "aiclassify",
  "aiembed",
  "aiextract",
  "aitranslate",
  "logtrace",
  "getclienthttpheader",
]);

interface Token {
  readonly kind: "word" | "name" | "string" | "sign";
  /** A word or a quoted name: in lower case, without its quotes. */
  readonly text: string;
  readonly end: number;
}

function checkStart(tokens: readonly Token[]): void {
  const first = tokens.find(({ text }) => text !== "(");
  if (first?.kind === "word" && STARTS.has(first.text)) return;
  throw readonly("only SELECT, WITH, SHOW, DESCRIBE, EXISTS and EXPLAIN are taken here");
}

function checkToken(token: Token, [next]: readonly Token[]): void {
  if (token.kind !== "word" && token.kind !== "name") return;
  if (FUNCTIONS_REFUSED.has(token.text)) throw readonly(`\`${token.text}\` is not available here`);
  if (isWord(token, "into") && isWord(next, "outfile")) throw readonly("results cannot be written to files");
  if (isWord(token, "parallel") && isWord(next, "with")) throw readonly("send one statement a request");
}

/** Names of settings, wherever a SETTINGS clause stands: some of them would name a file to read, or lift a bound. */
function checkSettings(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    if (!isWord(token, "settings")) continue;
    for (let i = at + 1; isName(tokens[i]) && tokens[i + 1]?.text === "="; ) {
      const name = tokens[i]?.text ?? "";
      if (!isReadSetting(name)) throw readonly(`the setting \`${name}\` cannot be changed here`);
      i = afterValue(tokens, i + 2);
    }
  }
}

/** Where the next name of a list of settings would be: behind the comma that follows the value at `from`. */
function afterValue(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let i = from; i < tokens.length; i += 1) {
    const { kind, text } = tokens[i] ?? { kind: "sign", text: "" };
    // A list of its own, which is looked at on its own: each token is passed once.
    if (kind === "word" && text === "settings") return tokens.length;
    if (kind !== "sign") continue;
    if ("([{".includes(text)) depth += 1;
    if (")]}".includes(text)) depth -= 1;
    if (depth < 0) return tokens.length;
    if (text === "," && depth === 0) return i + 1;
  }
  return tokens.length;
}

/** The word behind the last FORMAT, where nothing but settings follows it. */
function formatOf(text: string, tokens: readonly Token[]): string | null {
  const at = tokens.findLastIndex((token) => isWord(token, "format"));
  const [name, behind] = at === -1 ? [] : tokens.slice(at + 1, at + 3);
  if (name?.kind !== "word" || (behind !== undefined && !isWord(behind, "settings"))) return null;
  return text.slice(name.end - name.text.length, name.end);
}

const isWord = (token: Token | undefined, word: string) => token?.kind === "word" && token.text === word;
const isName = (token: Token | undefined) => token?.kind === "word" || token?.kind === "name";

const readonly = (why: string) => new EngineError(164, "READONLY", `Cannot execute query in readonly mode: ${why}`);
const unreadable = (why: string) => new EngineError(62, "SYNTAX_ERROR", `Syntax error: ${why}`);

/** The engine's own tokens, less its numbers, which no decision here depends on. */
const TOKEN =
  /(?<space>\s+|--[^\n]*|#[ !][^\n]*|\/\*[^]*?\*\/)|[xXbB]'[0-9a-fA-F]*'|(?<string>'(?:[^'\\]|\\[^]|'')*')|(?<name>`(?:[^`\\]|\\[^]|``)*`|"(?:[^"\\]|\\[^]|"")*")|(?<word>[A-Za-z0-9_]+)|(?<sign>\/(?!\/|\*)|-(?!-)|[^\s\w'"`#$/-])/uy;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const { groups } = TOKEN.exec(text) ?? {};
    if (groups === undefined) throw unreadable(`position ${at + 1} cannot be read`);
    const { space, string, name, word, sign } = groups;
    const end = TOKEN.lastIndex;
    if (space !== undefined) continue;
    if (sign !== undefined && !/^[!-~]$/.test(sign))
      throw unreadable(`${JSON.stringify(sign)} at position ${at + 1} is not within quotes`);
    if (word !== undefined) tokens.push({ kind: "word", text: word.toLowerCase(), end });
    else if (name !== undefined) tokens.push({ kind: "name", text: unquoted(name), end });
    else if (sign !== undefined) tokens.push({ kind: "sign", text: sign, end });
    else tokens.push({ kind: "string", text: string ?? "", end });
  }
  return tokens;
}

function unquoted(name: string): string {
  const quote = name.charAt(0);
  const inner = name.slice(1, -1);
  // An escape other than that of the quote could spell any name; no name of the ledger needs one.
  if (inner.includes("\\")) throw unreadable("a quoted name has a backslash");
  return inner.replaceAll(quote + quote, quote).toLowerCase();
}
