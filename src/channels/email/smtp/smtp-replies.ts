import type { Outcome } from "../../../domain/jobs/outcome.ts";
import type { SmtpReply } from "./reply-reader.ts";

/**
 * The stage that a message had reached: `waiting` for a connection; `session`, while one was being set up (lookup,
 * connection, greeting, TLS, authentication); `message`, from `MAIL FROM` on; or `end`, all of it was sent and no reply
 * came. Before `message` it was not offered to the server, and before `end` the server has not taken it (RFC 5321,
 * 4.1.1.4).
 */
export type SmtpStage = "waiting" | "session" | "message" | "end";

/** A failed submission. */
export interface SmtpFailure {
  readonly stage: SmtpStage;
  /** nodemailer's code for the failed step, for example `ETIMEDOUT`, or null. */
  readonly code: string | null;
  /** The server's reply code (RFC 5321, 4.2); null if no reply came. */
  readonly replyCode: number | null;
  /** The server's reply, code included. */
  readonly reply: string | null;
  /** The command that the server answered, for example `RCPT TO`. */
  readonly command: string | null;
}

/** The server that the message was sent to. */
export interface SmtpRelay {
  /**
   * Whether the tenant owns it: then the tenant is told about configuration errors, because only the tenant can fix
   * them.
   */
  readonly own: boolean;
  /** Texts that tenants must not see: the platform's host names and credentials. */
  readonly confidential: readonly string[];
}

type Cause =
  | "called_off"
  | "silent"
  | "broken_off"
  | "uncertain"
  | "message"
  | "temporary"
  | "unreachable"
  | "credentials"
  | "login"
  | "encryption"
  | "greeting"
  | "address"
  | "utf8"
  | "eight_bit"
  | "forbidden";

interface Rule {
  readonly cause: Cause;
  /** All conditions that are present must hold. */
  readonly stages?: readonly SmtpStage[];
  readonly codes?: readonly string[];
  readonly replies?: readonly [from: number, to: number];
  readonly commands?: readonly string[];
}

const UNCERTAIN = "did not answer in time or dropped the connection, and whether it has the message is unknown";
/** How long to wait for a report on the message before it is sent again. */
const UNCERTAIN_WAIT_MS = 10 * 60_000;

/** The first matching rule decides. If none matches, the cause is `temporary`. */
const RULES: readonly Rule[] = [
  { cause: "utf8", codes: ["ESMTPUTF8"] },
  { cause: "eight_bit", codes: ["E8BITMIME"] },
  // A stop of this process, which happens at each release, must not delay its messages by ten minutes.
  { cause: "broken_off", codes: ["EABORT"], stages: ["end"] },
  { cause: "uncertain", stages: ["end"] },
  { cause: "called_off", codes: ["EABORT"], stages: ["waiting", "session"] },
  { cause: "silent", codes: ["EABORT"] },
  // Raised by the guard of outgoing connections, before any connection.
  { cause: "forbidden", codes: ["EFORBIDDEN"] },
  // 421 means that the server is accepting no mail at the moment, whichever command it answers; but as an answer to a
  // recipient or a message it may concern only that.
  { cause: "greeting", replies: [421, 421], stages: ["session"] },
  { cause: "greeting", replies: [421, 421], commands: ["MAIL FROM"] },
  // "Temporary authentication failure" (RFC 4954, 6).
  { cause: "login", codes: ["EAUTH", "ENOAUTH"], replies: [400, 499] },
  { cause: "credentials", codes: ["EAUTH", "ENOAUTH"] },
  // The server requires authentication or encryption first (RFC 4954, 6; RFC 3207, 4).
  { cause: "credentials", replies: [530, 530] },
  { cause: "credentials", replies: [534, 535] },
  { cause: "encryption", codes: ["ETLS", "EREQUIRETLS"], stages: ["session"] },
  // A refusal before MAIL FROM concerns this client or the server, not the message.
  { cause: "greeting", replies: [400, 599], stages: ["session"] },
  { cause: "unreachable", stages: ["session"] },
  // 4yz means that the same message may be accepted later. 503 means that the session was out of step, which a new one
  // is not.
  { cause: "temporary", replies: [400, 499] },
  { cause: "temporary", replies: [503, 503] },
  { cause: "message", replies: [500, 599] },
  { cause: "silent", codes: ["ECONNECTION", "ETIMEDOUT", "ESOCKET"] },
  // Without a reply, this is the client's own check of the envelope.
  { cause: "address", codes: ["EENVELOPE", "EMAXRECIPIENTS"] },
];

/**
 * Converts a failed submission to an outcome. A failure is permanent only if the server said so about this message, or
 * if only the tenant can fix the cause. A failure before the message is offered is not the message's fault: the server
 * counts as unavailable, and no attempt is used up. That includes the platform's own problems (its credentials, its
 * certificate), which must not cost a tenant's message. It excludes a tenant's own server that permanently refuses the
 * stored credentials: only the tenant can fix that and must be informed at once, and mail servers lock accounts after
 * repeated wrong passwords.
 */
export function smtpOutcome(failure: SmtpFailure, relay: SmtpRelay): Outcome {
  const cause = RULES.find((rule) => holds(rule, failure))?.cause ?? "temporary";
  const said = failure.reply === null ? "" : `: ${quotable(failure.reply, relay)}`;
  const server = relay.own ? "your mail server" : "the mail server";
  switch (cause) {
    case "called_off":
      return { kind: "retry", why: `its turn at ${server} did not come`, isUncounted: true, isUnsent: true };
    case "message":
      return { kind: "failed", error: `${server} refused the message${said}` };
    case "address":
      return { kind: "failed", error: "the sender's or the recipient's address cannot be sent to" };
    case "utf8":
      return { kind: "failed", error: `${server} takes no addresses with letters beyond ASCII (SMTPUTF8)` };
    case "eight_bit":
      return {
        kind: "failed",
        error: `${server} takes no bytes beyond ASCII (8BITMIME): encode the signed parts of the message before they are signed`,
      };
    case "credentials":
      return relay.own
        ? { kind: "failed", error: `your mail server refused the credentials that are stored for it${said}` }
        : { kind: "away", why: "the mail server refused this service's credentials" };
    case "forbidden":
      // As with credentials: only the tenant can fix it, or the operator, who can retry the job.
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
      // The message may be the cause, so this counts as an attempt.
      return {
        kind: "retry",
        why: `${server} did not answer in time or dropped the connection`,
        isSilence: true,
        isUnsent: true,
      };
    case "broken_off":
      return { kind: "retry", why: `${server} ${UNCERTAIN}`, isSilence: true, isUncertain: true };
    case "uncertain":
      return {
        kind: "retry",
        why: `${server} ${UNCERTAIN}`,
        afterMs: UNCERTAIN_WAIT_MS,
        isSilence: true,
        isUncertain: true,
      };
    case "temporary":
      return { kind: "retry", why: `${server} did not take the message yet${said}`, isUnsent: true };
  }
}

/** Whether the message got as far as the server, rather than being delayed in this process. */
export function hasAskedServer({ stage, code }: SmtpFailure): boolean {
  return stage !== "waiting" && code !== "EFORBIDDEN";
}

/**
 * Whether the server asks for a slower pace to this recipient's domain: 421, or 450 and 451 with an enhanced policy
 * code (4.7.x, RFC 3463, 3.8), which is how servers signal rate limits and greylisting once they know the recipient.
 */
export function asksForSlowness({ stage, replyCode, reply, command }: SmtpFailure): boolean {
  if (stage !== "message") return false;
  if (command === null || !ENVELOPE_COMMANDS.has(command)) return false;
  return replyCode === 421 || ((replyCode === 450 || replyCode === 451) && /^45[01][ -]4\.7\.\d/.test(reply ?? ""));
}

/**
 * Whether the answer to a recipient, others of whom were accepted, says that the server accepts no more of them in one
 * transaction: 452 4.5.3 (RFC 5321, 4.5.3.1.10; 552 in RFC 821), or words. Replies about a full store or an hourly
 * limit do not count.
 */
export function isTooMany({ code, text }: SmtpReply): boolean {
  if (/storage|space|quota|full|per (?:\w+ )?(?:minute|hour|day)|(?:this|an|last) (?:hour|day)|rate/i.test(text))
    return false;
  if (/^\d{3}[ -][45]\.5\.3\b/.test(text)) return true;
  if (code === 452 && !/^452[ -]\d\.\d/.test(text)) return true;
  return /too many (?:\w+ )?(?:recipients|rcpts?|addresses|destinations)\b|(?:recipients?|rcpt) (?:count )?limit|max(?:imum)?(?: \w+){0,3} recipients/i.test(
    text,
  );
}

const ENVELOPE_COMMANDS = new Set(["RCPT TO", "DATA"]);

function holds(rule: Rule, { stage, code, replyCode, command }: SmtpFailure): boolean {
  if (rule.stages && !rule.stages.includes(stage)) return false;
  if (rule.codes && !rule.codes.includes(code ?? "")) return false;
  if (rule.commands && !rule.commands.includes(command ?? "")) return false;
  return !rule.replies || (replyCode !== null && replyCode >= rule.replies[0] && replyCode <= rule.replies[1]);
}

const QUOTED_CHARS_MAX = 300;
/** Shorter texts occur anywhere, and hiding them would only garble the server's reply. */
const CONFIDENTIAL_CHARS_MIN = 4;

/** Makes a server's reply fit for a tenant: one line, bounded, without the platform's names and private addresses. */
export function quotable(reply: string, relay: SmtpRelay): string {
  // A reply can be a megabyte; the part that is cut off needs no processing.
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

/** Parses the queue id in a reply like Postfix's (`250 2.0.0 Ok: queued as 4jWbHP6T9TzKjBV`), or returns null. */
export function parseQueueId(reply: string): string | null {
  return /queued as ([0-9A-Za-z]{1,64})/.exec(reply)?.[1] ?? null;
}

/** The library's code for a cancelled message. */
export const CALLED_OFF = { code: "EABORT" } as const;

/** Converts the library's error. */
export function toSmtpFailure(error: unknown, stage: SmtpStage): SmtpFailure {
  const of = (name: string): unknown => (typeof error === "object" && error !== null ? Reflect.get(error, name) : null);
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  const replyCode = of("responseCode");
  // The library reports an untrusted certificate as a socket error; the system's own code has the cause.
  const isUntrusted = /CERT|TLS|SSL/.test(text(of("originalCode")) ?? "");
  return {
    stage,
    code: isUntrusted ? "ETLS" : text(of("code")),
    replyCode: typeof replyCode === "number" ? replyCode : null,
    reply: text(of("response")),
    command: text(of("command")),
  };
}
