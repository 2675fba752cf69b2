import type { MailMessage } from "./mime/mail-message.ts";
import { isPositive, type SmtpReply } from "./reply-reader.ts";
import { failureOf, type SmtpFailure } from "./smtp-replies.ts";

interface Line {
  write(text: string, encoding: "latin1" | "utf8"): void;
  /** Called once, with the server's last reply or the reason why it did not take the message. */
  done(result: string | SmtpFailure): void;
}

type Command = "MAIL FROM" | "RCPT TO" | "DATA";
/** The subject of the next reply: a command, the message, or the end of a message without recipients. */
type Awaited = Command | "message" | "nothing";

const NEXT: Readonly<Record<Command, Awaited>> = { "MAIL FROM": "RCPT TO", "RCPT TO": "DATA", DATA: "message" };

/**
 * One message over a connection: MAIL, RCPT and DATA, written at once if the server offers PIPELINING (RFC 2920), then the
 * message in one piece.
 *
 * Invariants:
 * M1. The message is written only once sender and recipient are accepted and the server has asked for it.
 * M2. A server that asks for the message although it refused the recipient gets an empty one, which goes to nobody.
 * M3. The first refusal decides the message's outcome, whatever the server says or does afterwards.
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

  constructor(
    private readonly mail: MailMessage,
    private readonly offers: ReadonlySet<string>,
    private readonly line: Line,
  ) {
    this.isPipelined = offers.has("PIPELINING");
  }

  begin(): void {
    const mailFrom = this.mailFrom();
    if (this.isPipelined) this.say(`${mailFrom}RCPT TO:<${this.mail.to}>\r\nDATA\r\n`, 3);
    else this.say(mailFrom, 1);
  }

  onReply(reply: SmtpReply): void {
    this.owed -= 1;
    const { awaited } = this;
    switch (awaited) {
      case "MAIL FROM":
      case "RCPT TO":
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
    this.end(this.refusal ?? failureOf(error, "message"));
  }

  private afterEnvelope({ code }: SmtpReply, command: "MAIL FROM" | "RCPT TO"): void {
    // The server closes the connection and answers none of the pipelined commands.
    if (code === 421) return this.onEnd(null);
    this.awaited = NEXT[command];
    if (this.isPipelined) return;
    if (this.refusal !== null) return this.settle(this.refusal);
    this.say(command === "MAIL FROM" ? `RCPT TO:<${this.mail.to}>\r\n` : "DATA\r\n", 1);
  }

  private afterData(reply: SmtpReply): void {
    // Some servers answer 250 instead of 354.
    const isListening = Math.floor(reply.code / 100) === 3 || (this.refusal === null && isPositive(reply.code));
    if (this.refusal === null) {
      if (!isListening) return this.settle(refused("EENVELOPE", reply, "DATA"));
      this.awaited = "message";
      this.isOffered = true;
      return this.say(this.stuffed(), 1);
    }
    if (!isListening) return this.settle(this.refusal);
    // A server that asks for a message without a sender cannot be trusted with an empty one either.
    if (this.refusal.command === "MAIL FROM") return this.end(this.refusal);
    this.awaited = "nothing";
    this.say(".\r\n", 1);
  }

  private mailFrom(): string {
    const { from, to, text } = this.mail;
    const size = this.offers.has("SIZE") ? ` SIZE=${Buffer.byteLength(text, "utf8")}` : "";
    const utf8 = this.offers.has("SMTPUTF8") && NOT_ASCII.test(from + to) ? " SMTPUTF8" : "";
    return `MAIL FROM:<${from}>${utf8}${size}\r\n`;
  }

  /** The message with its end marker, and with dots doubled at line starts (RFC 5321, 4.5.2). */
  private stuffed(): string {
    const { text } = this.mail;
    const lines = text.includes("\n.") ? text.replaceAll("\n.", "\n..") : text;
    return `${lines}.\r\n`;
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

const NOT_ASCII = /[^\0-\x7f]/;

function refused(code: "EENVELOPE" | "EMESSAGE", reply: SmtpReply, command: Command): SmtpFailure {
  return { stage: "message", code, replyCode: reply.code, reply: reply.text, command };
}
