import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import { walletLimits } from "../limits.ts";
import { fault } from "./fault.ts";
import { MemberNames } from "./member-names.ts";

/** Checks a value and returns its canonical form. Throws an `ApiError` 400 that begins with `field`. */
export type Reader = (value: Json, field: string) => Json;

/** C0 except tab and line breaks, DEL and C1: no device shows them, and PostgreSQL stores no NUL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

export function readText(value: Json, field: string): string {
  if (typeof value !== "string") throw fault(field, "must be a string");
  checkText(value, field);
  return value;
}

export function readFilledText(value: Json, field: string): string {
  const text = readText(value, field);
  if (text.trim() === "") throw fault(field, "must not be empty");
  return text;
}

export const readFlag: Reader = (value, field) => {
  if (typeof value !== "boolean") throw fault(field, "must be true or false");
  return value;
};

export function oneOf<T extends string>(allowed: readonly T[]): (value: Json, field: string) => T {
  return (value, field) => {
    const found = allowed.find((one) => one === value);
    if (found === undefined) throw fault(field, `must be one of ${allowed.join(", ")}`);
    return found;
  };
}

export function numberBetween(min: number, max: number): Reader {
  return (value, field) => {
    if (typeof value === "number" && value >= min && value <= max) return value;
    throw fault(field, `must be a number from ${min} to ${max}`);
  };
}

export function integerBetween(min: number, max: number): Reader {
  return (value, field) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw fault(field, `must be an integer from ${min} to ${max}`);
  };
}

export function listOf(read: Reader, max: number): Reader {
  return (value, field) => {
    if (!Array.isArray(value)) throw fault(field, "must be a list");
    if (value.length > max) throw fault(field, `must not have more than ${max} items`);
    return value.map((item: Json, i) => read(item, `${field}[${i}]`));
  };
}

/** An object of known, non-null members; drops empty ones. */
export function recordOf(readers: Readonly<Record<string, Reader>>, required: readonly string[] = []): Reader {
  const names = new MemberNames(Object.keys(readers));
  return (value, field) => {
    if (!isJsonObject(value)) throw fault(field, "must be an object");
    const members = [...names.read(value, field)].filter(([, member]) => member !== null);
    const missing = required.find((name) => !members.some(([given]) => given === name));
    if (missing !== undefined) throw fault(`${field}.${missing}`, "is required");
    const read = members.map(([name, member]) => [name, readers[name]?.(member, `${field}.${name}`) ?? null] as const);
    return Object.fromEntries(read);
  };
}

/** An object with unknown members, checked only for being storable. */
export const readAnyObject: Reader = (value, field) => {
  if (!isJsonObject(value)) throw fault(field, "must be an object");
  checkJson(value, field);
  return value;
};

/** A Google text in one or more languages (`LocalizedString`). */
export function readLocalized(value: Json, field: string): Json {
  const text = isJsonObject(value) ? value["defaultValue"] : undefined;
  if (!isJsonObject(text)) throw fault(`${field}.defaultValue`, "must be an object with language and value");
  for (const name of ["language", "value"]) {
    if (typeof text[name] !== "string") throw fault(`${field}.defaultValue.${name}`, "must be a string");
  }
  return value;
}

export const readUrl: Reader = (value, field) => {
  const text = readText(value, field);
  if (!URL.canParse(text)) throw fault(field, "must be a URL");
  return text;
};

/** Throws if a text or number anywhere in the value is one that PostgreSQL or another JSON reader refuses. */
export function checkJson(value: Json, field: string): void {
  if (typeof value === "string") checkText(value, field);
  else if (typeof value === "number" && !Number.isFinite(value)) throw fault(field, "must be a smaller number");
  else if (Array.isArray(value)) value.forEach((item: Json, i) => checkJson(item, `${field}[${i}]`));
  else if (isJsonObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      checkText(name, `the name of a field in ${field}`);
      checkJson(member, `${field}.${name}`);
    }
  }
}

/** Throws if the pass's content is larger than a phone should have to load. */
export function checkSize(content: JsonObject): void {
  if (JSON.stringify(content).length <= walletLimits.passContentCharsMax) return;
  throw fault("pass_data", `must not be larger than ${walletLimits.passContentCharsMax} characters, beside its images`);
}

function checkText(text: string, field: string): void {
  if (text.length > walletLimits.passTextCharsMax) {
    throw fault(field, `must not be longer than ${walletLimits.passTextCharsMax} characters`);
  }
  if (CONTROL.test(text)) throw fault(field, "must not contain control characters");
  if (!text.isWellFormed()) throw fault(field, "must be valid Unicode");
}
