import type { Socket } from "node:net";
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from "smtp-server";
import { recipientKey } from "../../../domain/channels/email.ts";
import { FirstTries, MessageRing } from "../../../domain/channels/sandbox.ts";
import type { Clock, Timer } from "../../../domain/clock.ts";
import type { DeliveryReport, SandboxInbox, SandboxMessage } from "../../../domain/jobs/report.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { extractDomain } from "../../../domain/texts/split-address.ts";
import { furtherRecipient, type MailedJob, parseMessageId } from "../message-id.ts";
import { attachmentsIn, messageIdIn, subjectIn } from "./mail-headers.ts";

export interface SmtpSandboxOptions {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Receives the reports that a mail server's log would contain later. Must not throw. */
  onReport(report: DeliveryReport): void;
  /** Messages stored for reading, default 1,000. */
  readonly messagesMax?: number;
  /** Bytes stored for reading, default 64 MiB. */
  readonly bytesMax?: number;
}

export interface SmtpSandbox {
  /** `smtp://127.0.0.1:<port>` */
  readonly url: string;
  readonly inbox: SandboxInbox;
  /** Drops all connections, whatever they wait for, and all reports not yet made. Safe to repeat. */
  stop(): Promise<void>;
}

/** The fate of mail, by the domain of its recipient. */
type SandboxOutcome = "delivered" | "bounced" | "refused" | "deferred" | "slow" | "dropped";

const OUTCOMES: Readonly<Record<string, SandboxOutcome>> = {
  "bounce.test": "bounced",
  "reject.test": "refused",
  "defer.test": "deferred",
  "slow.test": "slow",
  "down.test": "dropped",
};

const MESSAGES_MAX_DEFAULT = 1_000;
const BYTES_MAX_DEFAULT = 64 * 1024 * 1024;
/** The largest mail that SMTP submission accepts, in base64, with its surroundings. */
const MESSAGE_BYTES_MAX = 20 * 1024 * 1024;
const CLIENTS_MAX = 1_000;
const RECIPIENTS_MAX = 100;
const SLOW_MS = 10_000;
const REPORT_DELAY_MS = 5;
const DEFERRALS = 2;
/** Messages whose deferrals are counted at one time; the oldest is dropped first. */
const DEFERRED_MAX = 10_000;

/** Starts a mail server on a free loopback port that accepts all mail and forwards none. */
export async function startSmtpSandbox(options: SmtpSandboxOptions): Promise<SmtpSandbox> {
  const sandbox = new Sandbox(options);
  const port = await sandbox.listen();
  return { url: `smtp://127.0.0.1:${port}`, inbox: sandbox.inbox, stop: () => sandbox.stop() };
}

/**
 * The server and its state.
 *
 * Invariants:
 * M1. A message is stored and reported only when the reply that accepts it is on its way; a report follows its reply.
 * M2. All state is bounded: messages by number and size, deferrals by number, connections by number.
 * M3. After `stop` no timer runs, no socket is open and no report is made.
 */
class Sandbox {
  readonly inbox: MessageRing;
  private readonly server: SMTPServer;
  /** Keyed by the client's port, which a session has. */
  private readonly sockets = new Map<number, Socket>();
  private readonly deferrals = new FirstTries(DEFERRED_MAX);
  private readonly timers = new Set<Timer>();
  private reports: DeliveryReport[] = [];
  private accepted = 0;
  private stopped: Promise<void> | null = null;

  constructor(private readonly options: SmtpSandboxOptions) {
    this.inbox = new MessageRing(options.messagesMax ?? MESSAGES_MAX_DEFAULT, options.bytesMax ?? BYTES_MAX_DEFAULT);
    this.server = new SMTPServer({
      name: "sandbox.waybill.test",
      size: MESSAGE_BYTES_MAX,
      maxClients: CLIENTS_MAX,
      maxRecipients: RECIPIENTS_MAX,
      disabledCommands: ["AUTH", "STARTTLS"],
      disableReverseLookup: true,
      logger: false,
      onRcptTo: ({ address }, _session, answer) => answer(outcomeFor(address) === "refused" ? refusal(address) : null),
      onData: (stream, session, answer) => this.receive(stream, session, answer),
    });
    this.server.on("error", (error) => {
      options.telemetry.log("debug", "a sandbox mail connection failed", { error: error.message });
    });
    this.server.server.on("connection", (socket: Socket) => this.track(socket));
  }

  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      const listener = this.server.listen(0, "127.0.0.1", () => {
        this.server.off("error", reject);
        const address = listener.address();
        if (typeof address === "object" && address !== null) resolve(address.port);
        else reject(new Error("the sandbox mail server has no port"));
      });
    });
  }

  stop(): Promise<void> {
    this.stopped ??= new Promise((resolve) => {
      for (const timer of this.timers) timer.cancel();
      this.timers.clear();
      this.reports = [];
      this.server.close(resolve);
      for (const socket of this.sockets.values()) socket.destroy();
    });
    return this.stopped;
  }

  private track(socket: Socket): void {
    const port = socket.remotePort;
    if (port === undefined) return;
    this.sockets.set(port, socket);
    socket.once("close", () => this.sockets.delete(port));
  }

  private receive(stream: SMTPServerDataStream, session: SMTPServerSession, answer: Answer): void {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => {
      // It is refused at its end; until then there is no point in storing it.
      if (!stream.sizeExceeded) chunks.push(chunk);
    });
    stream.on("end", () => {
      if (stream.sizeExceeded) answer(reply(552, "5.3.4 Message is too big"));
      else this.decide(Buffer.concat(chunks), session, answer);
    });
  }

  private decide(source: Buffer, session: SMTPServerSession, answer: Answer): void {
    const { mailFrom, rcptTo } = session.envelope;
    const recipients = rcptTo.map(({ address }) => address);
    const mail = { source, from: mailFrom === false ? "" : mailFrom.address, recipients };
    const outcome = recipients.map(outcomeFor).find((each) => each !== "delivered") ?? "delivered";
    switch (outcome) {
      case "dropped":
        this.sockets.get(session.remotePort)?.destroy();
        return;
      case "deferred":
        return this.isDeferred(mail) ? answer(reply(451, "4.7.1 Try again later")) : this.accept(mail, answer);
      case "slow":
        return this.later(SLOW_MS, () => this.accept(mail, answer));
      default:
        return this.accept(mail, answer);
    }
  }

  /** Counts this attempt. A message is identified by its Message-ID, which stays the same on every attempt. */
  private isDeferred({ source, from, recipients }: Mail): boolean {
    const key = messageIdIn(source) ?? JSON.stringify([from, recipients]);
    return this.deferrals.take(key, DEFERRALS);
  }

  private accept({ source, from, recipients }: Mail, answer: Answer): void {
    this.accepted += 1;
    answer(null, `2.0.0 Ok: queued as ${this.accepted.toString(36).toUpperCase().padStart(10, "0")}`);
    const receivedAtMs = this.options.clock.nowMs();
    const job = parseMessageId(messageIdIn(source) ?? "");
    for (const to of recipients) {
      const show = () => readable({ receivedAtMs, from, to, recipients, source });
      // The bytes are kept once, however many recipients there are.
      this.inbox.add({ to, bytes: Math.ceil(source.length / recipients.length), names: recipients, show });
      if (job !== null) this.report(buildReport(job, to));
    }
  }

  /** Makes reports in batches: one timer per message would slow it down under load. */
  private report(report: DeliveryReport): void {
    this.reports.push(report);
    if (this.reports.length > 1) return;
    this.later(REPORT_DELAY_MS, () => {
      const reports = this.reports;
      this.reports = [];
      for (const each of reports) this.options.onReport(each);
    });
  }

  private later(delayMs: number, run: () => void): void {
    if (this.stopped !== null) return;
    const timer = this.options.clock.setTimer(delayMs, () => {
      this.timers.delete(timer);
      run();
    });
    this.timers.add(timer);
  }
}

interface Mail {
  readonly source: Buffer;
  readonly from: string;
  readonly recipients: readonly string[];
}

interface ReceivedMail {
  readonly receivedAtMs: number;
  readonly from: string;
  readonly to: string;
  /** The recipients in the envelope. */
  readonly recipients: readonly string[];
  readonly source: Buffer;
}

function readable({ receivedAtMs, from, to, recipients, source }: ReceivedMail): SandboxMessage {
  const attachments = attachmentsIn(source);
  return {
    channel: "email",
    received_at: new Date(receivedAtMs).toISOString(),
    from,
    to,
    ...(recipients.length > 1 && { recipients }),
    ...(attachments.length > 0 && { attachments }),
    subject: subjectIn(source),
    source: shownSource(source),
  };
}

/** Returns the beginning of a long message, which has attachments. */
function shownSource(source: Buffer): string {
  if (source.length <= SHOWN_BYTES_MAX) return source.toString("utf8");
  return `${source.toString("utf8", 0, SHOWN_BYTES_MAX)}\r\n(${source.length - SHOWN_BYTES_MAX} more bytes)\r\n`;
}

const SHOWN_BYTES_MAX = 2 * 1024 * 1024;

type Answer = (error?: Error | null, message?: string) => void;
type Verdict = Pick<DeliveryReport, "type" | "result" | "suppressRecipient">;

const DELIVERED: Verdict = { type: "delivered", result: {}, suppressRecipient: null };

/** Builds a report, which names the recipient if it is not the job's own. */
function buildReport(job: MailedJob, to: string): DeliveryReport {
  const verdict = outcomeFor(to) === "bounced" ? bounce(to) : DELIVERED;
  const recipient = furtherRecipient(job, to);
  const result = recipient === undefined ? verdict.result : { recipient, ...verdict.result };
  return { jobId: job.jobId, tenantId: job.tenantId, ...verdict, result };
}

function bounce(address: string): Verdict {
  const diagnostic = `550 5.1.1 <${address}>: Recipient address rejected: User unknown`;
  return {
    type: "bounced",
    result: { code: 550, enhanced_code: "5.1.1", diagnostic },
    suppressRecipient: recipientKey(address),
  };
}

/** Creates a policy refusal (RFC 3463, X.7.1), because a refusal of the address itself would be a bounce. */
function refusal(address: string): Error {
  return reply(550, `5.7.1 <${address}>: Recipient refused by local policy`);
}

/** Builds the server's reply; the library takes the code from the error. */
function reply(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

function outcomeFor(address: string): SandboxOutcome {
  const domain = extractDomain(address).toLowerCase();
  return Object.hasOwn(OUTCOMES, domain) ? (OUTCOMES[domain] ?? "delivered") : "delivered";
}
