import { type MailMessage, NOT_ASCII } from "../mime/mail-message.ts";
import { isPositive, type SmtpReply } from "./reply-reader.ts";
import { isTooMany, type SmtpFailure, toSmtpFailure } from "./smtp-replies.ts";

interface Line {
  write(text: string, encoding: "latin1" | "utf8"): void;
  /** Writes the message: its text, then its pieces, as fast as the server reads. */
  pour(text: string, pieces: Iterator<Buffer>): void;
  /** Called once, with the server's last reply or the reason why it did not take the message. */
  done(result: string | SmtpFailure): void;
}

type Command = "MAIL FROM" | "RCPT TO" | "DATA";
/** The time limit for a reply (`SmtpTimeouts`). */
export type ReplyWait = "envelopeMs" | "dataMs" | "endMs";
/** The subject of the next reply: a command, the message, or the end of a message without recipients. */
type Awaited = Command | "message" | "nothing";

const NEXT: Readonly<Record<Command, Awaited>> = { "MAIL FROM": "RCPT TO", "RCPT TO": "DATA", DATA: "message" };
const WAITS: Readonly<Record<Awaited, ReplyWait>> = {
  "MAIL FROM": "envelopeMs",
  "RCPT TO": "envelopeMs",
  DATA: "dataMs",
  message: "endMs",
  nothing: "dataMs",
};

/**
 * One message over a connection: MAIL, RCPT and DATA, written at once if the server offers PIPELINING (RFC 2920), then the
 * message in one piece. With several recipients DATA waits for the answers about them.
 *
 * Invariants:
 * M1. The message is written only once sender and recipient are accepted and the server has asked for it.
 * M2. A server that asks for the message although it refused the recipient gets an empty one, which reaches no
 *     recipient. If the server accepted some of several recipients, DATA is sent only if the whole message is to be
 *     sent.
 * M3. Recipients beyond the server's limit per transaction are neither refused nor sent to: they are `left` (RFC 5321,
 *     4.5.3.1.10).
 * M4. The first refusal decides the message's outcome, whatever the server says or does afterwards.
 */
export class SmtpTransaction {
  /** Whether any of the message was written. */
  isOffered = false;
  /** Whether the server has answered everything and no command is in flight. */
  isSettled = false;
  owed = 0;
  private awaited: Awaited = "MAIL FROM";
  private refusal: SmtpFailure | null = null;
  private readonly isPipelined: boolean;
  private isDone = false;
  /** Recipients whose RCPT is not answered yet, if there are several. */
  private readonly asked: string[] = [];
  private readonly refused = new Map<string, SmtpFailure>();
  private accepted = 0;
  /** Recipients beyond the server's limit per transaction. */
  readonly left: string[] = [];

  constructor(
    private readonly mail: MailMessage,
    private readonly offers: ReadonlySet<string>,
    private readonly line: Line,
  ) {
    this.isPipelined = offers.has("PIPELINING");
  }

  get waits(): ReplyWait {
    return WAITS[this.awaited];
  }

  begin(): void {
    const { to, further } = this.mail;
    if (further !== undefined) this.asked.push(to, ...further.addresses);
    if (!this.offers.has("SMTPUTF8") && this.isUtf8()) return this.settle(NO_SMTPUTF8);
    if (this.mail.isEightBit === true && !this.offers.has("8BITMIME")) return this.settle(NO_8BITMIME);
    const mailFrom = this.mailFrom();
    if (this.isPipelined && this.asked.length > 0) {
      const recipients = this.asked.map(rcptTo).join("");
      this.say(mailFrom + recipients, 1 + this.asked.length);
    } else if (this.isPipelined) this.say(`${mailFrom}RCPT TO:<${this.mail.to}>\r\nDATA\r\n`, 3);
    else this.say(mailFrom, 1);
  }

  onReply(reply: SmtpReply): void {
    this.owed -= 1;
    const { awaited } = this;
    switch (awaited) {
      case "MAIL FROM":
      case "RCPT TO":
        if (awaited === "RCPT TO" && this.asked.length > 0) return this.afterRecipient(this.asked, reply);
        if (!isPositive(reply.code)) this.refusal ??= refused("EENVELOPE", reply, awaited);
        return this.afterEnvelope(reply, awaited);
      case "DATA":
        return this.afterData(reply);
      case "message":
        if (!isPositive(reply.code)) return this.settle(refused("EMESSAGE", reply, "DATA"));
        return this.settle(reply.text);
      case "nothing":
        return this.settle(this.refusal ?? refused("EENVELOPE", reply, "DATA"));
    }
  }

  onEnd(error: unknown): void {
    const failure = toSmtpFailure(error, "message");
    const { replyCode, reply } = failure;
    const isPositiveReply = replyCode !== null && isPositive(replyCode);
    if (isPositiveReply && this.awaited === "message") return this.end(reply ?? "");
    this.end(this.refusal ?? (isPositiveReply ? { ...failure, replyCode: null, reply: null, command: null } : failure));
  }

  private afterEnvelope({ code }: SmtpReply, command: "MAIL FROM" | "RCPT TO"): void {
    // The server closes the connection and answers none of the pipelined commands.
    if (code === 421) return this.onEnd(null);
    this.awaited = NEXT[command];
    if (this.isPipelined) return;
    if (this.refusal !== null) return this.settle(this.refusal);
    this.say(command === "MAIL FROM" ? rcptTo(this.mail.to) : "DATA\r\n", 1);
  }

  /** Handles the reply to the oldest unanswered RCPT. */
  private afterRecipient(asked: string[], reply: SmtpReply): void {
    const refusal = isPositive(reply.code) ? null : refused("EENVELOPE", reply, "RCPT TO");
    if (reply.code === 421) {
      // The server closes the connection, so no recipient gets the message.
      this.refusal ??= refusal;
      return this.onEnd(null);
    }
    const address = asked.shift() ?? "";
    if (refusal === null) this.accepted += 1;
    else if (this.accepted > 0 && isTooMany(reply)) this.left.push(address);
    else this.refused.set(address, refusal);
    const [next] = asked;
    if (next !== undefined) return this.isPipelined ? undefined : this.say(rcptTo(next), 1);
    if (this.refused.size > 0) this.refusal ??= this.mail.further?.judge(this.refused) ?? null;
    if (this.refusal !== null) return this.settle(this.refusal);
    this.awaited = "DATA";
    this.say("DATA\r\n", 1);
  }

  private afterData(reply: SmtpReply): void {
    // Some servers answer 250 instead of 354.
    const isListening = Math.floor(reply.code / 100) === 3 || (this.refusal === null && isPositive(reply.code));
    if (this.refusal === null) {
      if (!isListening) return this.settle(refused("EENVELOPE", reply, "DATA"));
      this.awaited = "message";
      this.isOffered = true;
      return this.sayMessage();
    }
    if (!isListening) return this.settle(this.refusal);
    // A server that asks for a message without a sender cannot be trusted with an empty one either.
    if (this.refusal.command === "MAIL FROM") return this.end(this.refusal);
    this.awaited = "nothing";
    this.say(".\r\n", 1);
  }

  /** Whether the envelope or a header has an address beyond ASCII (RFC 6531, 3.4). */
  private isUtf8(): boolean {
    const { from, to, isUtf8 = false } = this.mail;
    return isUtf8 || NOT_ASCII.test(from + to + this.asked.join(""));
  }

  private mailFrom(): string {
    const { from, text, rest, isEightBit } = this.mail;
    const bytes = Buffer.byteLength(text, "utf8") + (rest?.bytes ?? 0);
    const size = this.offers.has("SIZE") ? ` SIZE=${bytes}` : "";
    const utf8 = this.offers.has("SMTPUTF8") && this.isUtf8() ? " SMTPUTF8" : "";
    const body = isEightBit === true ? " BODY=8BITMIME" : "";
    return `MAIL FROM:<${from}>${utf8}${body}${size}\r\n`;
  }

  /** Sends the message with its end marker. */
  private sayMessage(): void {
    const { text, rest } = this.mail;
    if (rest === undefined) return this.say(`${stuffed(text)}.\r\n`, 1);
    this.owed += 1;
    this.line.pour(stuffed(text), withEnd(rest.chunks(stuffed)));
  }

  private say(text: string, replies: number): void {
    this.owed += replies;
    this.line.write(text, Buffer.byteLength(text, "utf8") === text.length ? "latin1" : "utf8");
  }

  private settle(result: string | SmtpFailure): void {
    this.isSettled = true;
    this.end(result);
  }

  private end(result: string | SmtpFailure): void {
    if (this.isDone) return;
    this.isDone = true;
    this.line.done(result);
  }
}

const NO_SMTPUTF8: SmtpFailure = { stage: "message", code: "ESMTPUTF8", replyCode: null, reply: null, command: null };
const NO_8BITMIME: SmtpFailure = { ...NO_SMTPUTF8, code: "E8BITMIME" };

function rcptTo(address: string): string {
  return `RCPT TO:<${address}>\r\n`;
}

/** Doubles dots at line starts (RFC 5321, 4.5.2). */
function stuffed(text: string): string {
  return text.includes("\n.") ? text.replaceAll("\n.", "\n..") : text;
}

function* withEnd(chunks: Iterable<Buffer>): Generator<Buffer> {
  yield* chunks;
  yield Buffer.from(".\r\n");
}

function refused(code: "EENVELOPE" | "EMESSAGE", reply: SmtpReply, command: Command): SmtpFailure {
  return { stage: "message", code, replyCode: reply.code, reply: reply.text, command };
}
