import { jobOfReturnPath } from "../mail-address.ts";

/** Identifies a line's message: queue ids are unique only within one instance of Postfix (`postfix`, `postfix-out`). */
export interface QueueRef {
  readonly instance: string;
  readonly queueId: string;
}

/**
 * A line of Postfix's log about a message's delivery.
 *
 * - `named`: the message got its queue id; `messageId` is its Message-ID header. Always the first of these lines.
 * - `returns_to`: the queue manager has it, and its return path names a job.
 * - `delivered`: an external server accepted it. `said` is the server's reply.
 * - `handed_over`: it went to a program or a mailbox store on this machine, which does not prove its delivery.
 * - `bounced`: permanently refused. `deferred`: it stays in the queue.
 * - `expired`: it was in the queue for too long; Postfix gave it up for all remaining recipients.
 * - `notified`: a notification about it was queued under `notificationId`.
 * - `removed`: it left the queue.
 * - `unreadable`: looks like a delivery line but has no known form.
 */
export type PostfixLogLine = QueueRef &
  (
    | { readonly kind: "named"; readonly messageId: string }
    | { readonly kind: "returns_to"; readonly jobId: string }
    | { readonly kind: "delivered"; readonly recipient: string; readonly said: string }
    | { readonly kind: "handed_over"; readonly recipient: string }
    | ({ readonly kind: "bounced" } & RefusedMail)
    | ({ readonly kind: "deferred" } & RefusedMail)
    | { readonly kind: "expired" }
    | { readonly kind: "notified"; readonly notificationId: string }
    | { readonly kind: "removed" }
    | { readonly kind: "unreadable" }
  );

export interface RefusedMail {
  /** The address that the message was sent to, before any alias was applied. */
  readonly recipient: string;
  /** RFC 3463; null in logs of Postfix before 2.3. */
  readonly enhancedCode: string | null;
  /** The destination's reply code (RFC 5321, 4.2); null if Postfix itself gave up. */
  readonly replyCode: number | null;
  /** The text from the destination, or from Postfix itself. */
  readonly text: string;
  /** The SMTP command that the server answered, or null. */
  readonly command: string | null;
}

/** Parses one line, without its line break. Returns null if it is not about a message's delivery. */
export function parsePostfixLogLine(line: string): PostfixLogLine | null {
  const head = HEAD.exec(line) ?? HEAD_RFC5424.exec(line);
  if (head === null) return tellsOutcome(line) && !TAG.test(line) ? UNREADABLE : null;
  const [matched, instance = "", program = "", queueId = ""] = head;
  const rest = line.slice(matched.length);
  const ref = { instance, queueId };
  if (rest.startsWith("to=")) return delivery(ref, program, rest);
  if (rest.startsWith("message-id=") && program === "cleanup") {
    return { ...ref, kind: "named", messageId: rest.slice("message-id=".length) };
  }
  if (rest === "removed") return { ...ref, kind: "removed" };
  if (rest.startsWith("from=<") && program === "qmgr") {
    if (EXPIRED.test(rest)) return { ...ref, kind: "expired" };
    const jobId = jobOfReturnPath(/^from=<([^>]{1,320})>/.exec(rest)?.[1] ?? "");
    return jobId === null ? null : { ...ref, kind: "returns_to", jobId };
  }
  const notificationId = NOTIFIED.exec(rest)?.[1];
  return notificationId === undefined ? null : { ...ref, kind: "notified", notificationId };
}

const UNREADABLE: PostfixLogLine = { kind: "unreadable", instance: "", queueId: "" };

/** A queue id, short (hexadecimal) or long (base 52 without vowels; postconf(5), enable_long_queue_ids). */
const QUEUE_ID = "([0-9A-F]{6,20}|[0-9BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz]{10,32}): ";

/**
 * The first word with a colon is the program, `instance/…/program[pid]:`, whatever the logger writes before it: a time
 * in any form, a host, a container's name. Later words are not considered, because remote servers and clients choose
 * them.
 */
const HEAD = new RegExp(
  String.raw`^(?:\S{0,255}[^\s:]\s{1,8}){0,12}([\w.-]{1,64})\/(?:[\w.-]{1,64}\/){0,8}([\w-]{1,64})\[\d{1,10}\]: (?:\[ID \d{1,10} [\w.]{1,64}\] )?${QUEUE_ID}`,
);

/** RFC 5424, 6: priority, version, time, host, program, process id, message id, structured data. */
const HEAD_RFC5424 = new RegExp(
  String.raw`^<\d{1,3}>1 \S{1,64} \S{1,255} ([\w.-]{1,64})\/(?:[\w.-]{1,64}\/){0,8}([\w-]{1,64}) \S{1,128} \S{1,32} (?:-|\[[^\]]{0,1024}\]) {1,4}\uFEFF?${QUEUE_ID}`,
);

/** Any program's name and colon; the text after them may quote Postfix. */
const TAG = /^(?:\S{0,255}[^\s:]\s{1,8}){0,12}[\w./-]{1,255}(?:\[\d{1,10}\])?:\s/;

/** Whether the line reports an outcome, in whatever wrapping. */
function tellsOutcome(line: string): boolean {
  return /\bto=/.test(line) && /\bstatus=\w{1,64} \(/.test(line);
}

/** Logged by the queue manager, without a recipient; `force-expired` if an operator requested it (postsuper(1), -e). */
const EXPIRED = /, status=(?:force-)?expired, returned to sender/;

const NOTIFIED = /^sender (?:non-delivery|delay|delivery status) notification: (\w+)$/;

/** `key=value`: an address in angle brackets, which may contain `>` within quotes, or anything up to a comma. */
const FIELD = /([\w-]{1,64})=(?:<((?:"(?:[^"\\]|\\.)*"|[^">])*)>|([^,]*))/y;
/** Up to the next field, whatever stands in between. */
const SEPARATOR = /[^,]*,\s*/y;

interface Fields {
  readonly named: ReadonlyMap<string, string>;
  /** The text after `status=`, to the end of the line; null if there is none. */
  readonly status: string | null;
}

/** Parses fields in any order, including unknown ones, which any release of Postfix may add. */
function parseFields(text: string): Fields {
  const named = new Map<string, string>();
  let at = 0;
  while (at < text.length && named.size < FIELDS_MAX) {
    FIELD.lastIndex = at;
    const field = FIELD.exec(text);
    if (field !== null) {
      const [matched, key = "", address, value = ""] = field;
      if (key === "status") return { named, status: text.slice(at + "status=".length) };
      named.set(key, address ?? value);
      at += matched.length;
    }
    SEPARATOR.lastIndex = at;
    const separator = SEPARATOR.exec(text);
    if (separator === null) break;
    at += separator[0].length;
  }
  return { named, status: null };
}

const FIELDS_MAX = 64;

/** A word, and the reason in parentheses, which may contain further ones. */
const STATUS = /^([\w-]{1,64})(?:\s+\((.*)\))?/;
const ENHANCED_CODE = /^\d\.\d{1,3}\.\d{1,3}$/;

function delivery(ref: QueueRef, program: string, rest: string): PostfixLogLine | null {
  const { named, status } = parseFields(rest);
  const recipient = named.get("orig_to") ?? named.get("to");
  const read = STATUS.exec(status ?? "");
  if (recipient === undefined || read === null) return { ...ref, kind: "unreadable" };
  const [, word = "", text = ""] = read;
  const dsn = named.get("dsn") ?? "";
  const enhancedCode = ENHANCED_CODE.test(dsn) ? dsn : null;
  switch (word) {
    case "sent":
      if (!OUTWARD.has(program) || FILTERED.test(text)) return { ...ref, kind: "handed_over", recipient };
      return { ...ref, kind: "delivered", recipient, said: text };
    case "bounced":
      return { ...ref, kind: "bounced", ...refusal(recipient, enhancedCode, text) };
    case "deferred":
    // With `soft_bounce=yes` Postfix keeps messages in the queue that it would otherwise bounce.
    case "SOFTBOUNCE":
      return { ...ref, kind: "deferred", ...refusal(recipient, enhancedCode, text) };
    // Probes for address verification are not messages.
    case "deliverable":
    case "undeliverable":
      return null;
    default:
      return { ...ref, kind: "unreadable" };
  }
}

/**
 * The programs that send to other servers; `pipe`, `local`, `virtual` and `discard` keep the message on this machine.
 */
const OUTWARD: ReadonlySet<string> = new Set(["smtp", "lmtp"]);

/** amavisd's reply when it has requeued a message. */
const FILTERED = /\bfrom MTA\(/;

/** `host mx.example.com[192.0.2.1] said: 550 5.1.1 … (in reply to RCPT TO command)` and similar lines. */
const SAID = /^host \S+ (?:said|refused to talk to me): /;
const IN_REPLY_TO = / \(in reply to ([A-Za-z ]{1,40}?)(?: command)?\)$/;

function refusal(recipient: string, enhancedCode: string | null, text: string): RefusedMail {
  const said = SAID.exec(text);
  if (said === null) return { recipient, enhancedCode, replyCode: null, text, command: null };
  const reply = text.slice(said[0].length);
  const command = IN_REPLY_TO.exec(reply);
  return {
    recipient,
    enhancedCode,
    replyCode: Number(/^[2-5]\d\d(?=[ -]|$)/.exec(reply)?.[0]) || null,
    text: command === null ? reply : reply.slice(0, command.index),
    command: command?.[1] ?? null,
  };
}
