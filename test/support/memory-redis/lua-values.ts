/*
 * Lua's values as JavaScript's: nil is undefined, a string has one character per byte (latin1), a number is a double as in
 * Lua 5.1, several results are an array.
 */

export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction;
export type LuaResult = LuaValue | readonly LuaValue[];
export type LuaFunction = (...args: LuaValue[]) => LuaResult;

export class LuaError extends Error {
  override readonly name = "LuaError";
}

export class LuaTable {
  private readonly others = new Map<LuaValue, LuaValue>();

  /** `list`: what is under 1, 2, …; the table keeps it. */
  constructor(readonly list: LuaValue[] = []) {}

  get(key: LuaValue): LuaValue {
    if (typeof key === "number" && key >= 1 && key <= this.list.length) return this.list[key - 1];
    return this.others.get(key);
  }

  set(key: LuaValue, value: LuaValue): void {
    const { list, others } = this;
    if (typeof key === "number" && key >= 1 && key <= list.length + 1 && Number.isInteger(key)) {
      if (key <= list.length) {
        list[key - 1] = value;
        while (list.length > 0 && list.at(-1) === undefined) list.pop();
      } else if (value === undefined) others.delete(key);
      else {
        list.push(value);
        if (others.size > 0) this.moveUp();
      }
    } else if (value === undefined) others.delete(key);
    else if (key === undefined) throw new LuaError("table index is nil");
    else others.set(key, value);
  }

  get length(): number {
    return this.list.length;
  }

  *entries(): Generator<LuaValue[]> {
    for (let at = 0; at < this.list.length; at += 1) if (this.list[at] !== undefined) yield [at + 1, this.list[at]];
    yield* this.others;
  }

  /** Moves elements that follow the list into it. */
  private moveUp(): void {
    for (let next = this.list.length + 1; this.others.has(next); next += 1) {
      this.list.push(this.others.get(next));
      this.others.delete(next);
    }
  }
}

export function first(result: LuaResult): LuaValue {
  return Array.isArray(result) ? (result as readonly LuaValue[])[0] : (result as LuaValue);
}

export function all(result: LuaResult): readonly LuaValue[] {
  return Array.isArray(result) ? (result as readonly LuaValue[]) : [result as LuaValue];
}

export function typeName(value: LuaValue): string {
  if (value === undefined) return "nil";
  return value instanceof LuaTable ? "table" : typeof value;
}

/** As C's `%.14g`, or of another precision. */
export function numberText(value: number, digits = 14): string {
  if (Number.isInteger(value) && Math.abs(value) < 10 ** Math.min(digits, 15))
    return Object.is(value, -0) ? "-0" : `${value}`;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const [mantissa = "", exponentText = "0"] = value.toExponential(digits - 1).split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < digits) return withoutZeros(value.toFixed(digits - 1 - exponent));
  const sign = exponent < 0 ? "-" : "+";
  return `${withoutZeros(mantissa)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

function withoutZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const NUMBER =
  /^[ \t\n\v\f\r]*[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|0[xX][\da-fA-F]+)[ \t\n\v\f\r]*$/;

export function toNumber(value: LuaValue): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || !NUMBER.test(value)) return undefined;
  return Number(value.replace(/^\s*\+/, ""));
}

export function toText(value: LuaValue): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return numberText(value);
  return value === undefined
    ? "nil"
    : value instanceof LuaTable || typeof value === "function"
      ? typeName(value)
      : `${value}`;
}

/** A number, or a string that is one. */
export function asNumber(value: LuaValue): number {
  if (typeof value === "number") return value;
  const number = toNumber(value);
  if (number === undefined) throw new LuaError(`attempt to perform arithmetic on a ${typeName(value)} value`);
  return number;
}

/** A string, or a number as one. */
export function asText(value: LuaValue): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return numberText(value);
  throw new LuaError(`string expected, got ${typeName(value)}`);
}
