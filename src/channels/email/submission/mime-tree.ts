import { type Field, fieldsIn, parseStructured, type Structured } from "./header-fields.ts";
import { submissionLimits } from "./limits.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

/** A message, or a part of one (RFC 2045, 2.4). It has no bytes of its own, only positions in the received ones. */
export interface Entity {
  /** All bytes around it. */
  readonly source: Buffer;
  readonly fields: readonly Field[];
  readonly type: Structured;
  readonly disposition: Structured | null;
  /** In lower case; "" if there is none. */
  readonly encoding: string;
  readonly bodyStart: number;
  readonly end: number;
  /** The parts of a multipart with a boundary, or the message within a message. */
  readonly children: readonly Entity[];
  /** Whether readable text follows the last part of a multipart, where it is not displayed. */
  readonly hasEpilogue: boolean;
}

const { dashedLinesMax, headerBytesMax, headerLinesMax, linesMax, nestingMax } = submissionLimits;
const [NEWLINE, RETURN, DASH] = [0x0a, 0x0d, 0x2d];
/** Encodings that leave the bytes as they are (RFC 2045, 6.2). */
export const IDENTITY: ReadonlySet<string> = new Set(["", "7bit", "8bit", "binary"]);

/**
 * Finds the parts of any message in time proportional to its length. Throws an `SmtpRefusal` for one with too many
 * pieces: each costs memory, however short it is.
 *
 * M1. Possible boundary lines are searched for once, and compared once for each of the multiparts around them.
 * M2. A line that ends an outer multipart ends all inner ones (RFC 2046, 5.1.2).
 * M3. A line that is no header begins the body, as in mail servers.
 */
export function mimeTree(source: Buffer): Entity {
  return new Reader(source).entity(0, source.length, { depth: 0, type: MESSAGE });
}

const MESSAGE: Structured = { value: "text/plain", params: new Map(), isClean: true };
const IN_DIGEST: Structured = { value: "message/rfc822", params: new Map(), isClean: true };

interface Around {
  readonly depth: number;
  /** The type of an entity that names none. */
  readonly type: Structured;
}

class Reader {
  /** Positions of lines that begin with two dashes. */
  private readonly dashed: number[] = [];
  private headerLines = 0;

  constructor(private readonly source: Buffer) {
    let lines = 0;
    for (let at = 0; at < source.length; lines += 1) {
      if (source[at] === DASH && source[at + 1] === DASH) this.dashed.push(at);
      const end = source.indexOf(NEWLINE, at);
      if (end === -1) break;
      at = end + 1;
    }
    if (lines > linesMax || this.dashed.length > dashedLinesMax) throw tooMany("lines or parts");
  }

  entity(start: number, end: number, around: Around): Entity {
    if (around.depth > nestingMax) throw unreadable("parts within one another");
    const bodyStart = this.headEnd(start, end);
    const fields = fieldsIn(this.source.toString("latin1", start, bodyStart));
    const findValue = (name: string) => fields.find(({ key }) => key === name)?.value;
    const [given, disposition] = [findValue("content-type"), findValue("content-disposition")];
    const type = given === undefined ? around.type : parseStructured(given);
    const encoding = (findValue("content-transfer-encoding") ?? "")
      .replace(/\(.*?\)|;.*/g, "")
      .trim()
      .toLowerCase();
    const body = { start: bodyStart, end, depth: around.depth + 1 };
    // A multipart's own encoding is ignored (RFC 2045, 6.4).
    const isOpen = IDENTITY.has(encoding) || type.value.startsWith("multipart/");
    const { children, hasEpilogue } = isOpen ? this.inside(type, body) : NOTHING;
    const known = { type, encoding, disposition: disposition === undefined ? null : parseStructured(disposition) };
    return { source: this.source, fields, ...known, bodyStart, end, children, hasEpilogue };
  }

  /** Returns the position at which the body begins. */
  private headEnd(start: number, end: number): number {
    let at = start;
    while (at < end) {
      const newline = this.source.indexOf(NEWLINE, at);
      const next = newline === -1 || newline >= end ? end : newline + 1;
      const first = this.source[at];
      if (first === NEWLINE || (first === RETURN && this.source[at + 1] === NEWLINE)) return next;
      const line = this.source.toString("latin1", at, Math.min(next, at + NAME_CHARS_MAX));
      const isMailbox = at === start && /^>?From /.test(line);
      if (!isMailbox && !(FIELD_START.test(line) || (at > start && /^[ \t]/.test(line)))) return at;
      this.headerLines += 1;
      if (this.headerLines > headerLinesMax || next - start > headerBytesMax) throw unreadable("header lines");
      at = next;
    }
    return end;
  }

  private inside(
    type: Structured,
    { start, end, depth }: { readonly start: number; readonly end: number; readonly depth: number },
  ): Pick<Entity, "children" | "hasEpilogue"> {
    if (type.value === "message/rfc822" || type.value === "message/global") {
      return { children: [this.entity(start, end, { depth, type: MESSAGE })], hasEpilogue: false };
    }
    const boundary = type.params.get("boundary") ?? "";
    if (!type.value.startsWith("multipart/") || boundary === "" || boundary.length > BOUNDARY_CHARS_MAX) return NOTHING;
    const around = { depth, type: type.value === "multipart/digest" ? IN_DIGEST : MESSAGE };
    const children: Entity[] = [];
    let from = -1;
    for (let next = this.firstDashed(start); next < this.dashed.length; next += 1) {
      const at = this.dashed[next] ?? end;
      if (at >= end) break;
      const line = this.boundaryLine(at, end, boundary);
      if (line === null) continue;
      if (from !== -1) children.push(this.entity(from, Math.max(from, this.lineEndBefore(at)), around));
      if (line.isLast) return { children, hasEpilogue: /\S/.test(this.source.toString("latin1", line.end, end)) };
      from = line.end;
    }
    // Some programs forget the last boundary.
    if (from !== -1) children.push(this.entity(from, end, around));
    return { children, hasEpilogue: false };
  }

  private firstDashed(start: number): number {
    let [low, high] = [0, this.dashed.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.dashed[middle] ?? 0) < start) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the boundary's line at the position; null if it is another line. */
  private boundaryLine(
    at: number,
    end: number,
    boundary: string,
  ): { readonly isLast: boolean; readonly end: number } | null {
    const behind = at + 2 + boundary.length;
    if (this.source.toString("latin1", at + 2, behind) !== boundary) return null;
    const newline = this.source.indexOf(NEWLINE, behind);
    const next = newline === -1 || newline >= end ? end : newline + 1;
    if (next - behind > BOUNDARY_CHARS_MAX) return null;
    const rest = this.source.toString("latin1", behind, next).trimEnd();
    return rest === "" || rest === "--" ? { isLast: rest === "--", end: next } : null;
  }

  /** Returns the start of the line end before a boundary, which belongs to the boundary. */
  private lineEndBefore(at: number): number {
    if (this.source[at - 1] !== NEWLINE) return at;
    return this.source[at - 2] === RETURN ? at - 2 : at - 1;
  }
}

const NOTHING: Pick<Entity, "children" | "hasEpilogue"> = { children: [], hasEpilogue: false };
/** RFC 2046, 5.1.1 has 70. */
const BOUNDARY_CHARS_MAX = 250;
const NAME_CHARS_MAX = 1_000;
const FIELD_START = /^[!-9;-~]+[ \t]*:/;

/** Yields every entity in it, itself first, except those of messages within it. */
export function* walkLeaves(entity: Entity): Generator<Entity> {
  if (entity.children.length === 0 || !entity.type.value.startsWith("multipart/")) yield entity;
  else for (const child of entity.children) yield* walkLeaves(child);
}

function unreadable(what: string): SmtpRefusal {
  return new SmtpRefusal(554, `5.6.0 the message could not be read: it has more ${what} than are taken`);
}

export function tooMany(what: string): SmtpRefusal {
  return new SmtpRefusal(554, `5.6.0 the message has more ${what} than are taken`);
}
