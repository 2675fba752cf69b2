import { getPattern, matchFrom, readCaptures, substitute } from "./lua-patterns.ts";
import {
  all,
  asNumber,
  asText,
  first,
  LuaError,
  type LuaFunction,
  type LuaResult,
  LuaTable,
  type LuaValue,
  numberText,
  toNumber,
  toText,
  typeName,
} from "./lua-values.ts";

/** Of Lua's library what scripts use. */
export const LIBRARY: Readonly<Record<string, LuaFunction | Readonly<Record<string, LuaFunction>>>> = {
  type: (value) => typeName(value),
  tostring: toText,
  tonumber: (value, base) => (base === undefined ? toNumber(value) : integerIn(asText(value), asNumber(base))),
  select: (which, ...values) => (which === "#" ? values.length : values.slice(asNumber(which) - 1)),
  unpack: (table, from = 1, to = asTable(table).length) => {
    const [begin, end] = [asNumber(from), asNumber(to)];
    if (begin === 1 && end === asTable(table).length) return asTable(table).list;
    const values: LuaValue[] = [];
    for (let at = begin; at <= end; at += 1) values.push(asTable(table).get(at));
    return values;
  },
  pairs: (table) => iterator(asTable(table).entries()),
  ipairs: (table) => {
    let at = 0;
    return () => {
      at += 1;
      const value = asTable(table).get(at);
      return value === undefined ? undefined : [at, value];
    };
  },
  error: (message) => {
    throw new LuaError(toText(message));
  },
  math: {
    abs: (value) => Math.abs(asNumber(value)),
    ceil: (value) => Math.ceil(asNumber(value)),
    floor: (value) => Math.floor(asNumber(value)),
    max: (...values) => Math.max(...values.map(asNumber)),
    min: (...values) => Math.min(...values.map(asNumber)),
  },
  table: {
    insert: (table, ...rest) => {
      const { list } = asTable(table);
      if (rest.length === 1) list.push(rest[0]);
      else list.splice(asNumber(rest[0]) - 1, 0, rest[1]);
      return [];
    },
    concat: (table, separator = "", from = 1, to = asTable(table).length) => {
      const values = asTable(table).list.slice(asNumber(from) - 1, asNumber(to));
      return values.map(asText).join(asText(separator));
    },
  },
  string: {
    len: (text) => asText(text).length,
    lower: (text) => asText(text).replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
    upper: (text) => asText(text).replace(/[a-z]/g, (letter) => letter.toUpperCase()),
    rep: (text, times) => asText(text).repeat(Math.max(0, asNumber(times))),
    reverse: (text) => Array.from(asText(text)).reverse().join(""),
    char: (...codes) => String.fromCharCode(...codes.map(asNumber)),
    byte: (text, from = 1, to = from) => Array.from(sub(asText(text), asNumber(from), asNumber(to)), toCode),
    sub: (text, from, to = -1) => sub(asText(text), asNumber(from), asNumber(to)),
    format: (text, ...values) => format(asText(text), values),
    find: (text, pattern, from, isPlain) => find(asText(text), asText(pattern), from, isPlain),
    match: (text, source, from) => {
      const pattern = getPattern(asText(source));
      const match = matchFrom(pattern, asText(text), findBegin(asText(text), from));
      return match === null ? undefined : readCaptures(pattern, match);
    },
    gmatch: (text, source) => iterator(matches(asText(text), asText(source))),
    gsub: (text, source, by, most = Number.POSITIVE_INFINITY) =>
      substitute(asText(text), asText(source), replacement(by), asNumber(most)),
  },
};

function asTable(value: LuaValue): LuaTable {
  if (value instanceof LuaTable) return value;
  throw new LuaError(`table expected, got ${typeName(value)}`);
}

function iterator(values: Generator<LuaValue[]>): LuaFunction {
  return () => {
    const { value, done } = values.next();
    return done === true ? undefined : value;
  };
}

function integerIn(text: string, base: number): LuaValue {
  const value = Number.parseInt(text, base);
  return Number.isNaN(value) ? undefined : value;
}

function toCode(char: string): number {
  return char.charCodeAt(0);
}

function sub(text: string, from: number, to: number): string {
  const begin = from < 0 ? Math.max(0, text.length + from) : Math.max(0, from - 1);
  return text.slice(begin, Math.max(begin, to < 0 ? text.length + to + 1 : to));
}

/** Counted from 0, and within the text. */
function findBegin(text: string, from: LuaValue): number {
  const at = from === undefined ? 1 : asNumber(from);
  return at < 0 ? Math.max(0, text.length + at) : Math.min(text.length, Math.max(0, at - 1));
}

function find(text: string, source: string, from: LuaValue, isPlain: LuaValue): LuaResult {
  const begin = findBegin(text, from);
  if (isPlain === true) {
    const at = text.indexOf(source, begin);
    return at === -1 ? undefined : [at + 1, at + source.length];
  }
  const pattern = getPattern(source);
  const match = matchFrom(pattern, text, begin);
  if (match === null) return undefined;
  const captures = pattern.isPosition.length === 0 ? [] : readCaptures(pattern, match);
  return [match.index + 1, match.index + match[0].length, ...captures];
}

function* matches(text: string, source: string): Generator<LuaValue[]> {
  const pattern = getPattern(source);
  for (let at = 0; ; ) {
    const match = matchFrom(pattern, text, at);
    if (match === null) return;
    // The expression is shared, and used again before this goes on.
    at = match.index + Math.max(1, match[0].length);
    yield readCaptures(pattern, match);
  }
}

function replacement(by: LuaValue): (match: RegExpExecArray, captures: LuaValue[]) => LuaValue {
  if (typeof by === "function") return (_, captures) => first(by(...captures));
  if (by instanceof LuaTable) return (_, captures) => by.get(captures[0]);
  const text = asText(by);
  if (!text.includes("%")) return () => text;
  return (match, captures) =>
    text.replace(/%(.)/gs, (_, sign: string) => {
      if (sign === "0") return match[0];
      return /[1-9]/.test(sign) ? toText(captures[Number(sign) - 1]) : sign;
    });
}

function format(text: string, values: readonly LuaValue[]): string {
  let at = 0;
  return text.replace(
    /%(?:%|(0?)(\d*)(?:\.(\d+))?([a-zA-Z]))/g,
    (all_, zero: string, width: string, digits, letter) => {
      if (all_ === "%%") return "%";
      const value = values[at];
      at += 1;
      return formatted(letter, value, digits).padStart(Number(width), zero === "0" ? "0" : " ");
    },
  );
}

function formatted(letter: string, value: LuaValue, digits: string | undefined): string {
  switch (letter) {
    case "s":
      return digits === undefined ? toText(value) : toText(value).slice(0, Number(digits));
    case "d":
      return BigInt(Math.trunc(asNumber(value))).toString();
    case "x":
      return BigInt(Math.trunc(asNumber(value))).toString(16);
    case "f":
      return fixed(asNumber(value), Number(digits ?? 6));
    case "g":
      return numberText(asNumber(value), Number(digits ?? 6));
    default:
      throw new LuaError(`%${letter} in a format`);
  }
}

/** C rounds halves to even digits. */
function fixed(value: number, digits: number): string {
  const half = 2 * Math.round(value / 2);
  if (digits === 0 && Math.abs(value % 1) === 0.5) return Object.is(half, -0) ? "-0" : `${half}`;
  if (Object.is(value, -0)) return `-${fixed(0, digits)}`;
  return Number.isInteger(value) && digits === 0 ? BigInt(value).toString() : value.toFixed(digits);
}

/** The value under a name: of a table, or a method of a string. */
export function indexed(base: LuaValue, key: LuaValue): LuaValue {
  if (base instanceof LuaTable) return base.get(key);
  const method = typeof base === "string" ? STRING[String(key)] : undefined;
  if (method !== undefined) return method;
  throw new LuaError(`attempt to index a ${typeName(base)} value by ${toText(key)}`);
}

const STRING = LIBRARY["string"] as Readonly<Record<string, LuaFunction>>;

/** Numbers and strings are compared with their like; throws where others are. */
function areComparable(a: LuaValue, b: LuaValue): boolean {
  if ((typeof a === "number" && typeof b === "number") || (typeof a === "string" && typeof b === "string")) return true;
  throw new LuaError(`attempt to compare ${typeName(a)} with ${typeName(b)}`);
}

/** The functions that compiled Lua calls. */
export const OPERATIONS = {
  LuaTable,
  all,
  first,
  indexed,
  add: (a: LuaValue, b: LuaValue) =>
    typeof a === "number" && typeof b === "number" ? a + b : asNumber(a) + asNumber(b),
  subtract: (a: LuaValue, b: LuaValue) =>
    typeof a === "number" && typeof b === "number" ? a - b : asNumber(a) - asNumber(b),
  multiply: (a: LuaValue, b: LuaValue) => asNumber(a) * asNumber(b),
  divide: (a: LuaValue, b: LuaValue) => asNumber(a) / asNumber(b),
  modulo: (a: LuaValue, b: LuaValue) => asNumber(a) - Math.floor(asNumber(a) / asNumber(b)) * asNumber(b),
  negate: (a: LuaValue) => -asNumber(a),
  number: asNumber,
  concat: (a: LuaValue, b: LuaValue) =>
    typeof a === "string" && typeof b === "string" ? a + b : asText(a) + asText(b),
  isLess: (a: LuaValue, b: LuaValue) => areComparable(a, b) && (a as number) < (b as number),
  isAtMost: (a: LuaValue, b: LuaValue) => areComparable(a, b) && (a as number) <= (b as number),
  length(value: LuaValue): number {
    if (typeof value === "string" || value instanceof LuaTable) return value.length;
    throw new LuaError(`attempt to get length of a ${typeName(value)} value`);
  },
  set(table: LuaValue, key: LuaValue, value: LuaValue): void {
    if (!(table instanceof LuaTable)) throw new LuaError(`attempt to index a ${typeName(table)} value`);
    table.set(key, value);
  },
  table(list: readonly LuaValue[], fields: readonly (readonly [LuaValue, LuaValue])[]): LuaTable {
    const table = new LuaTable();
    if (list.includes(undefined)) list.forEach((value, i) => table.set(i + 1, value));
    else table.list.push(...list);
    for (const [key, value] of fields) table.set(key, value);
    return table;
  },
} as const;
