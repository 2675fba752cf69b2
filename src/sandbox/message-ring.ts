import type { SandboxMailbox, SandboxMessage } from "../core/report.ts";
import { subjectIn } from "./mail-headers.ts";

/** A message as it arrived. */
export interface ReceivedMail {
  readonly receivedAtMs: number;
  readonly from: string;
  readonly to: string;
  readonly source: Buffer;
}

/** The latest messages, within a number and a size. Headers are read when somebody looks, not when mail arrives. */
export class MessageRing implements SandboxMailbox {
  /** Oldest first; those before `first` are gone. */
  private mails: ReceivedMail[] = [];
  private first = 0;
  private bytes = 0;

  constructor(
    private readonly messagesMax: number,
    private readonly bytesMax: number,
  ) {}

  add(mail: ReceivedMail): void {
    this.mails.push(mail);
    this.bytes += mail.source.length;
    while (this.first < this.mails.length && this.isOverfull()) {
      this.bytes -= this.mails[this.first]?.source.length ?? 0;
      this.first += 1;
    }
    // Now and then, so that dropping one message does not move all others.
    if (this.first >= this.messagesMax) {
      this.mails = this.mails.slice(this.first);
      this.first = 0;
    }
  }

  messages(to: string | null, limit: number): readonly SandboxMessage[] {
    const wanted = to?.toLowerCase() ?? null;
    const found: SandboxMessage[] = [];
    for (let at = this.mails.length - 1; at >= this.first && found.length < limit; at -= 1) {
      const mail = this.mails[at];
      if (mail && (wanted === null || mail.to.toLowerCase() === wanted)) found.push(readable(mail));
    }
    return found;
  }

  private isOverfull(): boolean {
    return this.mails.length - this.first > this.messagesMax || this.bytes > this.bytesMax;
  }
}

function readable({ receivedAtMs, from, to, source }: ReceivedMail): SandboxMessage {
  return {
    channel: "email",
    received_at: new Date(receivedAtMs).toISOString(),
    from,
    to,
    subject: subjectIn(source),
    source: source.toString("utf8"),
  };
}
