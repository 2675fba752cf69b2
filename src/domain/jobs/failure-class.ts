import { judgeRefusal } from "../channels/mail-refusals.ts";
import { PURGED } from "../tenants/steering.ts";
import type { JsonObject } from "../texts/json.ts";
import type { EventType } from "./event.ts";
import type { Attempt, ChannelName, JobStatus } from "./job.ts";

/**
 * The class of failure of a message or of one of its tries, few enough for a chart. The names are stored, so none
 * changes.
 *
 * | class | meaning |
 * |---|---|
 * | `recipient` | no such mailbox or number, or it is disabled |
 * | `mailbox_full` | the mailbox is full |
 * | `domain` | the recipient's domain does not exist, or accepts no mail |
 * | `refused` | the provider does not want it from us: reputation, a block list, a policy |
 * | `authentication` | SPF, DKIM or DMARC did not pass |
 * | `throttled` | too much, or too fast: later it may pass |
 * | `content` | the message itself: spam, size, form, template |
 * | `sender` | the sender's account: credentials, payment, a locked number |
 * | `unreachable` | no answer, or no way to the server |
 * | `purged` | an operator ended it before it was handed over |
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
  "purged",
  "other",
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

interface Happened {
  readonly channel: ChannelName;
  readonly type: EventType;
  readonly result: JsonObject;
}

/** Returns the class of a `failed` or `bounced` event; null for every other event. */
export function failureClassOfEvent({ channel, type, result }: Happened): FailureClass | null {
  if (type !== "failed" && type !== "bounced") return null;
  if (result["error"] === PURGED) return "purged";
  const words = [result["code"], result["enhanced_code"], result["error"] ?? result["diagnostic"]];
  const text = words.filter((word) => typeof word === "string" || typeof word === "number").join(" ");
  return classifyText(channel, text);
}

/** Returns the class of a job with this status and result; null: it did not fail. */
export function failureClassOfJob({
  channel,
  status,
  result,
}: Pick<Happened, "channel"> & {
  readonly status: JobStatus;
  readonly result: JsonObject | null;
}): FailureClass | null {
  return status === "failed" ? failureClassOfEvent({ channel, type: "failed", result: result ?? {} }) : null;
}

/** Returns the class of a try that failed; null for one that succeeded, or whose outcome is unknown. */
export function failureClassOfTry(channel: ChannelName, { outcome, reply }: Attempt): FailureClass | null {
  return outcome === "sent" || reply === undefined ? null : classifyText(channel, reply);
}

function classifyText(channel: ChannelName, text: string): FailureClass {
  if (channel === "whatsapp") {
    const code = Number(/(?:^|\berror )\(?#?(\d{1,6})\b/.exec(text)?.[1] ?? Number.NaN);
    const known = CHAT_CODES.find(({ codes }) => codes.includes(code));
    if (known !== undefined) return known.is;
  }
  return judgeRefusal({ text }).is;
}

/** The chat provider's codes (WhatsApp Cloud API, "Error codes"). */
const CHAT_CODES: readonly { readonly is: FailureClass; readonly codes: readonly number[] }[] = [
  { is: "recipient", codes: [131021, 131026, 131030] },
  { is: "refused", codes: [130472, 130497, 131047, 131049, 131050] },
  { is: "throttled", codes: [4, 17, 32, 341, 613, 130429, 131048, 131056, 133016] },
  { is: "throttled", codes: Array.from({ length: 15 }, (_, n) => 80000 + n) },
  { is: "content", codes: [33, 100, 131062, 131008, 131009, 131051, 131052, 131053, 135000] },
  { is: "content", codes: [132000, 132001, 132005, 132007, 132012, 132015, 132016, 132018, 132068, 132069] },
  { is: "sender", codes: [0, 3, 10, 190, 368, 131005, 131031, 131037, 131042, 131045, 133000, 134011] },
  // Permissions; the number's registration and verification.
  { is: "sender", codes: Array.from({ length: 100 }, (_, n) => 200 + n) },
  { is: "sender", codes: [133005, 133006, 133007, 133008, 133009, 133010, 133015] },
  { is: "unreachable", codes: [1, 2, 131000, 131016, 131057, 133004] },
];
