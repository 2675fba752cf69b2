/** A mail server's reply (RFC 5321, 4.2): its code, and its lines, code included, with a line feed between them. */
export interface SmtpReply {
  readonly code: number;
  readonly text: string;
}

export function isPositive(code: number): boolean {
  return code >= 200 && code < 300;
}

/**
 * Longer than any real reply; beyond it the client stops reading. A reply in lines, or pieces, of a few bytes takes up to fifty times
 * as much memory: 3 MB.
 */
const REPLY_CHARS_MAX = 64 * 1024;
const LINE = /^[2-5]\d\d(?:[ -]|$)/;

/** Assembles replies from chunks of any size. */
export class ReplyReader {
  /** The unfinished line, one byte per character. */
  private rest = "";
  /** Lines of the unfinished reply. */
  private lines: string[] = [];
  private chars = 0;

  /** The received part of an unfinished reply. */
  get unfinished(): string {
    return decoded([...this.lines, this.rest].join("\n"));
  }

  /** Returns the complete replies; null if the input is not a reply, or never ends. */
  read(chunk: Buffer): readonly SmtpReply[] | null {
    const text = chunk.toString("latin1");
    this.chars += text.length;
    // No byte is scanned twice, however small the chunks are.
    if (!text.includes("\n")) {
      this.rest += text;
      return this.chars > REPLY_CHARS_MAX ? null : NONE;
    }
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    const replies: SmtpReply[] = [];
    for (const ended of lines) {
      const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
      // Some servers send empty lines where no reply is due.
      if (line.trim() === "") continue;
      if (!LINE.test(line)) return null;
      this.lines.push(line);
      if (line[3] === "-") continue;
      replies.push({ code: Number(line.slice(0, 3)), text: decoded(this.lines.join("\n")) });
      this.lines = [];
      this.chars = this.rest.length;
    }
    return this.chars > REPLY_CHARS_MAX ? null : replies;
  }
}

const NONE: readonly SmtpReply[] = [];

/** Decodes octets (one per character) as UTF-8 if they are valid, otherwise as Latin-1. */
export function decoded(octets: string): string {
  if (!/[\x80-\xff]/.test(octets)) return octets;
  const text = Buffer.from(octets, "latin1").toString("utf8");
  return text.includes("\ufffd") ? octets : text;
}
