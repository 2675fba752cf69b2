import { Type } from "@sinclair/typebox";
import { isJsonArray, isJsonObject, type Json, type JsonObject, writtenOut } from "../../../domain/texts/json.ts";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../../http/sending/acceptance.ts";
import { AnyObject, complaintAboutRaw } from "../raw.ts";
import { complaintAboutSections, graphSections, ProductSections } from "./products.ts";
import { complaintAbout, fillingValue } from "./value-rules.ts";

/** Types of buttons that one text fills. */
const TEXT_TYPES = ["quick_reply", "url", "copy_code"] as const;
export const BUTTON_TYPES = [...TEXT_TYPES, "flow", "catalog", "mpm"] as const;
export type ButtonType = (typeof BUTTON_TYPES)[number];

/** The values of a template's button in queued form: a text, or parameters in the provider's form. */
export type MessageButton = {
  /** The button's position in the template, from 0. */
  readonly index: number;
  readonly sub_type: string;
} & ({ readonly value: string } | { readonly parameters: readonly JsonObject[] });

const BUTTONS_MAX = 10;
const PARAMETERS_MAX = 10;
const SUB_TYPE = /^[a-z][a-z_]{0,63}$/;

/** Longest value of each type, in characters. */
const VALUE_CHARS_MAX: Readonly<Record<ButtonType, number>> = {
  quick_reply: 256,
  url: 2_000,
  copy_code: 20,
  flow: 512,
  catalog: 100,
  mpm: 100,
};

const index = Type.Integer({
  minimum: 0,
  maximum: BUTTONS_MAX - 1,
  description: "The button's place in the template, from 0.",
});
const STRICT = { additionalProperties: false } as const;

/** The member `buttons` of a chat send. */
export const MessageButtonsSchema = Type.Array(
  Type.Union(
    [
      Type.Object(
        {
          index,
          sub_type: enumSchema(TEXT_TYPES),
          value: fillingValue(
            VALUE_CHARS_MAX.url,
            `\`quick_reply\`: what comes back when it is pressed (at most ${VALUE_CHARS_MAX.quick_reply} characters). ` +
              `\`url\`: what follows the template's address (${VALUE_CHARS_MAX.url}). ` +
              `\`copy_code\`: the code (${VALUE_CHARS_MAX.copy_code}).`,
          ),
        },
        STRICT,
      ),
      Type.Object(
        {
          index,
          sub_type: Type.Literal("flow"),
          value: optional(fillingValue(VALUE_CHARS_MAX.flow, "The flow's token.")),
          data: optional(AnyObject("The data of the flow's first screen: up to 16 KiB.")),
        },
        STRICT,
      ),
      Type.Object(
        {
          index,
          sub_type: Type.Literal("catalog"),
          value: optional(
            fillingValue(VALUE_CHARS_MAX.catalog, "The product whose picture is shown; by default the first."),
          ),
        },
        STRICT,
      ),
      Type.Object(
        {
          index,
          sub_type: Type.Literal("mpm"),
          value: fillingValue(VALUE_CHARS_MAX.mpm, "The product whose picture is shown."),
          sections: ProductSections,
        },
        STRICT,
      ),
      Type.Object(
        {
          index,
          sub_type: Type.String({ pattern: SUB_TYPE.source, description: "A type of the provider's." }),
          parameters: Type.Array(AnyObject(), {
            minItems: 1,
            maxItems: PARAMETERS_MAX,
            description: "Its parameters, which reach the provider unchanged: up to 16 KiB.",
          }),
        },
        STRICT,
      ),
    ],
    { $id: "ChatButton" },
  ),
  { maxItems: BUTTONS_MAX, description: "Values for the template's buttons; at most one entry per button." },
);

/** Returns a sentence that says why the `buttons` of a request are invalid; null if they are valid or absent. */
export function complaintAboutButtons(value: Json | undefined, where = "buttons"): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) return `${where} must be an array of objects with index, sub_type and value`;
  if (value.length > BUTTONS_MAX) return `${where} must not hold more than ${BUTTONS_MAX} entries`;
  const seen = new Set<unknown>();
  for (const [at, button] of value.entries()) {
    const here = `${where}[${at}]`;
    const complaint = isJsonObject(button)
      ? complaintAboutOne(presentMembers(button), here)
      : `${here} must be an object`;
    if (complaint !== null) return complaint;
    const place = isJsonObject(button) ? button["index"] : undefined;
    if (seen.has(place)) return `${here}.index is ${String(place)} as another entry's: one entry a button`;
    seen.add(place);
  }
  return null;
}

const MEMBERS: Readonly<Record<ButtonType, readonly string[]>> = {
  quick_reply: ["value"],
  url: ["value"],
  copy_code: ["value"],
  flow: ["value", "data"],
  catalog: ["value"],
  mpm: ["value", "sections"],
};

function complaintAboutOne(button: JsonObject, where: string): string | null {
  const { index: place, sub_type: named, value, data, sections, parameters } = button;
  const type = BUTTON_TYPES.find((known) => known === named);
  const members = type === undefined || parameters !== undefined ? ["parameters"] : MEMBERS[type];
  const of = type === undefined ? "a button" : `a button of the type ${type}`;
  const unknown = complaintAboutMembers(button, ["index", "sub_type", ...members], of, `${where}.`);
  if (!isIndex(place)) return unknown ?? `${where}.index must be a whole number from 0 to ${BUTTONS_MAX - 1}`;
  if (parameters !== undefined && typeof named === "string" && SUB_TYPE.test(named)) {
    return unknown ?? complaintAboutParameters(parameters, `${where}.parameters`);
  }
  if (type === undefined) {
    return `${where}.sub_type must be one of ${BUTTON_TYPES.join(", ")}, or another of the provider's beside parameters`;
  }
  if (unknown !== null) return unknown;
  const isNeeded = type !== "flow" && type !== "catalog";
  if (value === undefined && isNeeded) return `${where}.value is required`;
  const complaint = value === undefined ? null : complaintAbout(value, VALUE_CHARS_MAX[type]);
  if (complaint !== null) return `${where}.value ${complaint}`;
  if (type === "mpm") return complaintAboutSections(sections, `${where}.sections`);
  if (data === undefined) return null;
  return isJsonObject(data) ? complaintAboutRaw(data, `${where}.data`) : `${where}.data must be an object`;
}

function complaintAboutParameters(value: Json, where: string): string | null {
  const isList = isJsonArray(value) && value.length > 0 && value.length <= PARAMETERS_MAX && value.every(isJsonObject);
  return isList ? complaintAboutRaw(value, where) : `${where} must be an array of 1 to ${PARAMETERS_MAX} objects`;
}

function isIndex(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < BUTTONS_MAX;
}

/** Reads the buttons of a checked request or a queued payload; null if their form is unknown. */
export function readButtons(value: unknown): readonly MessageButton[] | null {
  if (!Array.isArray(value)) return null;
  const buttons = value.flatMap((button) => (isJsonObject(button) ? (readButton(presentMembers(button)) ?? []) : []));
  return buttons.length === value.length ? buttons : null;
}

function readButton({
  index: place,
  sub_type: type,
  value,
  data,
  sections,
  parameters,
}: JsonObject): MessageButton | null {
  if (!isIndex(place) || typeof type !== "string") return null;
  const button = { index: place, sub_type: type };
  if (isJsonArray(parameters)) return { ...button, parameters: parameters.filter(isJsonObject) };
  const text = value === undefined ? null : writtenOut(value);
  switch (type) {
    case "catalog":
      return { ...button, parameters: text === null ? [] : [action({ thumbnail_product_retailer_id: text })] };
    case "mpm":
      return {
        ...button,
        parameters: [action({ thumbnail_product_retailer_id: text ?? "", sections: graphSections(sections) })],
      };
    case "flow":
      // The provider's own placeholder for a flow without a token. A release that does not know `data` reads buttons
      // with a value.
      if (text === null || data !== undefined) {
        const more = data === undefined ? {} : { flow_action_data: data };
        return { ...button, parameters: [action({ flow_token: text ?? "unused", ...more })] };
      }
      return { ...button, value: text };
    default:
      return text !== null && Object.hasOwn(PARAMETERS, type) ? { ...button, value: text } : null;
  }
}

function action(of: JsonObject): JsonObject {
  return { type: "action", action: of };
}

/** Builds a button's component of a template message (WhatsApp Cloud API, "Template components"). */
export function buttonComponent({ index: place, sub_type, ...filled }: MessageButton): JsonObject {
  const parameters = "parameters" in filled ? filled.parameters : [PARAMETERS[sub_type]?.(filled.value) ?? {}];
  // A catalogue's button without a picture has no parameters.
  return { type: "button", sub_type, index: String(place), ...(parameters.length > 0 && { parameters }) };
}

const PARAMETERS: Readonly<Record<string, (value: string) => JsonObject>> = {
  quick_reply: (payload) => ({ type: "payload", payload }),
  url: (text) => ({ type: "text", text }),
  copy_code: (coupon_code) => ({ type: "coupon_code", coupon_code }),
  flow: (flow_token) => action({ flow_token }),
};
