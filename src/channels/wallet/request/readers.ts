import { CONTROL_IN_LINES } from "../../../domain/texts/control-characters.ts";
import {
  EXACT_CHARS_MAX,
  isExactNumber,
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  toNumber,
} from "../../../domain/texts/json.ts";
import { parseUrl } from "../../../domain/texts/parse-url.ts";
import type { ErrorCode } from "../../../http/error-codes.ts";
import type { Refusal } from "../../../http/sending/acceptance.ts";
import { unknownMember } from "../../../http/sending/acceptance.ts";
import { walletLimits } from "../limits.ts";

/** An error in a request: `pass_data.style must be one of …`. A class, because values of a body can have any members. */
export class Fault implements Refusal {
  readonly status = 400;
  constructor(
    readonly message: string,
    readonly code?: ErrorCode,
    readonly param?: string,
  ) {}
}

/** A value that passed its check, or its fault. */
export type Checked<T> = T | Fault;

/** `what` completes the sentence that begins with the field. */
export function fault(field: string, what: string): Fault {
  return new Fault(`${field} ${what}`);
}

/** The members of a body; a fault if it is no object, or has a member unknown to the endpoint. */
export function readBody(body: unknown, known: readonly string[]): Checked<JsonObject> {
  if (!isJsonObject(body)) return fault("the body", "must be a JSON object");
  const refusal = unknownMember(body, known);
  return refusal === null ? body : new Fault(refusal.message, refusal.code, refusal.param);
}

/** Checks each item; the first fault ends it. */
export function checkEach<I, T>(
  items: readonly I[],
  check: (item: I, at: number) => Checked<T>,
): Checked<readonly T[]> {
  const checked: T[] = [];
  for (const [at, item] of items.entries()) {
    const one = check(item, at);
    if (one instanceof Fault) return one;
    checked.push(one);
  }
  return checked;
}

/** Checks each member; the first fault ends it. Members whose check returns undefined are left out. */
export function checkMembers<V>(
  members: Iterable<readonly [name: string, value: V]>,
  check: (value: V, name: string) => Checked<Json | undefined>,
): Checked<JsonObject> {
  const checked: [string, Json][] = [];
  for (const [name, value] of members) {
    const one = check(value, name);
    if (one instanceof Fault) return one;
    if (one !== undefined) checked.push([name, one]);
  }
  return Object.fromEntries(checked);
}

/** Checks a value and returns its canonical form, or a fault that begins with `field`. */
export type Reader = (value: Json, field: string) => Checked<Json>;

export function readText(value: Json, field: string): Checked<string> {
  if (typeof value !== "string") return fault(field, "must be a string");
  return checkText(value, field) ?? value;
}

export function readFilledText(value: Json, field: string): Checked<string> {
  const text = readText(value, field);
  if (text instanceof Fault || text.trim() !== "") return text;
  return fault(field, "must not be empty");
}

/** Reads a barcode's message, which is for machines and may have control characters, as in GS1 and binary barcodes. */
export function readCode(value: Json, field: string): Checked<string> {
  if (typeof value !== "string") return fault(field, "must be a string");
  if (value.trim() === "") return fault(field, "must not be empty");
  // PostgreSQL stores no NUL.
  if (value.includes("\0")) return fault(field, "must not contain the character NUL");
  return checkStorable(value, field) ?? value;
}

export const readFlag: Reader = (value, field) => {
  return typeof value === "boolean" ? value : fault(field, "must be true or false");
};

export function choiceReader<T extends string>(allowed: readonly T[]): (value: Json, field: string) => Checked<T> {
  return (value, field) => allowed.find((one) => one === value) ?? fault(field, `must be one of ${allowed.join(", ")}`);
}

export function numberBetween(min: number, max: number): Reader {
  return (value, field) => {
    const number = toNumber(value) ?? Number.NaN;
    if (number >= min && number <= max) return checkNumber(value, field) ?? value;
    return fault(field, `must be a number from ${min} to ${max}`);
  };
}

export function integerBetween(min: number, max: number): Reader {
  return (value, field) => {
    const number = toNumber(value) ?? Number.NaN;
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    return fault(field, `must be an integer from ${min} to ${max}`);
  };
}

export function listReader(read: Reader, max: number): Reader {
  return (value, field) => {
    if (!Array.isArray(value)) return fault(field, "must be a list");
    if (value.length > max) return fault(field, `must not have more than ${max} items`);
    return checkEach(value, (item: Json, i) => read(item, `${field}[${i}]`));
  };
}

/** An object of known, non-null members; drops empty ones. */
export function recordReader(readers: Readonly<Record<string, Reader>>, required: readonly string[] = []): Reader {
  const names = new MemberNames(Object.keys(readers));
  return (value, field) => {
    if (!isJsonObject(value)) return fault(field, "must be an object");
    const members = names.read(value, field, "absent");
    if (members instanceof Fault) return members;
    const missing = required.find((name) => !members.has(name));
    if (missing !== undefined) return fault(`${field}.${missing}`, "is required");
    return checkMembers(members, (member, name) => readers[name]?.(member, `${field}.${name}`) ?? null);
  };
}

/** An object with unknown members, checked only for being storable. */
export const readAnyObject: Reader = (value, field) => {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  return checkJson(value, field) ?? value;
};

export const readUrl: Reader = (value, field) => {
  const text = readText(value, field);
  if (text instanceof Fault || parseUrl(text) !== null) return text;
  return fault(field, "must be a URL");
};

/** The platform's accent, used if no colour is given: by a generic pass's object and an event ticket's class. */
export const GOOGLE_ACCENT = "#1A56DB";

/** Finds a text or number anywhere in the value that PostgreSQL or another JSON reader refuses; null: there is none. */
export function checkJson(value: Json, field: string): Fault | null {
  if (typeof value === "string") return checkText(value, field);
  if (toNumber(value) !== null) return checkNumber(value, field);
  if (isJsonArray(value)) return firstFault(value.entries(), ([i, item]) => checkJson(item, `${field}[${i}]`));
  if (!isJsonObject(value)) return null;
  return firstFault(
    Object.entries(value),
    ([name, member]) => checkText(name, `the name of a field in ${field}`) ?? checkJson(member, `${field}.${name}`),
  );
}

/** A number that PostgreSQL keeps digit by digit, without an exponent. */
export function checkNumber(value: Json, field: string): Fault | null {
  if (!Number.isFinite(toNumber(value))) return fault(field, "must be a smaller number");
  const isLong = isExactNumber(value) && value.rawJSON.length > EXACT_CHARS_MAX;
  return isLong ? fault(field, "has too many digits for a number: send it as a string") : null;
}

function firstFault<T>(items: Iterable<T>, check: (item: T) => Fault | null): Fault | null {
  for (const item of items) {
    const found = check(item);
    if (found !== null) return found;
  }
  return null;
}

/** A pass's content must not be larger than a phone should have to load. */
export function checkSize(content: JsonObject): Fault | null {
  if (JSON.stringify(content).length <= walletLimits.passContentCharsMax) return null;
  return fault(
    "pass_data",
    `must not be larger than ${walletLimits.passContentCharsMax} characters, beside its images`,
  );
}

function checkText(text: string, field: string): Fault | null {
  const unstorable = checkStorable(text, field);
  if (unstorable !== null) return unstorable;
  // No device shows them, and PostgreSQL stores no NUL.
  return CONTROL_IN_LINES.test(text) ? fault(field, "must not contain control characters") : null;
}

function checkStorable(text: string, field: string): Fault | null {
  if (text.length > walletLimits.passTextCharsMax) {
    return fault(field, `must not be longer than ${walletLimits.passTextCharsMax} characters`);
  }
  return text.isWellFormed() ? null : fault(field, "must be valid Unicode");
}

const QUOTED_CHARS_MAX = 100;

/** The meaning of a null member: it is absent, or it removes the pass's member. */
export type NullMeans = "absent" | "removed";

/**
 * Accepted names of an object's members: each as Apple or Google writes it (`textAlignment`) and as `text_alignment`.
 */
export class MemberNames {
  private readonly canonical = new Map<string, string>();

  constructor(names: readonly string[]) {
    for (const name of names) this.canonical.set(snakeCase(name), name);
    for (const name of names) this.canonical.set(name, name);
  }

  /** Whether an object may have a member spelled so. */
  knows(given: string): boolean {
    return this.canonical.has(given);
  }

  /**
   * The members by camelCase name; without those of null if it means `absent`. An unknown name is a fault, and so is a member
   * in both spellings: one of them would otherwise be lost silently.
   */
  read(object: JsonObject, path: string, nullMeans: NullMeans): Checked<Map<string, Json>> {
    const members = new Map<string, Json>();
    for (const [given, value] of Object.entries(object)) {
      const name = this.canonical.get(given);
      if (name === undefined) {
        const param = `${path}.${given.slice(0, QUOTED_CHARS_MAX)}`;
        return new Fault(`${param} is not a known field`, "unknown_member", param);
      }
      if (value === null && nullMeans === "absent") continue;
      if (members.has(name)) return fault(`${path}.${given}`, "is there twice, in both spellings");
      members.set(name, value);
    }
    return members;
  }
}

/** `icon2xBase64` is `icon_2x_base64`, `proximityUUID` is `proximity_uuid`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z])(\dx)/g, "$1_$2")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
}
