import { Type } from "@sinclair/typebox";
import type { ReplyWindows } from "../../domain/channels/reply-windows.ts";
import type { Clock } from "../../domain/clock.ts";
import { isJsonObject, type Json } from "../../domain/texts/json.ts";
import { optional } from "../../http/schemas.ts";
import { complaintAboutMembers, presentMembers, type Refusal } from "../../http/sending/acceptance.ts";
import { chatLimits } from "./limits.ts";
import type { TextPayload } from "./payload.ts";
import { complaintAboutLines, lines } from "./templates/value-rules.ts";

const BodyText = lines(chatLimits.chatTextCharsMax, "Line breaks and tabs are taken.");

/** The member `text` of a chat send. */
export const FreeTextSchema = Type.Union(
  [
    BodyText,
    Type.Object(
      {
        body: BodyText,
        preview_url: optional(
          Type.Boolean({ description: "Whether the phone shows a preview of the text's first link. By default not." }),
        ),
      },
      { additionalProperties: false },
    ),
  ],
  {
    $id: "ChatText",
    description:
      "Free text, instead of `template_id`: taken for 24 hours after the recipient's last message to the number that " +
      "sends, otherwise 422.",
  },
);

const MEMBERS = ["body", "preview_url"];

/** Returns a sentence that says why a request's `text` is invalid, or null. */
export function complaintAboutText(value: Json): string | null {
  const { chatTextCharsMax: charsMax } = chatLimits;
  if (typeof value === "string") return complaintAboutLines(value, charsMax, "text");
  if (!isJsonObject(value)) return "text must be a string, or an object with body and preview_url";
  const text = presentMembers(value);
  const unknown = complaintAboutMembers(text, MEMBERS, "text", "text.");
  if (unknown !== null) return unknown;
  const preview = text["preview_url"];
  if (preview !== undefined && typeof preview !== "boolean") return "text.preview_url must be true or false";
  return text["body"] === undefined
    ? "text.body is required"
    : complaintAboutLines(text["body"], charsMax, "text.body");
}

/** Converts the text of a checked request. */
export function toFreeText(value: Json): TextPayload["text"] {
  const { body, preview_url } = isJsonObject(value) ? value : { body: value };
  return { body: String(body), preview_url: preview_url === true };
}

/** Lookups that decide whether a message without a template may be sent. */
export interface ReplyWindowPorts {
  readonly windows: Pick<ReplyWindows, "lastWrittenMs">;
  readonly clock: Pick<Clock, "nowMs">;
}

/** The number that sends such a message. */
interface SendingNumber {
  readonly phoneNumberId: string;
  /** Whether the number is the tenant's own. A tenant must not learn who wrote to the number of others, and when. */
  readonly isOwn: boolean;
}

/**
 * Returns why a message without a template cannot be sent to the recipient now, or null if the recipient wrote to the
 * number within 24 hours (WhatsApp Cloud API, "Customer service windows"). Rejects if the queue is unavailable.
 *
 * @param what The member that contains the message.
 */
export async function closedWindow(
  { windows, clock }: ReplyWindowPorts,
  { phoneNumberId, isOwn }: SendingNumber,
  { to, what }: { readonly to: string; readonly what: string },
): Promise<Refusal | null> {
  const lastMs = await windows.lastWrittenMs(phoneNumberId, listSpellings(to));
  if (lastMs !== null && lastMs + chatLimits.replyWindowMs > clock.nowMs()) return null;
  const rule = `${what} is only taken within 24 hours of the recipient's last message to the number that sends`;
  const message = `${rule}${isOwn ? sinceWhen(lastMs) : ""}: send a template (template_id) instead`;
  return { status: 422, code: "reply_window_closed", param: what, message };
}

function sinceWhen(lastMs: number | null): string {
  if (lastMs === null) return ", and no message from the last two days is known";
  return `, which was closed at ${iso(lastMs + chatLimits.replyWindowMs)}: the last message is of ${iso(lastMs)}`;
}

function iso(unixMs: number): string {
  return new Date(unixMs).toISOString();
}

/**
 * Lists the spellings that the provider may use for this number as a writer's (WhatsApp Cloud API, "Phone numbers"): in
 * Mexico with a 1 and in Argentina with a 9 after the country's code, in Brazil with or without the ninth digit after
 * the area's.
 */
export function listSpellings(to: string): readonly string[] {
  const rule = SPELLINGS.find(([pattern]) => pattern.test(to));
  return rule === undefined ? [to] : [to, to.replace(...rule)];
}

const SPELLINGS: readonly (readonly [RegExp, string])[] = [
  [/^521(?<rest>\d{10})$/, "52$<rest>"],
  [/^52(?<rest>\d{10})$/, "521$<rest>"],
  [/^549(?<rest>\d{10})$/, "54$<rest>"],
  [/^54(?<rest>\d{10})$/, "549$<rest>"],
  [/^(?<area>55\d{2})9(?<rest>\d{8})$/, "$<area>$<rest>"],
  [/^(?<area>55\d{2})(?<rest>\d{8})$/, "$<area>9$<rest>"],
];
