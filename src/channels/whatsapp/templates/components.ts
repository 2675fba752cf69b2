import { Type } from "@sinclair/typebox";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { NOT_BLANK, optional } from "../../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../../http/sending/acceptance.ts";
import { parseTime } from "../../../http/sending/schedule.ts";
import { complaintAboutRaw } from "../raw.ts";
import type { MessageButton } from "./buttons.ts";
import { buttonComponent, complaintAboutButtons, MessageButtonsSchema, readButtons } from "./buttons.ts";
import { complaintAboutHeader, HEADER_SCHEMAS, headerParameter, type MessageHeader, readHeader } from "./header.ts";
import { bodyParameters, complaintAboutParams, type MessageParams, MessageParamsSchema, readParams } from "./params.ts";

const CARDS_MAX = 10;
const COMPONENTS_MAX = 10;
const CARD_HEADERS = ["image", "video", "product"] as const;
const STRICT = { additionalProperties: false } as const;

/** The member `cards` of a chat send. */
export const CardsSchema = Type.Array(
  Type.Object(
    {
      header: Type.Union(CARD_HEADERS.map((type) => HEADER_SCHEMAS[type])),
      params: optional(MessageParamsSchema),
      buttons: optional(MessageButtonsSchema),
    },
    { $id: "ChatCard", ...STRICT },
  ),
  {
    minItems: 1,
    maxItems: CARDS_MAX,
    description:
      "Values for the cards of a carousel, one entry per card. All cards have the same kind of header and of buttons.",
  },
);

/** The member `limited_time_offer` of a chat send. */
export const OfferSchema = Type.Object(
  {
    expires_at: Type.String({
      format: "date-time",
      description: "When the offer ends: date, time and zone in ISO 8601.",
    }),
  },
  { $id: "ChatOffer", ...STRICT, description: "Values for a template that counts down to an offer's end." },
);

const KNOWN = ["header", "body", "footer", "button", "buttons", "carousel", "limited_time_offer"];

/** The member `components` of a chat send. */
export const ComponentsSchema = Type.Array(
  Type.Object({ type: Type.String({ minLength: 1, ...NOT_BLANK }) }, { additionalProperties: true }),
  {
    minItems: 1,
    maxItems: COMPONENTS_MAX,
    description:
      "Components of kinds that no other member fills, with the `type` and all else as the provider has them: they reach it " +
      "unchanged. Up to 16 KiB.",
  },
);

/** Returns a sentence that says why the members for further components are invalid, or null. */
export function complaintAboutComponents({ cards, limited_time_offer, components }: JsonObject): string | null {
  return complaintAboutCards(cards) ?? complaintAboutOffer(limited_time_offer) ?? complaintAboutOthers(components);
}

function complaintAboutCards(cards: Json | undefined): string | null {
  if (cards === undefined) return null;
  if (!isJsonArray(cards) || cards.length === 0 || cards.length > CARDS_MAX) {
    return `cards must be an array of 1 to ${CARDS_MAX} objects with a header`;
  }
  for (const [at, given] of cards.entries()) {
    const where = `cards[${at}]`;
    if (!isJsonObject(given)) return `${where} must be an object with a header`;
    const card = presentMembers(given);
    const complaint =
      complaintAboutMembers(card, ["header", "params", "buttons"], "a card", `${where}.`) ??
      (card["header"] === undefined ? `${where}.header is required` : null) ??
      complaintAboutHeader(card["header"], `${where}.header`, CARD_HEADERS) ??
      complaintAboutParams(card["params"], `${where}.params`) ??
      complaintAboutButtons(card["buttons"], `${where}.buttons`);
    if (complaint !== null) return complaint;
  }
  return null;
}

function complaintAboutOffer(given: Json | undefined): string | null {
  if (given === undefined) return null;
  if (!isJsonObject(given)) return "limited_time_offer must be an object with expires_at";
  const unknown = complaintAboutMembers(given, ["expires_at"], "limited_time_offer", "limited_time_offer.");
  if (unknown !== null) return unknown;
  const { expires_at: time } = given;
  return typeof time === "string" && parseTime(time) !== null
    ? null
    : "limited_time_offer.expires_at must be a time with its zone in ISO 8601, such as 2026-12-24T18:00:00Z";
}

function complaintAboutOthers(components: Json | undefined): string | null {
  if (components === undefined) return null;
  if (!isJsonArray(components) || components.length === 0 || components.length > COMPONENTS_MAX) {
    return `components must be an array of 1 to ${COMPONENTS_MAX} objects with a type`;
  }
  for (const [at, component] of components.entries()) {
    const type = isJsonObject(component) ? component["type"] : undefined;
    if (typeof type !== "string" || type.trim() === "") return `components[${at}] must be an object with a type`;
    if (KNOWN.includes(type.toLowerCase())) {
      return `components[${at}].type is ${type.slice(0, 100)}, which other members of the request fill`;
    }
  }
  return complaintAboutRaw(components, "components");
}

/** Builds the components of a checked request beside header, body and buttons, in the provider's form. */
export function furtherComponents({ cards, limited_time_offer: offer, components }: JsonObject): readonly JsonObject[] {
  return [
    ...(isJsonObject(offer) ? [offerComponent(offer)] : []),
    ...(isJsonArray(cards) ? [{ type: "carousel", cards: cards.filter(isJsonObject).map(fillCard) }] : []),
    ...(isJsonArray(components) ? components.filter(isJsonObject) : []),
  ];
}

/** Builds the component of an offer (WhatsApp Cloud API, "Limited-time offer templates"). */
function offerComponent({ expires_at: time }: JsonObject): JsonObject {
  const type = "limited_time_offer";
  return { type, parameters: [{ type, [type]: { expiration_time_ms: parseTime(String(time)) } }] };
}

/** Builds a card (WhatsApp Cloud API, "Media card carousel templates"). */
function fillCard(card: JsonObject, card_index: number): JsonObject {
  const components = filledComponents({
    header: readHeader(card["header"]),
    params: readParams(card["params"]),
    buttons: readButtons(card["buttons"]) ?? [],
  });
  return { card_index, components };
}

/** The values that fill a template, or one of its cards. */
interface Filled {
  readonly header: MessageHeader | null;
  readonly params: MessageParams;
  readonly buttons: readonly MessageButton[];
}

/** Builds the components of a template message (WhatsApp Cloud API, "Template components"). */
export function filledComponents({ header, params, buttons }: Filled): readonly JsonObject[] {
  const values = bodyParameters(params);
  return [
    ...(header === null ? [] : [{ type: "header", parameters: [headerParameter(header)] }]),
    // The provider refuses a body component without parameters for a template without variables (132000).
    ...(values.length === 0 ? [] : [{ type: "body", parameters: values }]),
    ...buttons.map(buttonComponent),
  ];
}
