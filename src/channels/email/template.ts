import type { Json, JsonObject } from "../../core/json.ts";

/** How a value is written into what surrounds it. `html` is safe in text and inside quoted attribute values. */
export type Escape = "html" | "none";

/** A rendered text that is longer than anybody would send: many placeholders times a large value. */
export class RenderTooLargeError extends Error {
  override readonly name = "RenderTooLargeError";
}

/**
 * A text with placeholders, parsed once: `{{.name}}`, blanks inside the braces allowed, dotted paths into the data
 * (`{{.user.name}}`, `{{.items.0}}`). A `{{` that begins no placeholder stays as it is.
 */
export class Template {
  private constructor(private readonly segments: readonly Segment[]) {}

  /** Never fails. Takes time proportional to the length of the text. */
  static parse(text: string): Template {
    const segments: Segment[] = [];
    let written = 0;
    let open = text.indexOf("{{");
    while (open !== -1) {
      const placeholder = placeholderAt(text, open);
      // One character on, not two: the second brace of `{{{.name}}` begins a placeholder.
      const next = placeholder?.end ?? open + 1;
      if (placeholder !== null) {
        if (open > written) segments.push(text.slice(written, open));
        segments.push(placeholder.path);
        written = next;
      }
      open = text.indexOf("{{", next);
    }
    if (written < text.length) segments.push(text.slice(written));
    return new Template(segments);
  }

  /**
   * Fills the placeholders. Values are not looked into for further placeholders. A missing variable is empty, objects
   * and arrays are written as JSON. Throws `RenderTooLargeError` beyond `charsMax`.
   */
  render(data: JsonObject, escape: Escape, charsMax: number): string {
    let rendered = "";
    for (const segment of this.segments) {
      rendered += typeof segment === "string" ? segment : write(valueAt(data, segment), escape);
      if (rendered.length > charsMax) throw new RenderTooLargeError(`longer than ${charsMax} characters`);
    }
    return rendered;
  }
}

/** Literal text, or the path of a placeholder. */
type Segment = string | readonly string[];

/** The placeholder that begins with the two braces at `open`, or null. It never looks beyond the next brace. */
function placeholderAt(text: string, open: number): { path: readonly string[]; end: number } | null {
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

/** Space, tab, line feed and carriage return. */
function isBlank(code: number): boolean {
  return code === SPACE || code === 0x09 || code === 0x0a || code === 0x0d;
}

function skipName(text: string, from: number): number {
  let at = from;
  while (isNameCode(text.charCodeAt(at))) at += 1;
  return at;
}

/** False for NaN too, which is what stands beyond the end. */
function isNameCode(code: number): boolean {
  return code > SPACE && code !== DOT && code !== BRACE_OPEN && code !== BRACE_CLOSE;
}

/** Own properties only: what a prototype has is no data. */
function valueAt(data: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = data;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    // Guaranteed by hasOwn above; arrays are indexed by their decimal names.
    value = (value as JsonObject)[name];
  }
  return value;
}

function write(value: Json | undefined, escape: Escape): string {
  const text = asText(value);
  return escape === "html" ? escapeHtml(text) : text;
}

function asText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
