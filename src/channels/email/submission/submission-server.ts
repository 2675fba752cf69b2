import {
  SMTPServer,
  type SMTPServerAuthentication,
  type SMTPServerDataStream,
  type SMTPServerSession,
} from "smtp-server";
import type { Clock, Timer } from "../../../domain/clock.ts";
import { isOutage } from "../../../domain/errors.ts";
import { FairTurns } from "../../../domain/fair-turns.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { KeyHolder, Tenant } from "../../../domain/tenants/tenant.ts";
import { ApiError } from "../../../http/api-error.ts";
import { BodyRoom } from "../../../http/body-room.ts";
import { requireSending } from "../../../http/endpoint.ts";
import { OutageLog } from "../../../http/outage-log.ts";
import { Connections } from "./connections.ts";
import type { KeptMails } from "./kept-mails.ts";
import { submissionLimits } from "./limits.ts";
import { mimeTree } from "./mime-tree.ts";
import { ReceivedBytes } from "./received-bytes.ts";
import { buildSendBodies, getSenderAddress, requireRecipient } from "./send-body.ts";
import { AWAY, overLimit, replyText, SmtpRefusal } from "./smtp-refusal.ts";
import { submit } from "./submit.ts";

export interface SubmissionPorts {
  /** Finds the API key's tenant and permissions, or null. Rejects while the registry is unavailable. */
  findHolder(apiKey: string): KeyHolder | null | Promise<KeyHolder | null>;
  /** Counts a request of the tenant, whatever its result. Throws an `ApiError` 429 over the plan's limit. */
  admit(tenant: Tenant): Promise<void>;
  /**
   * Serves a request of `POST /v1/send/email` as the API does: checks it, applies limits, and counts it unless
   * `isCounted`. Never rejects.
   */
  send(request: Request, isCounted: boolean): Promise<Response>;
  /** Messages that are sent unchanged, which requests of `send` refer to. */
  readonly kept: Pick<KeptMails, "hold">;
  /** The sender's address for tenants without their own sender. */
  readonly platformSender: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** A certificate with its key, both in PEM. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface SubmissionOptions extends SubmissionPorts {
  /** The server's name in its greeting. */
  readonly hostName: string;
  readonly certificate: ServerCertificate;
  readonly isSelfSigned: boolean;
}

/** The authenticated user of a connection. */
interface User {
  readonly apiKey: string;
  readonly tenantId: string;
}

type Answer = (error?: Error | null, message?: string) => void;
type LoginAnswer = (error: Error | null, login?: { readonly user: User }) => void;

const { messageBytesMax, messageBytesReadMax, dottedLinesMax, recipientsMax, socketsMax, idleMs, drainMs } =
  submissionLimits;
const LOOK_MS = 1_000;
/** Time for the last reply to arrive before a connection is destroyed. */
const CLOSING_MS = 250;
const API_KEY_CHARS_MAX = 256;
/** Divides the API's memory budget for bodies: this server uses half as much. */
const ROOM_PART = 2;
const ROOM_STEP_BYTES = 256 * 1024;

/**
 * Accepts mail by SMTP (RFC 6409) and queues it as `POST /v1/send/email` does.
 *
 * Invariants:
 * S1. Only EHLO and STARTTLS are in clear text: AUTH requires TLS, and a message requires AUTH.
 * S2. A message is answered with 250 once every recipient's job is on disk.
 * S3. Messages in transfer or being processed use at most the memory budget for bodies, those of one tenant a quarter
 *     of it.
 * S4. A key is looked up anew for each message, so a revoked key stops working even on open connections.
 * S5. Each recipient is counted as one request, the first one before the message is read; tenants' messages are read in turn.
 */
export class SubmissionServer {
  private readonly server: SMTPServer;
  private readonly connections: Connections;
  /** Messages are read one at a time, and tenants take turns, so no tenant waits for another's whole batch. */
  private readonly turns = new FairTurns({ all: 1, each: 1 });
  private readonly room = new BodyRoom(ROOM_PART);
  private readonly outages: OutageLog;
  private timer: Timer | null = null;
  private stopped: Promise<void> | null = null;

  constructor(private readonly options: SubmissionOptions) {
    const { hostName, certificate, isSelfSigned } = options;
    this.connections = new Connections(options.clock);
    this.outages = new OutageLog(options.telemetry, options.clock);
    this.server = new SMTPServer({
      ...certificate,
      name: hostName,
      banner: isSelfSigned ? "Waybill (self-signed certificate)" : "Waybill",
      minVersion: "TLSv1.2",
      size: messageBytesMax,
      maxRecipients: recipientsMax,
      socketTimeout: idleMs,
      closeTimeout: drainMs,
      disableReverseLookup: true,
      disabledCommands: ["VRFY", "XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"],
      authRequiredMessage: "5.7.0 log in first, with an API key as the password",
      logger: { debug: (entry: { readonly tnx?: string; readonly cid?: string }) => this.countCommand(entry) },
      onConnect: ({ id, remoteAddress }, answer) => void this.try(answer, () => this.connected(id, remoteAddress)),
      onAuth: (auth, session, answer) => void this.logIn(auth, session, answer),
      onMailFrom: (_, session, answer) => void this.try(answer, () => this.requireSender(session)),
      onRcptTo: ({ address }, _, answer) => void this.try(answer, () => requireRecipient(address)),
      onData: (stream, session, answer) => void this.takeMessage(stream, session, answer),
      onClose: ({ id }) => this.closed(id),
    });
    this.server.server.maxConnections = socketsMax;
    this.server.on("error", (error) => {
      options.telemetry.log("debug", "an SMTP connection failed", { error: error.message });
    });
  }

  /** Returns the port. Rejects if the address is not available. */
  listen(at: { readonly host: string; readonly port: number }): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      const listener = this.server.listen(at.port, at.host, () => {
        this.server.off("error", reject);
        this.look();
        const address = listener.address();
        resolve(typeof address === "object" && address !== null ? address.port : at.port);
      });
    });
  }

  /** Sets the certificate for new connections. It must be valid. */
  useCertificate(certificate: ServerCertificate): void {
    this.server.updateSecureContext({ ...certificate });
  }

  /**
   * Accepts no more connections, ends those that wait for their client, and finishes the messages in transfer. Safe to
   * call twice.
   */
  stop(): Promise<void> {
    this.stopped ??= this.end();
    return this.stopped;
  }

  private async end(): Promise<void> {
    this.timer?.cancel();
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const { session } of this.server.connections) {
      if (!this.connections.hasMessage(session.id)) this.hangUp(session.id, STOPPING);
    }
    await closed;
  }

  private look(): void {
    for (const id of this.connections.late()) this.hangUp(id, "4.4.2 you took too long");
    this.options.telemetry.gauge("smtp_connections_open", this.connections.size);
    this.timer = this.options.clock.setTimer(LOOK_MS, () => this.look());
  }

  private hangUp(id: string, text: string, code = 421): void {
    for (const connection of this.server.connections) {
      if (connection.session.id !== id) continue;
      connection.send(code, text);
      // The library waits five seconds for the other side to close, and the socket counts against the limit until then.
      this.options.clock.setTimer(CLOSING_MS, () => connection._socket.destroy());
    }
  }

  private connected(id: string, address: string): void {
    try {
      const leaving = this.connections.enter(id, address);
      if (leaving !== null) this.hangUp(leaving, "4.3.2 others wait: log in sooner");
      this.options.telemetry.count("smtp_connections", { outcome: "taken" });
    } catch (error) {
      this.options.telemetry.count("smtp_connections", { outcome: "refused" });
      throw error;
    }
  }

  private closed(id: string): void {
    this.connections.leave(id);
  }

  /** Counts commands by the library's log entries, which precede each command. */
  private countCommand({ tnx, cid }: { readonly tnx?: string; readonly cid?: string }): void {
    if (tnx === "command" && cid !== undefined && this.connections.isFlood(cid)) {
      this.hangUp(cid, "4.7.0 too many commands without a message");
    }
  }

  private async logIn(
    { password }: SMTPServerAuthentication,
    session: SMTPServerSession,
    answer: LoginAnswer,
  ): Promise<void> {
    const { telemetry } = this.options;
    const apiKey = password ?? "";
    try {
      const holder = await this.findHolder(apiKey);
      if (holder === null) throw this.connections.refuseKey(session.id, session.remoteAddress);
      const { tenant, key } = holder;
      if (!key.scopes.has("send")) throw new SmtpRefusal(535, `5.7.8 ${NO_SCOPE}`);
      this.connections.logIn(session.id, tenant.tenantId);
      telemetry.count("smtp_logins", { outcome: "taken" });
      answer(null, { user: { apiKey, tenantId: tenant.tenantId } });
    } catch (error) {
      telemetry.count("smtp_logins", { outcome: "refused" });
      answer(this.toRefusal(error, 454));
    }
  }

  private findHolder(apiKey: string): KeyHolder | null | Promise<KeyHolder | null> {
    return apiKey === "" || apiKey.length > API_KEY_CHARS_MAX ? null : this.options.findHolder(apiKey);
  }

  /** Returns the tenant in its present state. Throws if it may not send. */
  private async requireSender(session: SMTPServerSession): Promise<{ readonly tenant: Tenant; readonly user: User }> {
    // Set by `logIn` alone.
    const user = session.user as User;
    const holder = await this.findHolder(user.apiKey);
    if (holder === null) throw new SmtpRefusal(421, "4.7.0 the API key is not valid any more");
    const { tenant, key } = holder;
    if (!key.scopes.has("send")) throw new SmtpRefusal(550, `5.7.1 ${NO_SCOPE}`);
    requireSending(tenant, "email");
    getSenderAddress(tenant, this.options.platformSender);
    return { tenant, user };
  }

  private async takeMessage(stream: SMTPServerDataStream, session: SMTPServerSession, answer: Answer): Promise<void> {
    const { telemetry } = this.options;
    const hold = this.room.open({ tenantId: (session.user as User).tenantId });
    this.connections.beginData(session.id);
    try {
      const message = await receive(stream, {
        grow: (bytes) => hold.growTo(bytes),
        giveUp: ({ message, responseCode }) => this.hangUp(session.id, message, responseCode),
      });
      const text = replyText(await this.queue(message, session));
      telemetry.count("smtp_messages", { outcome: "queued" });
      answer(null, text);
    } catch (error) {
      const refusal = this.toRefusal(error, 451);
      telemetry.count("smtp_messages", { outcome: refusal.isTemporary ? "deferred" : "refused" });
      answer(refusal);
    } finally {
      hold.release();
      this.connections.endData(session.id);
      if (this.stopped !== null) setImmediate(() => this.hangUp(session.id, STOPPING));
    }
  }

  private async queue(message: Uint8Array, session: SMTPServerSession): Promise<string> {
    const { tenant, user } = await this.requireSender(session);
    const recipients = session.envelope.rcptTo.map(({ address }) => requireRecipient(address));
    await this.admit(tenant);
    const { send, kept, platformSender } = this.options;
    const bodies = await this.turns.inTurn(tenant.tenantId, async () => {
      await new Promise<void>((resolve) => setImmediate(resolve));
      return buildSendBodies(
        tenant,
        mimeTree(Buffer.from(message.buffer, message.byteOffset, message.length)),
        platformSender,
      );
    });
    const release = bodies.kept === null ? null : kept.hold(bodies.kept);
    try {
      return await submit({ apiKey: user.apiKey, recipients, bodies, message, send: (...asked) => send(...asked) });
    } finally {
      release?.();
    }
  }

  /** Counts the first recipient's request before the message is read: an unreadable message costs as much as any other. */
  private async admit(tenant: Tenant): Promise<void> {
    try {
      await this.options.admit(tenant);
    } catch (error) {
      throw error instanceof ApiError ? overLimit() : error;
    }
  }

  private async try(answer: Answer, work: () => unknown): Promise<void> {
    try {
      await work();
      answer();
    } catch (error) {
      answer(this.toRefusal(error, 451));
    }
  }

  /** Converts an error to a refusal. `code`: the reply code if a part of the service is unavailable. */
  private toRefusal(error: unknown, code: number): SmtpRefusal {
    if (error instanceof SmtpRefusal) return error;
    if (error instanceof ApiError) {
      return error.status === 403
        ? new SmtpRefusal(550, `5.7.1 ${error.message}`)
        : new SmtpRefusal(452, `4.3.1 ${error.message}`);
    }
    if (isOutage(error)) {
      this.outages.note("an SMTP command failed", { error: String(error) });
      return new SmtpRefusal(code, AWAY);
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.options.telemetry.log("error", "an SMTP command failed", { error: text });
    return new SmtpRefusal(code, "4.3.0 internal error");
  }
}

const NO_SCOPE = "this API key lacks the scope send";
const STOPPING = "4.3.2 the service is stopping: try again";

interface Receiving {
  /** Requests memory for this many bytes in all. Throws if the budget is exhausted. */
  grow(bytes: number): void;
  /** Sends the refusal to the client and ends the connection. */
  giveUp(refusal: SmtpRefusal): void;
}

/**
 * Collects a message. A message that is refused on the way is read to its end, where the reply belongs, without being
 * kept; one longer than any honest client's is aborted. Rejects with an `SmtpRefusal`, or with the error of `grow`.
 */
function receive(stream: SMTPServerDataStream, { grow, giveUp }: Receiving): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let kept: ReceivedBytes | null = new ReceivedBytes();
    let failure: unknown = null;
    let pieces = 0;
    const refuse = (why: unknown) => {
      failure ??= why;
      kept = null;
    };
    const end = (refusal: SmtpRefusal) => {
      refuse(refusal);
      stream.removeAllListeners("data");
      giveUp(refusal);
    };
    stream.on("data", (chunk: Buffer) => {
      pieces += 1;
      if (stream.byteLength > messageBytesReadMax) return end(TOO_BIG);
      if (pieces > dottedLinesMax + stream.byteLength / BYTES_PER_PIECE) return end(TOO_DOTTED);
      if (kept === null) return;
      try {
        if (stream.sizeExceeded) throw TOO_BIG;
        grow(Math.ceil((kept.length + chunk.length) / ROOM_STEP_BYTES) * ROOM_STEP_BYTES);
        kept.add(chunk);
      } catch (error) {
        refuse(error);
      }
    });
    stream.on("end", () => (kept === null || stream.sizeExceeded ? reject(failure ?? TOO_BIG) : resolve(kept.all())));
    // The client has disconnected and gets no reply.
    stream.on("error", () => reject(failure ?? GONE));
    stream.on("close", () => reject(failure ?? GONE));
  });
}

/** The library emits a piece for each packet, and for each dot that it removes from the beginning of a line. */
const BYTES_PER_PIECE = 64;
const TOO_BIG = new SmtpRefusal(552, `5.3.4 the message is larger than ${messageBytesMax} bytes`);
const TOO_DOTTED = new SmtpRefusal(554, "5.6.0 the message has more lines that begin with a dot than are taken");
const GONE = new SmtpRefusal(451, "4.4.2 the connection was closed before the message ended");
