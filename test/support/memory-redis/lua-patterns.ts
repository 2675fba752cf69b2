import { LuaError, type LuaResult, type LuaValue } from "./lua-values.ts";

/** A pattern of Lua's as a regular expression. */
interface Pattern {
  readonly expression: RegExp;
  readonly isAnchored: boolean;
  /** Whether each capture is a position, `()`. */
  readonly isPosition: readonly boolean[];
}

/** In the C locale. */
const CLASSES: Readonly<Record<string, string>> = {
  a: "A-Za-z",
  c: "\\x00-\\x1f\\x7f",
  d: "0-9",
  l: "a-z",
  p: "!-/:-@\\[-`{-~",
  s: "\\t-\\r ",
  u: "A-Z",
  w: "0-9A-Za-z",
  x: "0-9A-Fa-f",
  z: "\\x00",
};

const patterns = new Map<string, Pattern>();

export function getPattern(text: string): Pattern {
  const known = patterns.get(text);
  if (known !== undefined) return known;
  const pattern = translate(text);
  // Scripts write job ids and the like into few of them.
  if (patterns.size > 10_000) patterns.clear();
  patterns.set(text, pattern);
  return pattern;
}

/** `%b` and `%f` are left out. */
function translate(text: string): Pattern {
  const isAnchored = text.startsWith("^");
  const isPosition: boolean[] = [];
  let source = "";
  let at = isAnchored ? 1 : 0;
  const quantified = (item: string) => {
    const sign = text[at] ?? "";
    if (sign === "-") source += `${item}*?`;
    else source += item + (sign !== "" && "*+?".includes(sign) ? sign : "");
    if (sign !== "" && "*+?-".includes(sign)) at += 1;
  };
  while (at < text.length) {
    const char = text[at] ?? "";
    at += 1;
    if (char === "(") {
      isPosition.push(text[at] === ")");
      source += "(";
    } else if (char === ")") source += ")";
    else if (char === "$" && at === text.length) source += "$";
    else if (char === "%" && /[1-9]/.test(text[at] ?? "")) {
      source += `(?:\\${text[at]})`;
      at += 1;
    } else if (char === "%") {
      at += 1;
      quantified(translateClass(text[at - 1] ?? "", text));
    } else if (char === "[") {
      const [set, end] = setAt(text, at);
      at = end;
      quantified(set);
    } else quantified(char === "." ? "[^]" : escaped(char));
  }
  const flags = (isAnchored ? "y" : "g") + (isPosition.includes(true) ? "d" : "");
  return { expression: new RegExp(source, flags), isAnchored, isPosition };
}

function escaped(char: string): string {
  return /\w/.test(char) ? char : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

function translateClass(letter: string, text: string): string {
  if (letter === "b" || letter === "f" || letter === "") throw new LuaError(`%${letter} in the pattern ${text}`);
  const members = CLASSES[letter.toLowerCase()];
  if (members === undefined) return escaped(letter);
  return letter === letter.toLowerCase() ? `[${members}]` : `[^${members}]`;
}

/** The set that begins at `at`, behind its bracket, and where it ends. */
function setAt(text: string, at: number): [set: string, end: number] {
  let end = at;
  let set = text[end] === "^" ? "[^" : "[";
  if (text[end] === "^") end += 1;
  const begin = end;
  while (text[end] !== "]" || end === begin) {
    if (end >= text.length) throw new LuaError(`malformed pattern ${text}`);
    if (text[end] === "%") {
      const letter = text[end + 1] ?? "";
      const members = CLASSES[letter.toLowerCase()];
      if (members !== undefined && letter !== letter.toLowerCase())
        throw new LuaError(`%${letter} in a set of ${text}`);
      set += members ?? escaped(letter);
      end += 2;
    } else if (text[end + 1] === "-" && text[end + 2] !== "]" && end + 2 < text.length) {
      set += `${escaped(text[end] ?? "")}-${escaped(text[end + 2] ?? "")}`;
      end += 3;
    } else {
      set += escaped(text[end] ?? "");
      end += 1;
    }
  }
  return [`${set}]`, end + 1];
}

/** The match at `from` or, of a pattern without anchor, behind it. */
export function matchFrom({ expression }: Pattern, text: string, from: number): RegExpExecArray | null {
  if (from > text.length) return null;
  expression.lastIndex = from;
  return expression.exec(text);
}

/** The captures of a match; all of it if the pattern has none. */
export function readCaptures({ isPosition }: Pattern, match: RegExpExecArray): LuaValue[] {
  if (isPosition.length === 0) return [match[0]];
  return isPosition.map((isAt, i) => (isAt ? (match.indices?.[i + 1]?.[0] ?? 0) + 1 : match[i + 1]));
}

/** Replaces at most `most` matches by what `replace` says (nil, false: as it is). */
export function substitute(
  text: string,
  source: string,
  replace: (match: RegExpExecArray, captures: LuaValue[]) => LuaValue,
  most: number,
): LuaResult {
  const pattern = getPattern(source);
  let done = "";
  let at = 0;
  let count = 0;
  while (count < most) {
    const match = matchFrom(pattern, text, at);
    if (match === null) break;
    count += 1;
    const by = replace(match, readCaptures(pattern, match));
    done += text.slice(at, match.index) + (by === undefined || by === false ? match[0] : String(by));
    at = match.index + match[0].length;
    if (match[0] === "") {
      if (at >= text.length) break;
      done += text[at];
      at += 1;
    }
    if (pattern.isAnchored) break;
  }
  return [done + text.slice(at), count];
}
