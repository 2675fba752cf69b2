import { appendFileSync, renameSync } from "node:fs";
import { parseMessageId } from "../../src/channels/email/message-id.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { startSmtpServer, type TestSmtpServer } from "../support/smtp-server.ts";
import type { Book } from "./book.ts";

/**
 * How the mail server takes messages: as it should; not at all (it greets with 421, or answers every message with 451);
 * it takes them and stays silent; it takes its time; it wants fewer.
 */
export type MailMood = "ok" | "closed" | "broken" | "silent" | "slow" | "throttled";

const HEAD_CHARS = 16 * 1024;
const SLOW_MS = 3_000;
const LOG_EVERY_MS = 200;
/** The number of messages between two whose unsubscribe link is followed, or whose pixel is loaded. */
const LINK_EVERY = 40;
const PIXEL_EVERY = 30;
/** One of this many messages that it took comes back later. */
const BOUNCED_EVERY = 150;

/**
 * The mail server that Waybill submits to, as the book-keeper's witness: it notes each message that it accepts, and
 * writes Postfix's log about it. It refuses recipients `nouser…` and accepts `grey…` at the second try.
 */
export class MailProvider {
  mood: MailMood = "ok";
  refused = 0;
  /** Unsubscribe links of some of the messages, newest last. */
  readonly links: { readonly seq: number; readonly address: string; readonly url: string }[] = [];
  /** The tracking pixels of some of the messages. */
  readonly pixels: string[] = [];
  private readonly seenGrey = new Set<string>();
  private lines: string[] = [];
  private taken = 0;
  private readonly timer = setInterval(() => this.writeLog(), LOG_EVERY_MS);

  private constructor(
    private readonly book: Book,
    readonly logFile: string,
  ) {}

  private server!: TestSmtpServer;
  proxy!: FaultProxy;

  static async start(book: Book, logFile: string): Promise<MailProvider> {
    const provider = new MailProvider(book, logFile);
    provider.server = await startSmtpServer({
      hideENHANCEDSTATUSCODES: true,
      onConnect: (_session, callback) => {
        if (provider.mood === "closed") return callback(reply(421, "4.3.2 Service not available"));
        callback();
      },
      onRcptTo: ({ address }, _session, callback) => callback(provider.refusal(address)),
      onData: (stream, session, callback) => {
        let head = "";
        stream.on("data", (chunk: Buffer) => {
          if (head.length < HEAD_CHARS) head += chunk.toString("latin1");
        });
        const recipient = session.envelope.rcptTo[0]?.address ?? "";
        stream.on("end", () => provider.take(head, recipient, callback));
      },
    });
    provider.proxy = await FaultProxy.start({ port: provider.server.port });
    appendFileSync(logFile, "");
    return provider;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.proxy.port}`;
  }

  /** As logrotate does: the old file keeps its lines, and a new one begins. */
  rotateLog(): void {
    this.writeLog();
    renameSync(this.logFile, `${this.logFile}.1`);
    appendFileSync(this.logFile, "");
  }

  writeLog(): void {
    if (this.lines.length === 0) return;
    appendFileSync(this.logFile, `${this.lines.join("\n")}\n`);
    this.lines = [];
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.proxy.stop();
    await this.server.stop();
  }

  private refusal(address: string): Error | null {
    if (address.startsWith("nouser")) return reply(550, "5.1.1 Recipient address rejected: User unknown");
    if (this.mood === "throttled" && Math.random() < 0.5) return reply(450, "4.7.1 Too much mail from you, slow down");
    if (!address.startsWith("grey") || this.seenGrey.has(address)) return null;
    this.seenGrey.add(address);
    return reply(451, "4.7.1 Greylisted, try again later");
  }

  private take(head: string, recipient: string, callback: (error?: Error | null, message?: string) => void): void {
    if (this.mood === "broken") {
      this.refused += 1;
      return callback(reply(451, "4.3.0 Temporary lookup failure"));
    }
    const messageId = /^message-id:\s*<([^>]+)>/im.exec(head)?.[1] ?? "none";
    const seq = Number(/^x-soak:\s*(\d+)/im.exec(head)?.[1] ?? Number.NaN);
    const isSilent = this.mood === "silent";
    // Messages without our header belong to carried tests, not to a request.
    if (Number.isInteger(seq)) this.book.arrived(seq, parseMessageId(messageId)?.jobId ?? messageId, isSilent);
    else this.book.misdeed("nothing comes from nowhere", `a mail without a number: ${messageId} to ${recipient}`);
    if (isSilent) return;
    this.taken += 1;
    this.log(messageId, recipient, seq);
    const link = /^list-unsubscribe:\s*<([^>]+)>/im.exec(head)?.[1];
    if (link !== undefined && this.taken % LINK_EVERY === 0) this.links.push({ seq, address: recipient, url: link });
    const pixel = /http:\/\/[\w.:]+\/t\/o\/[\w.-]+\.gif/.exec(head.replaceAll("=\r\n", ""))?.[0];
    if (pixel !== undefined && this.taken % PIXEL_EVERY === 0) this.pixels.push(pixel);
    const answer = () => callback(null, "2.0.0 Ok: queued as 4jWcZx67mFzMCQZ");
    if (this.mood === "slow") setTimeout(answer, SLOW_MS);
    else answer();
  }

  /** Writes Postfix's log lines of a message, from its queue id to its end. */
  private log(messageId: string, recipient: string, seq: number): void {
    const id = this.taken.toString(16).toUpperCase().padStart(8, "0");
    const line = (program: string, pid: number, text: string) =>
      this.lines.push(
        `${new Date().toISOString().replace("Z", "+00:00")} mx postfix/${program}[${pid}]: ${id}: ${text}`,
      );
    line("cleanup", 11, `message-id=<${messageId}>`);
    const end =
      this.taken % BOUNCED_EVERY === 0
        ? "dsn=5.2.2, status=bounced (host mx.example.com[192.0.2.1] said: 552 5.2.2 Mailbox over quota (in reply to RCPT TO command))"
        : "dsn=2.0.0, status=sent (250 2.0.0 Ok: queued as 1234)";
    line("smtp", 12, `to=<${recipient}>, relay=mx.example.com[192.0.2.1]:25, delay=0.4, delays=0.1/0/0.1/0.2, ${end}`);
    line("qmgr", 13, "removed");
    if (end.includes("status=sent") && Number.isInteger(seq)) this.book.confirmed.add(seq);
  }
}

function reply(responseCode: number, text: string): Error {
  return Object.assign(new Error(text), { responseCode });
}
