import type { EventType } from "./event.ts";
import type { Attempt, ChannelName } from "./job.ts";
import type { JsonObject } from "./json.ts";

/**
 * Why a message, or one try of it, failed, in the few words that a chart can have. They are stored, so none changes.
 *
 * | class | what |
 * |---|---|
 * | `recipient` | no such mailbox or number, or it is disabled |
 * | `mailbox_full` | the mailbox takes nothing more |
 * | `domain` | the recipient's domain does not exist, or takes no mail |
 * | `refused` | the provider does not want it from us: reputation, a block list, a policy |
 * | `authentication` | SPF, DKIM or DMARC did not pass |
 * | `throttled` | too much, or too fast: later it may pass |
 * | `content` | the message itself: spam, size, form, template |
 * | `sender` | the sender's account: credentials, payment, a locked number |
 * | `unreachable` | no answer, or no way to the server |
 * | `other` | none of these |
 */
export const FAILURE_CLASSES = [
  "recipient",
  "mailbox_full",
  "domain",
  "refused",
  "authentication",
  "throttled",
  "content",
  "sender",
  "unreachable",
  "other",
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

interface Happened {
  readonly channel: ChannelName;
  readonly type: EventType;
  readonly result: JsonObject;
}

/** The class of a `failed` or `bounced` event; null for every other event. */
export function failureClassOfEvent({ channel, type, result }: Happened): FailureClass | null {
  if (type !== "failed" && type !== "bounced") return null;
  const words = [result["code"], result["enhanced_code"], result["error"] ?? result["diagnostic"]];
  const text = words.filter((word) => typeof word === "string" || typeof word === "number").join(" ");
  return classOf(channel, text);
}

/** The class of a try that did not succeed; null for one that did, or about which nothing is known. */
export function failureClassOfTry(channel: ChannelName, { outcome, reply }: Attempt): FailureClass | null {
  return outcome === "sent" || reply === undefined ? null : classOf(channel, reply);
}

function classOf(channel: ChannelName, text: string): FailureClass {
  if (channel === "whatsapp") {
    const code = Number(/(?:^|\berror )\(?#?(\d{1,6})\b/.exec(text)?.[1] ?? Number.NaN);
    const known = CHAT_CODES.find(({ codes }) => codes.includes(code));
    if (known !== undefined) return known.is;
  }
  const status = /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(text)?.[0] ?? "";
  return RULES.find((rule) => rule.status?.test(status) === true || rule.text?.test(text) === true)?.is ?? "other";
}

interface Rule {
  readonly is: FailureClass;
  /** Status codes of RFC 3463. One of the two conditions is enough. */
  readonly status?: RegExp;
  readonly text?: RegExp;
}

/** The first that matches decides: what says more comes first. */
const RULES: readonly Rule[] = [
  // RFC 7372 (5.7.20 to 26), RFC 7505, 5.7.27; Gmail and Microsoft name the method.
  { is: "authentication", status: /^[45]\.7\.2[0-7]$/, text: /\b(?:spf|dkim|dmarc|unauthenticated)\b/i },
  { is: "mailbox_full", status: /^[45]\.2\.2$/, text: /\b(?:over quota|quota exceeded|mailbox (?:is )?full)\b/i },
  // RFC 3463, 3.4 and 3.7.
  {
    is: "content",
    status: /^[45]\.(?:3\.4|2\.3|6\.\d+)$/,
    text: /\b(?:virus|malware|message too (?:big|large)|spam (?:score|filter|content)|content rejected)\b/i,
  },
  {
    is: "throttled",
    status: /^4\.7\.\d+$/,
    text: /^421\b|\b(?:rate limit\w*|too many|too (?:fast|quickly|often)|throttl\w+|gr[ae]ylist\w*|at a rate|has to pause|turn \S.{0,60}did not come)\b/i,
  },
  {
    is: "refused",
    text: /\b(?:block(?:ed|list|listed|ing)?|blacklist(?:ed)?|denylist|reputation|spamhaus|banned|unsolicited|complaints?)\b/i,
  },
  {
    is: "sender",
    status: /^[45]\.1\.[78]$/,
    text: /\b(?:credentials|authentication (?:failed|required)|sender address)\b/i,
  },
  {
    is: "domain",
    status: /^[45]\.(?:1\.2|1\.10|4\.4)$/,
    text: /\b(?:host or domain name not found|no such domain|domain does not exist)\b/i,
  },
  // RFC 3463, 3.2 and 3.3.
  {
    is: "recipient",
    status: /^[45]\.(?:1\.[0-6]|2\.1)$/,
    text: /\b(?:no such|unknown|invalid) (?:user|mailbox|recipient|address|person)\b|\b(?:user|mailbox|recipient|account) (?:unknown|disabled|not found|does not exist)\b/i,
  },
  { is: "refused", status: /^5\.7\.\d+$/, text: /\b(?:policy|access denied|relaying denied)\b/i },
  {
    is: "unreachable",
    status: /^[45]\.4\.\d+$/,
    text: /\b(?:did not answer|could not be (?:reached|delivered)|dropped the connection|timed out|is away|no encrypted connection|broke off)\b/i,
  },
];

/** The chat provider's codes (WhatsApp Cloud API, "Error codes"). */
const CHAT_CODES: readonly { readonly is: FailureClass; readonly codes: readonly number[] }[] = [
  { is: "recipient", codes: [131021, 131026, 131030] },
  { is: "refused", codes: [130472, 130497, 131047, 131049, 131050] },
  { is: "throttled", codes: [4, 80007, 130429, 131048, 131056, 133016] },
  { is: "content", codes: [33, 100, 131008, 131009, 131051, 131052, 131053, 135000] },
  { is: "content", codes: [132000, 132001, 132005, 132007, 132012, 132015, 132016, 132018, 132068, 132069] },
  { is: "sender", codes: [0, 3, 10, 190, 368, 131005, 131031, 131037, 131042, 131045, 133000, 134011] },
  // Permissions; the number's registration and verification.
  { is: "sender", codes: Array.from({ length: 100 }, (_, n) => 200 + n) },
  { is: "sender", codes: [133005, 133006, 133007, 133008, 133009, 133010, 133015] },
  { is: "unreachable", codes: [1, 2, 131000, 131016, 131057, 133004] },
];
