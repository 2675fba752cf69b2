import { isExactNumber, isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";

/** How a value is escaped for its surroundings. `html` is safe in text and inside quoted attribute values. */
export type Escape = "html" | "none";

/** The rendered text is longer than any real message: many placeholders times a large value. */
export class RenderTooLargeError extends Error {
  override readonly name = "RenderTooLargeError";
}

/**
 * A text with placeholders, parsed once: `{{.name}}`, blanks inside the braces allowed, dotted paths into the data
 * (`{{.user.name}}`, `{{.items.0}}`). A `{{` that begins no placeholder stays as it is.
 */
export class Template {
  private constructor(
    /**
     * The text around the placeholders: one piece more than there are placeholders, empty between two adjacent ones.
     */
    readonly literals: readonly string[],
    private readonly paths: readonly (readonly string[])[],
  ) {}

  /**
   * Returns the position of the first `{{` that begins no placeholder, or null. A brace directly before a placeholder
   * (`{{{.name}}`) is text.
   */
  static firstBroken(text: string): number | null {
    let open = text.indexOf("{{");
    while (open !== -1) {
      const placeholder = placeholderAt(text, open) ?? placeholderAt(text, open + 1);
      if (placeholder === null) return open;
      open = text.indexOf("{{", placeholder.end);
    }
    return null;
  }

  /** Never fails. Takes time proportional to the length of the text. */
  static parse(text: string): Template {
    const literals: string[] = [];
    const paths: (readonly string[])[] = [];
    let written = 0;
    let open = text.indexOf("{{");
    while (open !== -1) {
      const placeholder = placeholderAt(text, open);
      // Advances by one character, not two: the second brace of `{{{.name}}` begins a placeholder.
      const next = placeholder?.end ?? open + 1;
      if (placeholder !== null) {
        literals.push(text.slice(written, open));
        paths.push(placeholder.path);
        written = next;
      }
      open = text.indexOf("{{", next);
    }
    literals.push(text.slice(written));
    return new Template(literals, paths);
  }

  /**
   * Returns the values of the placeholders, in their order. Values are not searched for further placeholders. A missing
   * variable is empty, numbers keep their spelling, objects and arrays become JSON. Throws `RenderTooLargeError` if the
   * whole text would have more than `charsMax` characters, before it produces more than that: `charsMax` and the length
   * of the template bound the time, whatever the data.
   */
  values(data: JsonObject, escape: Escape, charsMax: number): readonly string[] {
    let room = charsMax - (this.literals[0]?.length ?? 0);
    const values = this.paths.map((path, i) => {
      const text = room < 0 ? null : write(valueAt(data, path), escape, room);
      if (text === null) throw new RenderTooLargeError(`longer than ${charsMax} characters`);
      room -= text.length + (this.literals[i + 1]?.length ?? 0);
      return text;
    });
    if (room < 0) throw new RenderTooLargeError(`longer than ${charsMax} characters`);
    return values;
  }

  /** Whether a placeholder has this very name. */
  names(name: string): boolean {
    return this.paths.some(([first, ...more]) => first === name && more.length === 0);
  }

  /** Lists the names of variables without a value in the data, as spelt in the text. */
  missing(data: JsonObject): readonly string[] {
    return this.paths.filter((path) => (valueAt(data, path) ?? null) === null).map((path) => path.join("."));
  }

  /** Fills the placeholders by the rules of `values`. */
  render(data: JsonObject, escape: Escape, charsMax: number): string {
    return this.filled(this.values(data, escape, charsMax));
  }

  /** Puts the values in place of the placeholders. */
  filled(values: readonly string[]): string {
    return interleaved(this.literals, values);
  }
}

/**
 * Joins pieces of text with values between them: one piece more than there are values; the first value to use is at
 * `from`.
 */
export function interleaved(literals: readonly string[], values: readonly string[], from = 0): string {
  let text = literals[0] ?? "";
  for (let i = 1; i < literals.length; i += 1) text += (values[from + i - 1] ?? "") + (literals[i] ?? "");
  return text;
}

/** Parses the placeholder that begins with the two braces at `open`, or returns null. Never looks beyond the next brace. */
function placeholderAt(text: string, open: number): { path: readonly string[]; end: number } | null {
  if (!text.startsWith("{{", open)) return null;
  let at = skipBlanks(text, open + 2);
  const path: string[] = [];
  while (text.charCodeAt(at) === DOT) {
    const end = skipName(text, at + 1);
    if (end === at + 1) return null;
    path.push(text.slice(at + 1, end));
    at = end;
  }
  at = skipBlanks(text, at);
  return path.length > 0 && text.startsWith("}}", at) ? { path, end: at + 2 } : null;
}

const SPACE = 0x20;
const DOT = 0x2e;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at += 1;
  return at;
}

/** Whether the code is a space, tab, line feed or carriage return. */
function isBlank(code: number): boolean {
  return code === SPACE || code === 0x09 || code === 0x0a || code === 0x0d;
}

function skipName(text: string, from: number): number {
  let at = from;
  while (isNameCode(text.charCodeAt(at))) at += 1;
  return at;
}

/** False for NaN too, which charCodeAt returns beyond the end. */
function isNameCode(code: number): boolean {
  return code > SPACE && code !== DOT && code !== BRACE_OPEN && code !== BRACE_CLOSE;
}

/** Looks up own properties only: inherited properties are not data. */
function valueAt(data: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = data;
  for (const name of path) {
    if (typeof value !== "object" || value === null || isExactNumber(value) || !Object.hasOwn(value, name))
      return undefined;
    // Guaranteed by hasOwn above; arrays are indexed by their decimal names.
    value = (value as JsonObject)[name];
  }
  return value;
}

/** Formats a value; null if the text would be longer than `room`. */
function write(value: Json | undefined, escape: Escape, room: number): string | null {
  const text = asText(value, room);
  if (text === null || text.length > room) return null;
  if (escape === "none") return text;
  return text.length * ENTITY_CHARS_MAX > room && escapedLength(text) > room ? null : escapeHtml(text);
}

function asText(value: Json | undefined, room: number): string | null {
  if (value === undefined || value === null) return "";
  if (isExactNumber(value)) return value.rawJSON;
  if (typeof value !== "object") return String(value);
  return isLongerThan(value, room) ? null : JSON.stringify(value);
}

/** Whether the value surely takes more than `chars` characters as JSON. Visits at most that many members. */
function isLongerThan(value: Json, chars: number): boolean {
  let least = 0;
  const left: Json[] = [value];
  for (let next = left.pop(); next !== undefined && least <= chars; next = left.pop()) {
    if (typeof next === "string") least += next.length + 2;
    else if (isJsonArray(next)) {
      // Its brackets and commas; each item has at least one character.
      least += next.length + 1;
      if (least + next.length > chars) return true;
      for (const item of next) left.push(item);
    } else if (isJsonObject(next)) {
      // Without a list of its names, which would cost the time that this check saves.
      for (const name in next) {
        least += name.length + 4;
        if (least > chars) return true;
        left.push(next[name] ?? null);
      }
    } else least += 1;
  }
  return least > chars;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const ENTITY_CHARS_MAX = 6;

function escapedLength(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length; at += 1) length += GROWTH[text.charCodeAt(at)] ?? 0;
  return length;
}

/** By character code: how much longer the character's entity is. */
const GROWTH: readonly number[] = Array.from(
  { length: 0x40 },
  (_, code) => (ENTITIES[String.fromCharCode(code)]?.length ?? 1) - 1,
);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
