import { Type } from "@sinclair/typebox";
import { isJsonObject, type Json, type JsonObject, writtenOut } from "../../domain/json.ts";
import { enumOf } from "../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../http/sending/acceptance.ts";
import { complaintAbout } from "./value-rules.ts";

export const BUTTON_TYPES = ["quick_reply", "url", "copy_code", "flow"] as const;
export type ButtonType = (typeof BUTTON_TYPES)[number];

/** What fills a button of a template, in the form of the request and of the queue. */
export interface MessageButton {
  /** The button's place in the template, from 0. */
  readonly index: number;
  readonly sub_type: ButtonType;
  readonly value: string;
}

const BUTTONS_MAX = 10;

/** Longest value of each type, in characters. */
const VALUE_CHARS_MAX: Readonly<Record<ButtonType, number>> = {
  quick_reply: 256,
  url: 2_000,
  copy_code: 20,
  flow: 512,
};

/** The member `buttons` of a chat send. */
export const MessageButtonsSchema = Type.Array(
  Type.Object(
    {
      index: Type.Integer({
        minimum: 0,
        maximum: BUTTONS_MAX - 1,
        description: "The button's place in the template, from 0.",
      }),
      sub_type: enumOf(BUTTON_TYPES),
      value: Type.Union(
        [Type.String({ minLength: 1, maxLength: VALUE_CHARS_MAX.url }), Type.Number(), Type.Boolean()],
        {
          description:
            `\`quick_reply\`: what comes back when it is pressed (at most ${VALUE_CHARS_MAX.quick_reply} characters). ` +
            `\`url\`: what follows the template's address (${VALUE_CHARS_MAX.url}). ` +
            `\`copy_code\`: the code (${VALUE_CHARS_MAX.copy_code}). \`flow\`: the flow's token (${VALUE_CHARS_MAX.flow}).`,
        },
      ),
    },
    { $id: "ChatButton", additionalProperties: false },
  ),
  { maxItems: BUTTONS_MAX, description: "What fills the template's buttons; one entry a button at most." },
);

const MEMBERS = ["index", "sub_type", "value"];

/** What is wrong with a request's `buttons`, in a sentence; null: nothing. */
export function complaintAboutButtons(value: Json | undefined): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) return "buttons must be an array of objects with index, sub_type and value";
  if (value.length > BUTTONS_MAX) return `buttons must not hold more than ${BUTTONS_MAX} entries`;
  const seen = new Set<unknown>();
  for (const [at, button] of value.entries()) {
    const complaint = isJsonObject(button) ? complaintAboutOne(presentMembers(button)) : " must be an object";
    if (complaint !== null) return `buttons[${at}]${complaint}`;
    const index = isJsonObject(button) ? button["index"] : undefined;
    if (seen.has(index)) return `buttons[${at}].index is ${String(index)} as another entry's: one entry a button`;
    seen.add(index);
  }
  return null;
}

function complaintAboutOne(button: JsonObject): string | null {
  const unknown = complaintAboutMembers(button, MEMBERS, "a button", ".");
  if (unknown !== null) return unknown;
  const { index, value } = button;
  if (!isIndex(index)) return `.index must be a whole number from 0 to ${BUTTONS_MAX - 1}`;
  const type = BUTTON_TYPES.find((known) => known === button["sub_type"]);
  if (type === undefined) return `.sub_type must be one of ${BUTTON_TYPES.join(", ")}`;
  if (value === undefined) return ".value is required";
  const complaint = complaintAbout(value, VALUE_CHARS_MAX[type]);
  return complaint === null ? null : `.value ${complaint}`;
}

function isIndex(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < BUTTONS_MAX;
}

/** The buttons that a checked request asks for, or that were queued; null: they are in no known form. */
export function buttonsOf(value: unknown): readonly MessageButton[] | null {
  if (!Array.isArray(value)) return null;
  const buttons = value.flatMap((button): MessageButton[] => {
    const { index, sub_type, value: text } = isJsonObject(button) ? button : {};
    const type = BUTTON_TYPES.find((known) => known === sub_type);
    return isIndex(index) && type !== undefined && text !== undefined
      ? [{ index, sub_type: type, value: writtenOut(text) }]
      : [];
  });
  return buttons.length === value.length ? buttons : null;
}

/** A button's component of a template message (WhatsApp Cloud API, "Template components"). */
export function buttonComponent({ index, sub_type, value }: MessageButton): JsonObject {
  return { type: "button", sub_type, index: String(index), parameters: [PARAMETERS[sub_type](value)] };
}

const PARAMETERS: Readonly<Record<ButtonType, (value: string) => JsonObject>> = {
  quick_reply: (payload) => ({ type: "payload", payload }),
  url: (text) => ({ type: "text", text }),
  copy_code: (coupon_code) => ({ type: "coupon_code", coupon_code }),
  flow: (flow_token) => ({ type: "action", action: { flow_token } }),
};
