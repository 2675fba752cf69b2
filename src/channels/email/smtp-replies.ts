import type { Outcome } from "../../domain/outcome.ts";

/**
 * How far the message had come: `waiting` for a connection, in a `session` that was being made (look-up, connection,
 * greeting, TLS, authentication), or `message`, from `MAIL FROM` on. Before that it was not offered to the server.
 */
export type SmtpStage = "waiting" | "session" | "message";

/** What is known of a submission that did not succeed. */
export interface SmtpFailure {
  readonly stage: SmtpStage;
  /** nodemailer's code of the step that failed, for example `ETIMEDOUT`; null where there is none. */
  readonly code: string | null;
  /** The server's reply code (RFC 5321, 4.2), or null where no reply came. */
  readonly replyCode: number | null;
  /** The server's reply, code included. */
  readonly reply: string | null;
  /** The command that was answered, for example `RCPT TO`. */
  readonly command: string | null;
}

/** The server that was talked to. */
export interface SmtpRelay {
  /** Whether it is the tenant's: then the tenant is told about its configuration, and it is the tenant who can mend it. */
  readonly own: boolean;
  /** Texts that must not be repeated to a tenant: the platform's host names and credentials. */
  readonly confidential: readonly string[];
}

type Cause =
  | "called_off"
  | "silent"
  | "message"
  | "temporary"
  | "unreachable"
  | "credentials"
  | "login"
  | "encryption"
  | "greeting"
  | "address"
  | "forbidden";

interface Rule {
  readonly cause: Cause;
  /** All that are given must hold. */
  readonly stages?: readonly SmtpStage[];
  readonly codes?: readonly string[];
  readonly replies?: readonly [from: number, to: number];
  readonly commands?: readonly string[];
}

/** The first rule that holds decides; none: the cause is `temporary`, since a repeat can be recognised by its Message-ID. */
const RULES: readonly Rule[] = [
  { cause: "called_off", codes: ["EABORT"], stages: ["waiting", "session"] },
  { cause: "silent", codes: ["EABORT"] },
  // The guard of outgoing connections, before anything was connected to.
  { cause: "forbidden", codes: ["EFORBIDDEN"] },
  // 421 says that the server takes nothing at the moment, whatever it answers; in answer to a recipient, or to the
  // message, it may be about these.
  { cause: "greeting", replies: [421, 421], stages: ["session"] },
  { cause: "greeting", replies: [421, 421], commands: ["MAIL FROM"] },
  // "Temporary authentication failure" (RFC 4954, 6).
  { cause: "login", codes: ["EAUTH", "ENOAUTH"], replies: [400, 499] },
  { cause: "credentials", codes: ["EAUTH", "ENOAUTH"] },
  // Authentication or encryption is demanded before anything is taken (RFC 4954, 6; RFC 3207, 4).
  { cause: "credentials", replies: [530, 530] },
  { cause: "credentials", replies: [534, 535] },
  { cause: "encryption", codes: ["ETLS", "EREQUIRETLS"], stages: ["session"] },
  // A refusal before MAIL FROM is about this client or the server, not about the message.
  { cause: "greeting", replies: [400, 599], stages: ["session"] },
  { cause: "unreachable", stages: ["session"] },
  // A 4yz is a promise that the same message may pass later. 503 says that the session was out of step, which a new one
  // is not.
  { cause: "temporary", replies: [400, 499] },
  { cause: "temporary", replies: [503, 503] },
  { cause: "message", replies: [500, 599] },
  { cause: "silent", codes: ["ECONNECTION", "ETIMEDOUT", "ESOCKET"] },
  // Without a reply this is the client's own check of the envelope.
  { cause: "address", codes: ["EENVELOPE", "EMAXRECIPIENTS"] },
];

/**
 * The outcome of a failed submission. Permanent is only what the server said about this message, or what the tenant
 * alone can mend. Until the message is offered nothing is said about it: then the server is away, and no attempt is spent.
 * That goes for the platform's own trouble, too (its credentials, its certificate): no tenant's message should be lost
 * to it. A server of the tenant's that refuses the stored credentials for good is another matter: only the tenant can mend
 * that, who has to hear of it at once, and mail servers lock accounts whose wrong password is tried again and again.
 */
export function smtpOutcome(failure: SmtpFailure, relay: SmtpRelay): Outcome {
  const cause = RULES.find((rule) => holds(rule, failure))?.cause ?? "temporary";
  const said = failure.reply === null ? "" : `: ${quotable(failure.reply, relay)}`;
  const server = relay.own ? "your mail server" : "the mail server";
  const isUnsent = isSurelyUnsent(failure) ? ({ isUnsent: true } as const) : {};
  switch (cause) {
    case "called_off":
      return { kind: "retry", why: `its turn at ${server} did not come`, isUncounted: true, isUnsent: true };
    case "message":
      return { kind: "failed", error: `${server} refused the message${said}` };
    case "address":
      return { kind: "failed", error: "the sender's or the recipient's address cannot be sent to" };
    case "credentials":
      return relay.own
        ? { kind: "failed", error: `your mail server refused the credentials that are stored for it${said}` }
        : { kind: "away", why: "the mail server refused this service's credentials" };
    case "forbidden":
      // As with credentials: only the tenant can mend it, or the operator, who can have the job tried again.
      return { kind: "failed", error: `${server} is at an address that must not be connected to` };
    case "login":
      return { kind: "away", why: `${server} could not check the credentials${relay.own ? said : ""}` };
    case "encryption":
      return { kind: "away", why: `no encrypted connection to ${server} could be made` };
    case "greeting":
      return { kind: "away", why: `${server} refused the connection${said}` };
    case "unreachable":
      return { kind: "away", why: `${server} could not be reached or dropped the connection` };
    case "silent":
      // The message may be why, so this is an attempt; whether the server has it nobody knows.
      return { kind: "retry", why: `${server} did not answer in time or dropped the connection`, isSilence: true };
    case "temporary":
      return { kind: "retry", why: `${server} did not take the message yet${said}`, ...isUnsent };
  }
}

/**
 * Whether the server asks for mail to this recipient's domain to come slower: 421, or 450 and 451 with an enhanced code of
 * policy (4.7.x, RFC 3463, 3.8), which is how rate limits and greylisting are told, once it knows who the mail is for.
 */
export function asksForSlowness({ stage, replyCode, reply, command }: SmtpFailure): boolean {
  if (stage !== "message") return false;
  if (command === null || !ENVELOPE_COMMANDS.has(command)) return false;
  return replyCode === 421 || ((replyCode === 450 || replyCode === 451) && /^45[01][ -]4\.7\.\d/.test(reply ?? ""));
}

const ENVELOPE_COMMANDS = new Set(["RCPT TO", "DATA"]);

/** Whether the server surely has not taken the message: it said so, or was never offered it. */
function isSurelyUnsent({ stage, replyCode }: SmtpFailure): boolean {
  return replyCode !== null || stage !== "message";
}

function holds(rule: Rule, { stage, code, replyCode, command }: SmtpFailure): boolean {
  if (rule.stages && !rule.stages.includes(stage)) return false;
  if (rule.codes && !rule.codes.includes(code ?? "")) return false;
  if (rule.commands && !rule.commands.includes(command ?? "")) return false;
  return !rule.replies || (replyCode !== null && replyCode >= rule.replies[0] && replyCode <= rule.replies[1]);
}

const QUOTED_CHARS_MAX = 300;
/** What is shorter stands in any text, and hiding it would only garble what the server said. */
const CONFIDENTIAL_CHARS_MIN = 4;

/** A server's reply as a tenant may read it: one line, bounded, without the platform's names and private addresses. */
function quotable(reply: string, relay: SmtpRelay): string {
  // A reply can be a megabyte; what is cut off need not be looked at.
  let text = reply
    .slice(0, QUOTED_CHARS_MAX * 4)
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
  for (const word of relay.confidential) {
    if (word.length >= CONFIDENTIAL_CHARS_MIN) text = text.replaceAll(word, "(…)");
  }
  text = text.replace(PRIVATE_IPV4, "(…)");
  return text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX - 1).toWellFormed()}…` : text;
}

/** RFC 1918 and loopback. */
const PRIVATE_IPV4 = /\[?\b(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}\b\]?/g;

/** The queue id of a Postfix-like reply (`250 2.0.0 Ok: queued as 4jWbHP6T9TzKjBV`), or null. */
export function queueIdOf(reply: string): string | null {
  return /queued as ([0-9A-Za-z]{1,64})/.exec(reply)?.[1] ?? null;
}

/** As the library says that a message was called off. */
export const CALLED_OFF = { code: "EABORT" } as const;

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
