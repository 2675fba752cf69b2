import nodemailer, { type SendMailOptions, type SMTPPoolOptions } from "nodemailer";
import SMTPPool from "nodemailer/lib/smtp-pool";
import { parseSmtpUrl, type SmtpServer } from "../../core/smtp-url.ts";

/** How long a mail server may take, all in milliseconds. */
export interface SmtpTimeouts {
  /** To resolve its name and to accept the connection. */
  readonly connectMs: number;
  /** To greet. */
  readonly greetingMs: number;
  /** To say anything while an answer is owed. Servers that scan the content before they answer take a while. */
  readonly socketMs: number;
  /** After which an unused connection is closed. */
  readonly idleMs: number;
}

export interface SmtpPoolsOptions {
  /** Connections to one server. */
  readonly connectionsMax: number;
  /** Servers that are talked to at one time. */
  readonly poolsMax: number;
  readonly timeouts: SmtpTimeouts;
}

/** Sends a message and gives the server's last reply. Rejects with nodemailer's error. */
export interface SmtpSender {
  send(message: SendMailOptions): Promise<string>;
}

/**
 * One pool of connections a mail server, made when it is first used.
 *
 * Invariants:
 * P1. There are never more than `poolsMax` pools. Room is made by the least recently used one that has nothing to send.
 * P2. A pool that has messages under way is ended by `close` alone.
 * P3. After `close` nothing is sent.
 */
export class SmtpPools {
  private readonly pools = new Map<string, Pool>();
  private closed = false;

  constructor(private readonly options: SmtpPoolsOptions) {}

  /** What sends through the server at `smtpUrl` (which `parseSmtpUrl` takes), or null: closed, or all pools are busy. */
  at(smtpUrl: string): SmtpSender | null {
    if (this.closed) return null;
    const pool = this.pools.get(smtpUrl) ?? this.open(smtpUrl);
    if (pool === null) return null;
    // Put back at the end: the first key is the least recently used.
    this.pools.delete(smtpUrl);
    this.pools.set(smtpUrl, pool);
    return pool.sender;
  }

  /** Ends every connection. Messages under way fail as if the server had dropped them. Safe to repeat. */
  close(): void {
    this.closed = true;
    for (const { transport } of this.pools.values()) transport.close({ force: true });
    this.pools.clear();
  }

  private open(smtpUrl: string): Pool | null {
    if (this.pools.size >= this.options.poolsMax && !this.makeRoom()) return null;
    const transport = new SMTPPool(poolOptions(smtpUrl, this.options));
    const mailer = nodemailer.createTransport(transport);
    const sender: SmtpSender = { send: async (message) => (await mailer.sendMail(message)).response };
    return { transport, sender };
  }

  private makeRoom(): boolean {
    for (const [smtpUrl, { transport }] of this.pools) {
      if (transport.pendingCount() > 0) continue;
      transport.close();
      this.pools.delete(smtpUrl);
      return true;
    }
    return false;
  }
}

interface Pool {
  readonly transport: SMTPPool;
  readonly sender: SmtpSender;
}

function poolOptions(smtpUrl: string, { connectionsMax, timeouts }: SmtpPoolsOptions): SMTPPoolOptions {
  const server = parseSmtpUrl(smtpUrl);
  if (server === null) throw new TypeError("not an SMTP URL");
  const { host, port, secure, user, password } = server;
  return {
    host,
    port,
    secure,
    ...encryption(server),
    ...(user === "" && password === "" ? {} : { auth: { user, pass: password } }),
    maxConnections: connectionsMax,
    maxMessages: Number.POSITIVE_INFINITY,
    // Only what the server cannot have read is sent again over another connection: it closed a connection that was idle.
    maxRequeues: 2,
    connectionTimeout: timeouts.connectMs,
    dnsTimeout: timeouts.connectMs,
    greetingTimeout: timeouts.greetingMs,
    socketTimeout: timeouts.socketMs,
    idleTimeout: timeouts.idleMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/**
 * To this machine: none, its MTA's certificate names nobody. With credentials: always, and the certificate must be
 * right, or the password would be anybody's. Without: what the server offers, whoever it is (RFC 7435); the alternative
 * is plain text.
 */
export function encryption({ host, secure, user }: SmtpServer): SMTPPoolOptions {
  if (secure) return {};
  if (host === "localhost" || host === "::1" || host.startsWith("127.")) return { ignoreTLS: true };
  return user === "" ? { opportunisticTLS: true, tls: { rejectUnauthorized: false } } : { requireTLS: true };
}
