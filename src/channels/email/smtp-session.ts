import { BlockList, isIP } from "node:net";
import type { SMTPPoolOptions } from "nodemailer";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { SmtpServer } from "../../core/smtp-url.ts";
import type { CompiledMail } from "./compiled-mail.ts";
import type { SmtpFailure, SmtpStage } from "./smtp-replies.ts";

/** How long a mail server may take, all in milliseconds. */
export interface SmtpTimeouts {
  /** A message waits for a free connection at most; longer, and its delivery could end in the middle of the message. */
  readonly turnMs: number;
  /** To resolve its name, to accept the connection and to greet. */
  readonly connectMs: number;
  /** From the look-up of its name until it takes messages: greeting, EHLO, TLS and authentication included. */
  readonly readyMs: number;
  /** To say anything while a message is handed over. Servers that scan the content before they answer take a while. */
  readonly socketMs: number;
  /** After which an unused connection is closed. */
  readonly idleMs: number;
}

/** A mail server, and where it is connected to. */
export interface SmtpPlace extends SmtpServer {
  /** What the guard found for `host`; or `host` itself, which is looked up then. */
  readonly address: string;
}

/** A submission that did not succeed. */
export class SmtpError extends Error {
  override readonly name = "SmtpError";

  constructor(
    readonly failure: SmtpFailure,
    /** Whether the server had closed the kept connection before it read a word: another connection may take the message. */
    readonly isStale = false,
  ) {
    super(failure.reply ?? failure.code ?? "the submission failed");
  }
}

/**
 * One connection to a mail server, over which messages are handed over one after the other.
 *
 * Invariants:
 * T1. It is ready, or has failed, within `readyMs`; a message that is being handed over fails after `socketMs` of silence.
 * T2. Once it failed, ended or was closed, its socket is gone: nothing lingers behind an abort.
 * T3. Every failure says how far the message had come, since that decides what follows from it.
 */
export class SmtpSession {
  private readonly connection: SMTPConnection;
  private onFailure: ((error: unknown) => void) | null = null;
  private messages = 0;
  private isRefused = false;

  constructor(
    private readonly server: SmtpPlace,
    private readonly timeouts: SmtpTimeouts,
    /** Called once, when there is no connection any more. */
    onEnd: () => void,
  ) {
    this.connection = new SMTPConnection(connectionOptions(server, timeouts));
    // An error of an idle connection concerns nobody: its end follows.
    this.connection.on("error", (error: unknown) => this.onFailure?.(error));
    this.connection.once("end", () => {
      onEnd();
      // The library closes the connection before it says why.
      queueMicrotask(() => this.onFailure?.({ code: "ECONNECTION" }));
    });
  }

  get isOver(): boolean {
    return this.connection.destroyed;
  }

  /** Whether it needs a `reset` before the next message: the server refused the last one half-way. */
  get isUnclear(): boolean {
    return this.isRefused && !this.isOver;
  }

  /** Resolves when the server takes messages. Rejects with `SmtpError`, and then there is no connection. */
  open(signal: AbortSignal): Promise<void> {
    const { user, password } = this.server;
    return this.during<void>("session", { signal, timeoutMs: this.timeouts.readyMs }, (done) => {
      this.connection.connect((error) => {
        if (error) return done(error, undefined);
        if ((user === "" && password === "") || !this.connection.allowsAuth) return done(null, undefined);
        const credentials = { user, pass: password };
        this.connection.login({ ...credentials, credentials }, (refusal) => done(refusal, undefined));
      });
    });
  }

  /**
   * Hands a message over; resolves to the server's last reply. Rejects with `SmtpError`: where the server refused the
   * message the connection is of further use after `reset`, else it is gone.
   */
  async send(mail: CompiledMail, signal: AbortSignal): Promise<string> {
    const isReused = this.messages > 0;
    this.messages += 1;
    const stream = mail.createReadStream();
    try {
      return await this.during<string>("message", { signal }, (done) => {
        // A copy: the library notes in it what became of it.
        this.connection.send({ ...mail.getEnvelope() }, stream, (error, info) => done(error, info?.response ?? ""));
      });
    } catch (error) {
      if (!(error instanceof SmtpError)) throw error;
      throw new SmtpError(error.failure, isReused && !stream.readableDidRead && hasLeft(error.failure));
    }
  }

  /** Makes the connection ready for another message after one was refused, or ends it. Rejects with `SmtpError`. */
  async reset(): Promise<void> {
    const bounds = { signal: NEVER, timeoutMs: this.timeouts.socketMs };
    await this.during<void>("session", bounds, (done) => this.connection.reset((error) => done(error, undefined)));
    this.isRefused = false;
  }

  /** Says goodbye; the connection ends when the server has answered, or does not. */
  quit(): void {
    if (!this.isOver) this.connection.quit();
  }

  /** Ends the connection at once; what is being handed over fails as called off. Safe to repeat. */
  close(): void {
    this.onFailure?.(CALLED_OFF);
    this.connection.close();
  }

  private async during<T>(stage: SmtpStage, { signal, timeoutMs }: Bounds, act: (done: Done<T>) => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const onAbort = () => reject(CALLED_OFF);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => reject({ code: "ETIMEDOUT" }), timeoutMs);
    this.onFailure = reject;
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      if (signal.aborted) throw CALLED_OFF;
      act((error, value) => (error ? reject(error) : resolve(value)));
      return await promise;
    } catch (error) {
      // A rejection that nobody waits for any more must not be one that nobody handles.
      promise.catch(() => {});
      const failure = failureOf(error, stage);
      this.isRefused = stage === "message" && isAnswer(failure);
      if (!this.isRefused) this.connection.close();
      throw new SmtpError(failure);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.onFailure = null;
    }
  }
}

type Done<T> = (error: unknown, value: T | PromiseLike<T>) => void;

interface Bounds {
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
}

const NEVER = new AbortController().signal;

/** As the library says that a message was called off. */
export const CALLED_OFF = { code: "EABORT" } as const;

function connectionOptions(server: SmtpPlace, { connectMs, socketMs }: SmtpTimeouts): SMTPPoolOptions {
  return {
    ...addressing(server),
    ...encryption(server),
    connectionTimeout: connectMs,
    dnsTimeout: connectMs,
    greetingTimeout: connectMs,
    socketTimeout: socketMs,
    // Nothing is owed to a server that is being left: a socket that waits for its goodbye could wait for ever.
    socketCloseTimeout: 0,
  };
}

/** To the address that was looked at; named in the handshake, and certified, as the host. */
export function addressing({ host, address, port, secure }: SmtpPlace): SMTPPoolOptions {
  // RFC 6066, 3: an IP address is no server name.
  return { host: address, port, secure, ...(isIP(host) === 0 ? { servername: host } : {}) };
}

/**
 * To this machine: none, its MTA's certificate names nobody. With credentials: always, and the certificate must be
 * right, or the password would be anybody's. Without: what the server offers, whoever it is (RFC 7435); the alternative
 * is plain text.
 */
export function encryption({ host, secure, user }: SmtpServer): SMTPPoolOptions {
  if (secure) return {};
  if (isThisMachine(host)) return { ignoreTLS: true };
  return user === "" ? { opportunisticTLS: true, tls: { rejectUnauthorized: false } } : { requireTLS: true };
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** By its address, or the one name that is nobody else's (RFC 6761, 6.3): `127.example.org` may be anywhere. */
function isThisMachine(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host.toLowerCase() === "localhost" : LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4");
}

/** A refusal of this message after which the server goes on listening. */
function isAnswer({ code, replyCode }: SmtpFailure): boolean {
  return replyCode !== null && replyCode !== 421 && (code === "EENVELOPE" || code === "EMESSAGE");
}

/** Whether the server closed the connection, rather than refused or ignored what came over it. */
function hasLeft({ code, replyCode, command }: SmtpFailure): boolean {
  if (replyCode === 421) return command === "MAIL FROM";
  return replyCode === null && (code === "ECONNECTION" || code === "ESOCKET");
}

/** What the library's error says. */
export function failureOf(error: unknown, stage: SmtpStage): SmtpFailure {
  const of = (name: string): unknown => (typeof error === "object" && error !== null ? Reflect.get(error, name) : null);
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  const replyCode = of("responseCode");
  // The library calls a certificate that is not trusted a socket error; the cause is in the system's own code.
  const isUntrusted = /CERT|TLS|SSL/.test(text(of("originalCode")) ?? "");
  return {
    stage,
    code: isUntrusted ? "ETLS" : text(of("code")),
    replyCode: typeof replyCode === "number" ? replyCode : null,
    reply: text(of("response")),
    command: text(of("command")),
  };
}
