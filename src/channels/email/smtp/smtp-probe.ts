import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { Finding, RelayProbe } from "../../../domain/channels/domain.ts";
import { parseSmtpUrl, type SmtpServer } from "../../../domain/channels/smtp-url.ts";
import type { OutboundGuard } from "../../../domain/texts/outbound.ts";
import { boundUntilReady } from "./ready-socket.ts";
import { quotable, toSmtpFailure } from "./smtp-replies.ts";
import { addressing, asksToSwap, encryption, type SmtpPlace } from "./smtp-session.ts";

export interface SmtpProbeOptions {
  readonly guard: OutboundGuard;
  /** The name with which servers are greeted. */
  readonly ehloName: string;
  /** Limit for the whole probe. Default 10 seconds. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS_DEFAULT = 10_000;

/**
 * Asks a tenant's own relay whether it would accept mail: connects, sends EHLO, encrypts as sending would,
 * authenticates if credentials are stored, and quits.
 */
export class SmtpProbe implements RelayProbe {
  constructor(private readonly options: SmtpProbeOptions) {}

  async check(smtpUrl: string | null): Promise<Finding> {
    if (smtpUrl === null) return failed("no smtp_url is stored for the tenant, or it may not use its own on e-mail");
    const server = parseSmtpUrl(smtpUrl);
    if (server === null) return failed("the stored smtp_url is not the address of a mail server");
    const over = new AbortController();
    const late = Promise.withResolvers<Finding>();
    const timer = setTimeout(() => late.resolve(unanswered("did not answer in time")), this.deadlineMs);
    try {
      return await Promise.race([this.ask(server, over.signal), late.promise]);
    } finally {
      clearTimeout(timer);
      over.abort();
    }
  }

  private get deadlineMs(): number {
    return this.options.deadlineMs ?? DEADLINE_MS_DEFAULT;
  }

  /** Ends no later than `signal` aborts. */
  private async ask(server: SmtpServer, signal: AbortSignal): Promise<Finding> {
    const route = await this.options.guard.routeTo(server.host);
    if (route.kind === "refused") return failed(`the host of the tenant's mail server ${route.why}`);
    if (route.kind === "unanswered") return unanswered(`has a name that ${route.why}`);
    const place = { ...server, address: route.address, ehloName: this.options.ehloName };
    const found = (await this.tried(place, signal)) ?? (await this.tried({ ...place, isSwapped: true }, signal));
    return found ?? unanswered("did not answer in time");
  }

  /** Probes once; null if, as in sending, the other encryption must be tried. */
  private async tried(place: SmtpPlace, signal: AbortSignal): Promise<Finding | null> {
    // The lookup may have taken all of the time.
    if (signal.aborted) return unanswered("did not answer in time");
    const connection = new SMTPConnection({
      ...addressing(place),
      ...encryption(place),
      connectionTimeout: this.deadlineMs,
      greetingTimeout: this.deadlineMs,
      socketTimeout: this.deadlineMs,
    });
    boundUntilReady(connection);
    signal.addEventListener("abort", () => connection.close(), { once: true });
    try {
      await connected(connection);
      if (place.user !== "") await authenticated(connection, place);
      connection.quit();
      return { check: "smtp", result: "passed", why: null };
    } catch (error) {
      connection.close();
      if (place.isSwapped !== true && asksToSwap(place, toSmtpFailure(error, "session"))) return null;
      return toFinding(error);
    }
  }
}

function connected(connection: SMTPConnection): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.once("end", () => reject(new Error("it closed the connection")));
    // Never removed: errors after the answer do not matter.
    connection.on("error", reject);
    connection.connect(() => resolve());
  });
}

function authenticated(connection: SMTPConnection, { user, password }: SmtpServer): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.once("end", () => reject(new Error("it closed the connection")));
    connection.on("error", reject);
    connection.login({ user, pass: password, credentials: { user, pass: password } }, (error) =>
      error ? reject(error) : resolve(),
    );
  });
}

/**
 * Converts an error. A missing server, an untrusted certificate or permanently refused credentials mean a wrong
 * configuration; any other error may be temporary.
 */
function toFinding(error: unknown): Finding {
  const of = (name: string): unknown => (error instanceof Error ? Reflect.get(error, name) : null);
  const replyCode = Number(of("responseCode") ?? 0);
  const system = String(of("originalCode") ?? of("cause") ?? "");
  // Only the relay's owner reads this reply.
  const reply = quotable(String(of("response") ?? ""), { own: true, confidential: [] });
  const words = reply === "" ? `it answered with code ${replyCode}` : `it answered ${reply}`;
  if (replyCode >= 500) return failed(`the tenant's mail server refused: ${words}`);
  if (of("code") === "ETLS" || /CERT|TLS|SSL/.test(system)) {
    return failed("no encrypted and trusted connection to the tenant's mail server can be made");
  }
  if (of("code") === "EAUTH" && replyCode === 0) return failed("the tenant's mail server does not take credentials");
  if (/ECONNREFUSED/.test(`${system} ${error instanceof Error ? error.message : ""}`)) {
    return failed("nobody listens at the address of the tenant's mail server");
  }
  return unanswered(replyCode === 0 ? "dropped the connection or could not be reached" : `put us off: ${words}`);
}

function failed(why: string): Finding {
  return { check: "smtp", result: "failed", why };
}

function unanswered(what: string): Finding {
  return { check: "smtp", result: "unanswered", why: `the tenant's mail server ${what}` };
}
