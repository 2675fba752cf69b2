import { interleaved } from "../content/template.ts";
import { base64Lines, type EncodedBody, encodedText, isPlain, latinSurplus, withCrlf } from "./body-encoding.ts";
import { brokenHead, endsEscaped, escapedText, softBroken } from "./quoted-printable.ts";

/** From this length on, text that shares a line with a value is encoded in advance, after a soft break of its own. */
const LONG_CHARS = 240;
/** Start of the range after the value in which that soft break goes. */
const CUT_FROM = 40;
const CUT_TO = 200;

/** A run of text that starts and ends at line starts: encoded once, or, around values, once per message. */
type Run =
  | { readonly kind: "fixed"; readonly encoded: string }
  | {
      readonly kind: "filled";
      /** Escaped text around the values. */
      readonly around: readonly string[];
      /** Index of the first value. */
      readonly from: number;
      /** The end of the run: the end of a line, a soft break, or the end of the text. */
      readonly end: "line" | "soft" | "text";
    };

/**
 * A text with gaps, prepared for the wire: all lines without gaps are encoded once. The result equals encoding the
 * whole filled text, except for soft breaks on long lines. If a value would combine with the text around it (half a
 * line end, half a character), the whole text is encoded instead.
 */
export class BodySkeleton {
  /** The literals with CRLF line ends. */
  private readonly lines: readonly string[];
  private readonly surplus: number;
  private readonly isFragile: boolean;
  private readonly mayBePlain: boolean;
  private readonly made: { runs: readonly Run[] | null } = { runs: null };

  /** @param literals the text around the gaps, one more than there are gaps */
  constructor(private readonly literals: readonly string[]) {
    this.isFragile = literals.some(
      (text, i) => !text.isWellFormed() || (i < literals.length - 1 && text.endsWith("\r")),
    );
    this.lines = literals.map(withCrlf);
    this.surplus = latinSurplus(this.lines.join(""));
    // If a literal's own lines are too long, they stay too long with values.
    this.mayBePlain = this.lines.every(isPlain);
  }

  encode(values: readonly string[]): EncodedBody {
    if (this.isFragile || values.some(isOdd)) return encodedText(interleaved(this.literals, values));
    const filling = values.map((value) => (value.includes("\n") ? value.replaceAll("\n", "\r\n") : value));
    if (this.mayBePlain) {
      const text = interleaved(this.lines, filling);
      if (isPlain(text)) return { encoding: "7bit", body: text };
    }
    if (!this.isReadable(filling)) return { encoding: "base64", body: base64Lines(interleaved(this.lines, filling)) };
    return { encoding: "quoted-printable", body: this.filled(filling) };
  }

  private isReadable(values: readonly string[]): boolean {
    let chars = 0;
    for (const value of values) chars += value.length;
    if (this.surplus > chars) return true;
    return values.reduce((sum, value) => sum + latinSurplus(value), this.surplus) > 0;
  }

  private filled(values: readonly string[]): string {
    this.made.runs ??= encodeRuns(this.lines);
    let body = "";
    for (const run of this.made.runs) body += run.kind === "fixed" ? run.encoded : filledRun(run, values);
    return body;
  }
}

/** Whether a value could combine with the text next to it. */
function isOdd(value: string): boolean {
  return value.includes("\r") || !value.isWellFormed();
}

function filledRun({ around, from, end }: Extract<Run, { kind: "filled" }>, values: readonly string[]): string {
  let text = around[0] ?? "";
  for (let i = 1; i < around.length; i += 1) text += escapedText(values[from + i - 1] ?? "") + (around[i] ?? "");
  if (end !== "soft") return softBroken(endsEscaped(text));
  const lines = softBroken(endsEscaped(`${text}\r\n`));
  return `${lines.slice(0, -"\r\n".length)}=\r\n`;
}

function encodeRuns(literals: readonly string[]): readonly Run[] {
  const writer = new RunWriter();
  literals.forEach((literal, i) => writer.add(literal, { gap: i, isLast: i === literals.length - 1 }));
  return writer.runs;
}

class RunWriter {
  readonly runs: Run[] = [];
  /** The run whose line has not ended. */
  private open: { readonly around: string[]; readonly from: number } | null = null;

  /** Adds a piece of text; the gap with that number follows it unless it is the last. */
  add(literal: string, { gap, isLast }: { readonly gap: number; readonly isLast: boolean }): void {
    let text = literal;
    if (this.open !== null) {
      const lineEnd = text.indexOf("\r\n");
      const end = lineEnd === -1 ? text.length : lineEnd + "\r\n".length;
      const cut = end > LONG_CHARS ? findCut(text) : 0;
      this.open.around.push(escapedText(text.slice(0, cut || end)));
      if (cut === 0 && lineEnd === -1) {
        if (isLast) this.close("text");
        return;
      }
      this.close(cut === 0 ? "line" : "soft");
      text = text.slice(cut || end);
    }
    if (isLast) return this.addFixed(softBroken(endsEscaped(escapedText(text))));
    const lineStart = text.lastIndexOf("\r\n") + 1;
    const start = lineStart === 0 ? 0 : lineStart + 1;
    if (start > 0) this.addFixed(softBroken(endsEscaped(escapedText(text.slice(0, start)))));
    const head = escapedText(text.slice(start));
    if (head.length <= LONG_CHARS) this.open = { around: [head], from: gap };
    else {
      const { lines, rest } = brokenHead(head);
      this.addFixed(lines);
      this.open = { around: [rest], from: gap };
    }
  }

  private addFixed(encoded: string): void {
    if (encoded !== "") this.runs.push({ kind: "fixed", encoded });
  }

  private close(end: "line" | "soft" | "text"): void {
    if (this.open !== null) this.runs.push({ kind: "filled", ...this.open, end });
    this.open = null;
  }
}

const BEFORE_BLANK = /^[^ \t] $/;

/**
 * Finds the position at which to break a long line: after a tag or before a space if there is one, and always between
 * two characters.
 */
function findCut(text: string): number {
  for (let at = CUT_FROM; at < CUT_TO; at += 1)
    if (text[at - 1] === ">" || BEFORE_BLANK.test(text.slice(at - 1, at + 1))) return at;
  // Not between the halves of a surrogate pair.
  return (text.codePointAt(CUT_TO - 1) ?? 0) > 0xffff ? CUT_TO + 1 : CUT_TO;
}
