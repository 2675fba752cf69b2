import { EngineError } from "../clickhouse/engine-error.ts";
import { isBeforeParenthesis, isCallable, isReadSetting, isResultFormat, isSystemTable } from "./read-names.ts";
import { isName, isSign, isWord, type Token, tokenize } from "./statement-tokens.ts";

/** A statement that an analyst may run. */
export interface ReadStatement {
  /** The bare statement, without FORMAT, SETTINGS and terminator. */
  readonly sql: string;
  /** The format named in the text. */
  readonly format: string | null;
  /** The settings named in the text, as literals. */
  readonly settings: ReadonlyMap<string, string>;
}

/**
 * Functions of the engine that are not available here, in lower case. A bare name can refer to a function
 * (`arrayMap(file, paths)`), and only the engine can list all such names.
 */
export type Unavailable = ReadonlySet<string>;

/**
 * Parses a statement just far enough to verify that it only reads, and uses only names known to be harmless. Throws
 * `EngineError` if it does anything else, or if that cannot be determined.
 *
 * The server itself refuses its user for analysts most of what is refused here (`clickhouse-config.ts`), and the kernel
 * refuses the server files elsewhere (`landlock.ts`). Neither refuses the function `file()` and settings in a subquery
 * within the server's own folder, where one of those writes a file.
 */
export function readStatement(text: string, unavailable: Unavailable): ReadStatement {
  const tokens = oneStatement(tokenize(text));
  const { body, format, settings } = withoutTail(text, tokens);
  checkBody(body, unavailable);
  const last = body.at(-1);
  if (last === undefined) throw EMPTY;
  if (format !== null && !isResultFormat(format)) throw unknownFormat(format);
  for (const name of settings.keys()) checkSetting(name);
  return {
    sql: text.slice(0, last.end),
    format,
    settings,
  };
}

/**
 * Repeats the check on the engine's own rendering of a statement, without comments and with uniform quoting. If we ever
 * split a statement differently from the engine, this check detects it.
 */
export function checkRewritten(text: string, unavailable: Unavailable): void {
  const tokens = oneStatement(tokenize(text));
  const { body, format, settings } = withoutTail(text, tokens);
  checkBody(body, unavailable);
  if (format !== null || settings.size > 0) throw readonly("FORMAT and SETTINGS stand at the end of a statement");
}

export function checkSetting(name: string): void {
  if (!isReadSetting(name)) throw readonly(`the setting \`${name.slice(0, 64)}\` cannot be changed here`);
}

export const unknownFormat = (name: string) =>
  new EngineError(73, "UNKNOWN_FORMAT", `Format ${name.slice(0, 64)} is not available here`);

function oneStatement(tokens: readonly Token[]): readonly Token[] {
  const end = tokens.findIndex((token) => isSign(token, ";"));
  if (end !== -1 && tokens.slice(end).some((token) => !isSign(token, ";")))
    throw new EngineError(62, "SYNTAX_ERROR", "Multi-statements are not allowed: send one statement a request");
  return end === -1 ? tokens : tokens.slice(0, end);
}

interface Tail {
  readonly format: string | null;
  readonly settings: ReadonlyMap<string, string>;
}

/** Splits FORMAT and SETTINGS off the end, in either order. */
function withoutTail(text: string, tokens: readonly Token[]): Tail & { readonly body: readonly Token[] } {
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    if (token.kind === "sign" && "([{".includes(token.text)) depth += 1;
    if (token.kind === "sign" && ")]}".includes(token.text)) depth -= 1;
    const beginsSettings = isSettings(tokens, at);
    if (depth !== 0 || !(isWord(token, "format") || beginsSettings)) continue;
    const tail = parseTail(text, tokens, at);
    if (tail !== null) return { body: tokens.slice(0, at), ...tail };
    // A second clause is refused below; searching for more would read to the end again for each.
    if (beginsSettings) break;
  }
  return { body: tokens, format: null, settings: new Map() };
}

/** Parses a tail. Null if the tokens are anything else, or more than that. */
function parseTail(text: string, tokens: readonly Token[], from: number): Tail | null {
  let format: string | null = null;
  const settings = new Map<string, string>();
  let at = from;
  while (at < tokens.length) {
    const [word, name] = tokens.slice(at, at + 2);
    if (isWord(word, "format") && format === null && name !== undefined && isName(name)) {
      format = text.slice(name.start, name.end).replace(/^[`"]|[`"]$/g, "");
      at += 2;
    } else if (isWord(word, "settings") && settings.size === 0) {
      const next = readSettings(text, tokens, at + 1, settings);
      if (next === null) return null;
      at = next;
    } else return null;
  }
  return { format, settings };
}

/** Reads `name [= value], …` starting at `at` and returns its end, or null if there is none. */
function readSettings(
  text: string,
  tokens: readonly Token[],
  from: number,
  settings: Map<string, string>,
): number | null {
  for (let at = from; ; at += 1) {
    const name = tokens[at];
    if (name === undefined || !isName(name)) return null;
    at += 1;
    // A setting without a value is a flag.
    let value = "1";
    if (isSign(tokens[at], "=")) {
      const end = literalEnd(tokens, at + 1);
      const [first, last] = [tokens[at + 1], tokens[end - 1]];
      if (end === at + 1 || first === undefined || last === undefined) return null;
      value = text.slice(first.start, last.end);
      at = end;
    }
    settings.set(name.text, value);
    if (!isSign(tokens[at], ",")) return at;
  }
}

/** Returns the end of the string, number or boolean that begins at `from`; `from` if there is none. */
function literalEnd(tokens: readonly Token[], from: number): number {
  const first = tokens[from];
  if (first?.kind === "string" || isWord(first, "true") || isWord(first, "false")) return from + 1;
  const at = isSign(first, "-") || isSign(first, "+") ? from + 1 : from;
  const digits = (token: Token | undefined) => token?.kind === "word" && /^\d+$/.test(token.text);
  if (!digits(tokens[at])) return from;
  return isSign(tokens[at + 1], ".") && digits(tokens[at + 2]) ? at + 3 : at + 1;
}

/** Whether SETTINGS begins a clause here, rather than being a table's name (`system.settings`) or a selected column. */
function isSettings(tokens: readonly Token[], at: number): boolean {
  if (!isWord(tokens[at], "settings")) return false;
  if (isWord(tokens[0], "show") && (at === 1 || (at === 2 && isWord(tokens[1], "changed")))) return false;
  return !isMember(tokens, at);
}

/** Whether the name follows a dot as a member, unless the dot ends a number (`1. SETTINGS`). */
function isMember(tokens: readonly Token[], at: number): boolean {
  const owner = tokens[at - 2];
  return isSign(tokens[at - 1], ".") && owner !== undefined && isName(owner) && !/^\d/.test(owner.text);
}

function checkBody(tokens: readonly Token[], unavailable: Unavailable): void {
  if (tokens.length === 0) throw EMPTY;
  const first = tokens.find((token) => !isSign(token, "("));
  if (first?.kind !== "word" || !STARTS.has(first.text))
    throw readonly("only SELECT, WITH, SHOW, DESCRIBE, EXISTS and EXPLAIN are taken here");
  for (const at of tokens.keys()) {
    checkCall(tokens, at);
    checkWord(tokens, at);
    checkName(tokens, at);
    checkReference(tokens, at, unavailable);
  }
}

const STARTS: ReadonlySet<string> = new Set(["select", "with", "show", "describe", "desc", "exists", "explain"]);

/** Checks names before a parenthesis, and names that APPLY takes without one. */
function checkCall(tokens: readonly Token[], at: number): void {
  const token = tokens[at];
  if (token === undefined || !isName(token)) return;
  if (isSign(tokens[at + 1], "(") && !(token.kind === "word" && isBeforeParenthesis(token.text))) checkCallable(token);
  if (!isWord(token, "apply")) return;
  const [next, behind] = tokens.slice(at + 1, at + 4).filter((one) => !isSign(one, "("));
  const isLambda = isSign(behind, "-");
  if (next !== undefined && isName(next) && !isLambda) checkCallable(next);
}

function checkCallable({ text }: Token): void {
  if (!isCallable(text)) throw readonly(`\`${text.slice(0, 64)}\` is not available here`);
}

/** Checks for keywords that begin anything beyond reading. */
function checkWord(tokens: readonly Token[], at: number): void {
  const [token, next] = [tokens[at], tokens[at + 1]];
  if (token?.kind !== "word") return;
  if (token.text === "outfile" || token.text === "infile")
    throw readonly("files can neither be written nor read: let the client do it");
  if (token.text === "parallel" && isWord(next, "with")) throw readonly("send one statement a request");
  if (token.text === "insert" && isWord(next, "into")) throw readonly("nothing can be written");
  if (isSettings(tokens, at)) throw readonly("SETTINGS stands once, at the end of the statement");
  if (token.text !== "explain" && token.text !== "show") return;
  if (at > 0 && isSign(tokens[at - 1], "(")) throw readonly("EXPLAIN and SHOW stand at the beginning only");
  if (at === 0 && token.text === "explain") checkExplain(tokens.slice(1));
  if (at === 0 && token.text === "show") checkShow(tokens.slice(1));
}

/** Requires that EXPLAIN is followed, after its kind and options, by a SELECT. */
function checkExplain(tokens: readonly Token[]): void {
  const select = tokens.findIndex((token) => isWord(token, "select") || isWord(token, "with") || isSign(token, "("));
  const before = select === -1 ? tokens : tokens.slice(0, select);
  const isPlain = before.every(
    (token, at) =>
      isSign(token, ",") ||
      (isName(token) && (EXPLAINED.has(token.text) || isSign(before[at + 1], "=") || isSign(before[at - 1], "="))) ||
      (isSign(token, "=") && isName(before[at - 1])),
  );
  if (select === -1 || !isPlain) throw readonly("only a SELECT is explained here");
}

const EXPLAINED: ReadonlySet<string> = new Set(["ast", "syntax", "query", "tree", "plan", "pipeline", "estimate"]);

function checkShow([what, ...rest]: readonly Token[]): void {
  if (what === undefined || !SHOWN.has(what.text)) throw readonly("this cannot be shown here");
  if (what.text !== "create") return;
  const name = CREATED.has(rest[0]?.text ?? "") && isName(rest[1]) ? rest.slice(1) : rest;
  if (!name.every((token, at) => (at % 2 === 0 ? isName(token) : isSign(token, "."))))
    throw readonly("only tables, views and databases can be shown here");
}

const SHOWN: ReadonlySet<string> = new Set(
  "changed columns create databases engines extended fields full functions index indexes indices keys setting settings tables".split(
    " ",
  ),
);

const CREATED: ReadonlySet<string> = new Set(["table", "view", "database"]);

/** Checks a function's name without a parenthesis. */
function checkReference(tokens: readonly Token[], at: number, unavailable: Unavailable): void {
  const token = tokens[at];
  if (token === undefined || !isName(token) || isMember(tokens, at)) return;
  if (unavailable.has(token.text)) throw readonly(`\`${token.text}\` is not available here`);
}

/** Checks names that lead out of the event store, or whose referent is unknown. */
function checkName(tokens: readonly Token[], at: number): void {
  const [token, dot, table] = tokens.slice(at, at + 3);
  if (isSign(token, ":") && isName(dot) && dot?.text === "identifier")
    throw readonly("parameters cannot stand for names");
  if (token === undefined || !isName(token) || token.text !== "system" || !isSign(dot, ".")) return;
  if (!isSystemTable(table?.text ?? "")) throw readonly("this table of `system` is not available here");
}

const EMPTY = new EngineError(62, "SYNTAX_ERROR", "Empty query");

export const readonly = (why: string) =>
  new EngineError(164, "READONLY", `Cannot execute query in readonly mode: ${why}`);
