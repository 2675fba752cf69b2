/** A mail server's reply (RFC 5321, 4.2): its code, and its lines, code included, with a line feed between them. */
export interface SmtpReply {
  readonly code: number;
  readonly text: string;
}

export function isPositive(code: number): boolean {
  return code >= 200 && code < 300;
}

/** More than any reply has; beyond it the server is not listened to any longer. */
const REPLY_CHARS_MAX = 1024 * 1024;
const LINE = /^[2-5]\d\d(?:[ -]|$)/;

/** Puts replies together out of whatever pieces they come in. */
export class ReplyReader {
  /** The line that has not ended, an octet a character. */
  private rest = "";
  /** Lines of a reply that has not ended. */
  private lines: string[] = [];
  private chars = 0;

  /** What came of a reply that has not ended. */
  get unfinished(): string {
    return decoded([...this.lines, this.rest].join("\n"));
  }

  /** The replies that have ended, or null: it is none that comes, or one without end. */
  read(chunk: Buffer): readonly SmtpReply[] | null {
    const text = chunk.toString("latin1");
    this.chars += text.length;
    // Nothing is looked at twice, however small the pieces are.
    if (!text.includes("\n")) {
      this.rest += text;
      return this.chars > REPLY_CHARS_MAX ? null : NONE;
    }
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    const replies: SmtpReply[] = [];
    for (const ended of lines) {
      const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
      // Some servers say an empty line where nothing is to be said.
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

/** As UTF-8 where it is that, otherwise an octet a character. */
function decoded(octets: string): string {
  if (!/[\x80-\xff]/.test(octets)) return octets;
  const text = Buffer.from(octets, "latin1").toString("utf8");
  return text.includes("\ufffd") ? octets : text;
}
