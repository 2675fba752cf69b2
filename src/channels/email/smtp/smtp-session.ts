import { isIP } from "node:net";
import type { SMTPPoolOptions } from "nodemailer";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { SmtpServer } from "../../../domain/channels/smtp-url.ts";
import { isLoopback } from "../../../domain/texts/host.ts";
import type { MailMessage } from "../mime/mail-message.ts";
import { boundUntilReady, type ReadySocket, takenOver } from "./ready-socket.ts";
import { isPositive, ReplyReader, type SmtpReply } from "./reply-reader.ts";
import { CALLED_OFF, type SmtpFailure, toSmtpFailure } from "./smtp-replies.ts";
import { type ReplyWait, SmtpTransaction } from "./smtp-transaction.ts";

/** Time limits for a mail server, in milliseconds. */
export interface SmtpTimeouts {
  /**
   * The longest that a message waits for a free connection; beyond that, its delivery could time out in the middle of the
   * message.
   */
  readonly turnMs: number;
  /** To resolve its name, and to accept the connection. */
  readonly connectMs: number;
  /** From the lookup of its name until it accepts messages, including greeting, EHLO, TLS and authentication. */
  readonly readyMs: number;
  /** For each silence until then, and for the replies to RSET and QUIT. */
  readonly socketMs: number;
  /** For the reply to MAIL, and to each RCPT. */
  readonly envelopeMs: number;
  /** For the reply to DATA. */
  readonly dataMs: number;
  /** To read a piece of the message. */
  readonly blockMs: number;
  /**
   * For the reply to the final dot. Servers that check the content answer late, and accept the message even if the
   * client has stopped waiting (RFC 5321, 4.5.3.2.6).
   */
  readonly endMs: number;
  /** An unused connection is closed after this time. */
  readonly idleMs: number;
}

/** A mail server, and the address to connect to. */
export interface SmtpPlace extends SmtpServer {
  /** The address the guard found for `host`; or `host` itself, to be looked up then. */
  readonly address: string;
  /**
   * The name with which the server is greeted (RFC 5321, 4.1.1.1): many servers refuse a client that has no name in the
   * DNS.
   */
  readonly ehloName: string;
  /** Whether the encryption differs from the usual one: see `encryption`. Default: false. */
  readonly isSwapped?: boolean;
}

/** A submission that failed. */
export class SmtpError extends Error {
  override readonly name = "SmtpError";

  constructor(
    readonly failure: SmtpFailure,
    /** Whether the server had closed the kept connection before reading any of it; another connection may take the message. */
    readonly isStale = false,
  ) {
    super(failure.reply ?? failure.code ?? "the submission failed");
  }
}

/** A party that waits for the server's replies. */
interface AwaitedReplies {
  /** Replies the server still owes. */
  readonly owed: number;
  /** The limit of the reply that is due next. */
  readonly waits: "socketMs" | ReplyWait;
  onReply(reply: SmtpReply): void;
  /** Called when no more replies will come. */
  onEnd(error: unknown): void;
}

/**
 * One connection to a mail server, which carries one message after another. Nodemailer handles greeting, EHLO, STARTTLS
 * and AUTH. Our own code does the rest, the same for every message, over the socket that nodemailer prepared.
 *
 * Invariants:
 * T1. It is ready, or has failed, within `readyMs`. Each reply has arrived as a whole, and each piece of a message is read,
 *     within its limit, or it ends.
 * T2. Once it failed, ended or was closed, its socket is gone, even after an abort.
 * T3. Every failure has the stage that the message had reached, because the outcome depends on it: from the final dot
 *     on, the server may have the message.
 * T4. A reply answers only what was written before it arrived. A server that sends more replies than it owes is out of
 *     step: its replies are not trusted, and the connection ends.
 */
export class SmtpSession {
  private readonly connection: SMTPConnection;
  private ready: ReadySocket | null = null;
  private readonly replies = new ReplyReader();
  private awaited: AwaitedReplies | null = null;
  private onFailure: ((error: unknown) => void) | null = null;
  private messages = 0;
  private isRefused = false;
  private hasEnded = false;
  /** Whether the rest of the message waits until the server has read the part before it. */
  private isPouring = false;
  /** Recipients whom the last message did not go to, because the server accepts fewer at a time. */
  left: readonly string[] = [];
  private lastLifeMs = 0;
  private watch: ReturnType<typeof setTimeout> | null = null;
  private watchDueMs = 0;

  constructor(
    private readonly server: SmtpPlace,
    private readonly timeouts: SmtpTimeouts,
    /** Called once, when the connection is gone. */
    private readonly onEnd: () => void,
  ) {
    this.connection = new SMTPConnection(connectionOptions(server, timeouts));
    boundUntilReady(this.connection);
    // An error on an idle connection needs no handling: its end follows.
    this.connection.on("error", (error: unknown) => this.onFailure?.(error));
    this.connection.once("end", () => {
      this.ended();
      // The library closes the connection before it reports the reason.
      queueMicrotask(() => this.onFailure?.({ code: "ECONNECTION" }));
    });
  }

  get isOver(): boolean {
    return this.hasEnded;
  }

  /** Whether it needs a `reset` before the next message, because the server refused the last one half-way. */
  get isUnclear(): boolean {
    return this.isRefused && !this.isOver;
  }

  /** Resolves when the server accepts messages. Rejects with `SmtpError`; then there is no connection. */
  async open(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(CALLED_OFF);
    const timer = setTimeout(() => reject({ code: "ETIMEDOUT" }), this.timeouts.readyMs);
    this.onFailure = reject;
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      if (signal.aborted) throw CALLED_OFF;
      this.connect((error) => (error ? reject(error) : resolve()));
      await promise;
    } catch (error) {
      // The caller may have stopped waiting; this keeps the rejection from counting as unhandled.
      promise.catch(() => {});
      // A handshake can fail by an alert, a closed connection or silence.
      const isHandshake = Reflect.get(this.connection, "upgrading") === true && error !== CALLED_OFF;
      this.close();
      throw new SmtpError(toSmtpFailure(isHandshake ? { code: "ETLS" } : error, "session"));
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.onFailure = null;
    }
  }

  /**
   * Submits a message; resolves to the server's last reply. Rejects with `SmtpError`: if the server refused the
   * message, the connection is usable again after `reset`; otherwise it is gone.
   */
  send(mail: MailMessage, signal: AbortSignal): Promise<string> {
    const isReused = this.messages > 0;
    this.messages += 1;
    return new Promise((resolve, reject) => {
      const onAbort = () => this.fail(CALLED_OFF);
      const done = (result: string | SmtpFailure) => {
        signal.removeEventListener("abort", onAbort);
        this.awaited = null;
        this.left = transaction.left;
        if (typeof result === "string") return resolve(result);
        // While the rest of the message is still to come, the server would take a command for part of the message.
        this.isRefused = transaction.isSettled && !this.isPouring && isAnswer(result);
        const isEnded = transaction.isOffered && !this.isPouring && result.replyCode === null;
        if (!this.isRefused) this.close();
        const failure: SmtpFailure = isEnded ? { ...result, stage: "end" } : result;
        reject(new SmtpError(failure, isReused && !transaction.isOffered && hasLeft(result)));
      };
      const transaction = new SmtpTransaction(mail, this.ready?.offers ?? NOTHING, {
        write: (text, encoding) => this.write(text, encoding),
        pour: (text, pieces) => this.pour(splitIntoPieces(Buffer.from(text, "utf8"), pieces)),
        done,
      });
      if (signal.aborted) return done(toSmtpFailure(CALLED_OFF, "message"));
      if (this.ready === null || this.isOver) return done(toSmtpFailure({ code: "ECONNECTION" }, "message"));
      signal.addEventListener("abort", onAbort, { once: true });
      this.expect(transaction);
      transaction.begin();
    });
  }

  /** Prepares the connection for another message after a refusal, or ends it. Rejects with `SmtpError`. */
  reset(): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        this.awaited = null;
        this.close();
        reject(new SmtpError(toSmtpFailure(error, "session")));
      };
      const onReply = ({ code, text }: SmtpReply) => {
        if (!isPositive(code)) return fail({ code: "EPROTOCOL", responseCode: code, response: text, command: "RSET" });
        this.awaited = null;
        this.isRefused = false;
        resolve();
      };
      this.expect({ owed: 1, waits: "socketMs", onReply, onEnd: fail });
      this.write("RSET\r\n", "latin1");
    });
  }

  /** Sends QUIT; the connection ends with the server's answer or after a time limit. */
  quit(): void {
    if (this.isOver) return;
    this.expect({ owed: 1, waits: "socketMs", onReply: () => this.close(), onEnd: () => {} });
    this.write("QUIT\r\n", "latin1");
  }

  /** Ends the connection at once; a message being submitted fails as cancelled. Safe to repeat. */
  close(): void {
    this.fail(CALLED_OFF);
  }

  private connect(done: (error: unknown) => void): void {
    const { user, password } = this.server;
    const ready = (error: unknown) => {
      if (error) return done(error);
      const socket = takenOver(this.connection);
      if (socket === null) return done({ code: "EPROTOCOL" });
      this.ready = socket;
      this.listen(socket);
      done(null);
    };
    this.connection.connect((error) => {
      if (error || (user === "" && password === "") || !this.connection.allowsAuth) return ready(error);
      const credentials = { user, pass: password };
      this.connection.login({ ...credentials, credentials }, ready);
    });
  }

  private listen({ socket }: ReadySocket): void {
    socket.on("data", (chunk: Buffer) => this.heard(chunk));
    socket.on("end", () => this.fail({ code: "ECONNECTION" }));
    socket.on("close", () => this.fail({ code: "ECONNECTION" }));
    socket.on("error", (error: NodeJS.ErrnoException) => this.fail({ code: "ESOCKET", originalCode: error.code }));
  }

  /** Starts to time the server's silence, as it now owes replies. */
  private expect(awaited: AwaitedReplies): void {
    this.awaited = awaited;
    this.lastLifeMs = performance.now();
    this.watchOver(awaited);
  }

  /**
   * Starts the timer, which is shared by many messages and only reset for a shorter limit. The socket's own timer would
   * restart with each chunk, and does not cover a blocked write.
   */
  private watchOver({ waits }: AwaitedReplies): void {
    const dueMs = this.lastLifeMs + this.timeouts[this.isPouring ? "blockMs" : waits];
    if (this.watch !== null && this.watchDueMs <= dueMs) return;
    clearTimeout(this.watch ?? undefined);
    this.watchDueMs = dueMs;
    this.watch = setTimeout(() => this.look(), Math.max(1, dueMs - performance.now())).unref();
  }

  private look(): void {
    this.watch = null;
    const { awaited } = this;
    if (awaited === null) return;
    const limitMs = this.timeouts[this.isPouring ? "blockMs" : awaited.waits];
    if (performance.now() - this.lastLifeMs >= limitMs) this.fail({ code: "ETIMEDOUT" });
    else this.watchOver(awaited);
  }

  private write(text: string, encoding: "latin1" | "utf8"): void {
    if (text.length <= PIECE_BYTES) this.ready?.socket.write(text, encoding);
    else this.pour(splitIntoPieces(Buffer.from(text, encoding)));
  }

  /**
   * Writes piece by piece, each after the server has read the last: this distinguishes a slow server from one that
   * hangs, and the rest does not fill the socket's buffer.
   */
  private pour(pieces: Iterator<Buffer>, first: IteratorResult<Buffer> = pieces.next()): void {
    let piece = first;
    while (piece.done !== true) {
      const { ready } = this;
      if (ready === null || this.isOver) return;
      this.lastLifeMs = performance.now();
      const next = pieces.next();
      this.isPouring = next.done !== true;
      const hasRoom = ready.socket.write(piece.value);
      if (!hasRoom && this.isPouring) {
        ready.socket.once("drain", () => this.pour(pieces, next));
        return;
      }
      piece = next;
    }
  }

  private heard(chunk: Buffer): void {
    const replies = this.replies.read(chunk);
    if (replies === null) return this.fail({ code: "EPROTOCOL" });
    let owed = this.awaited?.owed ?? 0;
    for (const reply of replies) {
      const isEarly = this.isPouring && isPositive(reply.code);
      if (this.awaited === null || owed === 0 || isEarly) return this.fail({ code: "EPROTOCOL" });
      owed -= 1;
      this.awaited.onReply(reply);
    }
    // A reply that never ends is none.
    if (replies.length === 0) return;
    this.lastLifeMs = performance.now();
    if (this.awaited !== null) this.watchOver(this.awaited);
  }

  /** Ends the connection and passes the reason to the party that awaits a reply. */
  private fail(error: unknown): void {
    const { awaited } = this;
    const said = awaited === null ? null : unfinishedReply(this.replies.unfinished, this.isPouring);
    this.awaited = null;
    clearTimeout(this.watch ?? undefined);
    if (this.ready === null) this.connection.close();
    else this.ready.socket.destroy();
    this.ended();
    this.onFailure?.(error);
    awaited?.onEnd(said === null ? error : { code: toSmtpFailure(error, "message").code, ...said });
  }

  private ended(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.onEnd();
  }
}

const PIECE_BYTES = 64 * 1024;

function* splitIntoPieces(bytes: Buffer, more?: Iterator<Buffer>): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  for (let next = more?.next(); next !== undefined && next.done !== true; next = more?.next()) yield next.value;
}

const NOTHING: ReadonlySet<string> = new Set();

/**
 * Returns the reply in the middle of which the connection was lost: its code counts even if its line did not end. Null
 * if there is none, or if it accepts a message whose end the server has not received.
 */
function unfinishedReply(unfinished: string, isPouring: boolean) {
  const code = /^[245]\d\d(?![^ \r-])/.exec(unfinished)?.[0];
  if (code === undefined || (isPouring && code.startsWith("2"))) return null;
  return { responseCode: Number(code), response: unfinished.trim(), command: "CONN" };
}

function connectionOptions(server: SmtpPlace, { connectMs, readyMs, socketMs }: SmtpTimeouts): SMTPPoolOptions {
  return {
    ...addressing(server),
    ...encryption(server),
    connectionTimeout: connectMs,
    dnsTimeout: connectMs,
    greetingTimeout: readyMs,
    socketTimeout: socketMs,
    // Closes without waiting for the server: its own close could take forever.
    socketCloseTimeout: 0,
  };
}

/** Connects to the address that was checked; the handshake and the certificate use the host name. */
export function addressing({ host, address, port, secure, ehloName }: SmtpPlace): SMTPPoolOptions {
  // RFC 6066, 3: an IP address is not a server name.
  return { name: ehloName, host: address, port, secure, ...(isIP(host) === 0 ? { servername: host } : {}) };
}

/**
 * Chooses the encryption. To this machine: none unless the server demands it, because its MTA's certificate is for no
 * real name. With credentials: always, with a valid certificate; otherwise anyone could get the password. Without
 * credentials: whatever the server offers, unverified (RFC 7435), because the alternative is plain text, which is used
 * if the handshake fails.
 */
export function encryption({ host, secure, user, isSwapped = false }: SmtpServer & Pick<SmtpPlace, "isSwapped">) {
  const unverified: SMTPPoolOptions = { opportunisticTLS: true, tls: { rejectUnauthorized: false } };
  const plain: SMTPPoolOptions = { ignoreTLS: true };
  if (secure) return {};
  if (isLoopback(host)) return isSwapped ? unverified : plain;
  if (user !== "") return { requireTLS: true };
  return isSwapped ? plain : unverified;
}

/** Whether to try the other encryption: the server demands it, or an optional handshake failed. */
export function asksToSwap({ host, secure, user }: SmtpServer, { code, replyCode, reply }: SmtpFailure): boolean {
  if (secure) return false;
  if (!isLoopback(host)) return user === "" && code === "ETLS" && replyCode === null;
  // RFC 3207, 4, and RFC 4954, 6: also "authentication required", where it is offered behind STARTTLS alone.
  return replyCode === 530 || replyCode === 538 || (replyCode !== null && /STARTTLS/i.test(reply ?? ""));
}

/** Whether the failure is a refusal of this message after which the server keeps listening. */
function isAnswer({ code, replyCode }: SmtpFailure): boolean {
  return replyCode !== null && replyCode !== 421 && (code === "EENVELOPE" || code === "EMESSAGE");
}

/** Whether the server closed the connection, instead of refusing or ignoring the input. */
function hasLeft({ code, replyCode, command }: SmtpFailure): boolean {
  if (replyCode === 421) return command === "MAIL FROM";
  return replyCode === null && (code === "ECONNECTION" || code === "ESOCKET");
}
