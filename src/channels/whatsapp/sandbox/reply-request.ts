import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { badValue, type GraphRefusal, invalid, missing } from "./graph-refusal.ts";
import { mediaRefusal, placeRefusal } from "./template-request.ts";

const TEXT_CHARS_MAX = 4_096;
const MEDIA = ["image", "video", "audio", "document", "sticker"];

/** Whether the API accepts messages of this type without a template. */
export function isReplyType(type: Json | undefined): type is string {
  return typeof type === "string" && (MEDIA.includes(type) || Object.hasOwn(RULES, type));
}

/** Returns the API's refusal of a message without a template; null if it accepts the message. */
export function replyRefusal(type: string, request: JsonObject): GraphRefusal | null {
  const { context, [type]: content } = request;
  if (context !== undefined && !(isJsonObject(context) && isText(context["message_id"]))) {
    return invalid("The parameter context['message_id'] is required.");
  }
  if (MEDIA.includes(type)) return mediaRefusal(content, type) ?? captionRefusal(content, type);
  return RULES[type]?.(content) ?? null;
}

const RULES: Readonly<Record<string, (content: Json | undefined) => GraphRefusal | null>> = {
  text: textRefusal,
  location: (place) => placeRefusal(place, "location"),
  contacts: contactsRefusal,
  reaction: (reaction) =>
    isJsonObject(reaction) && isText(reaction["message_id"]) && typeof reaction["emoji"] === "string"
      ? null
      : invalid("The parameter reaction['message_id'] is required."),
  interactive: interactiveRefusal,
};

function textRefusal(text: Json | undefined): GraphRefusal | null {
  if (!isJsonObject(text) || typeof text["body"] !== "string" || text["body"] === "") {
    return invalid("The parameter text['body'] is required.");
  }
  if (text["body"].length > TEXT_CHARS_MAX) {
    return invalid(`Param text['body'] must be at most ${TEXT_CHARS_MAX} characters long.`);
  }
  const preview = text["preview_url"];
  return preview === undefined || typeof preview === "boolean"
    ? null
    : invalid("Param text['preview_url'] must be a boolean.");
}

function captionRefusal(media: Json | undefined, type: string): GraphRefusal | null {
  const isPlain = type === "audio" || type === "sticker";
  return isPlain && isJsonObject(media) && "caption" in media
    ? invalid(`Unexpected key "caption" on param "${type}".`)
    : null;
}

function contactsRefusal(contacts: Json | undefined): GraphRefusal | null {
  if (!isJsonArray(contacts) || contacts.length === 0) return invalid("Param contacts must be an array.");
  const isNamed = contacts.every(
    (one) => isJsonObject(one) && isJsonObject(one["name"]) && isText(one["name"]["formatted_name"]),
  );
  return isNamed ? null : missing("contacts: name.formatted_name is required");
}

/** Required content of each type's action. */
const ACTIONS: Readonly<Record<string, (action: JsonObject) => boolean>> = {
  button: ({ buttons }) =>
    isBoundedList(buttons, 3, ({ type, reply }) => type === "reply" && isJsonObject(reply) && isChoice(reply, 256, 20)),
  list: ({ button, sections }) =>
    isText(button) &&
    isBoundedList(sections, 10, ({ rows }) => isBoundedList(rows, 10, (row) => isChoice(row, 200, 24))),
  cta_url: ({ name, parameters }) =>
    name === "cta_url" && isJsonObject(parameters) && isText(parameters["display_text"]) && isText(parameters["url"]),
  flow: ({ name, parameters }) =>
    name === "flow" &&
    isJsonObject(parameters) &&
    parameters["flow_message_version"] === "3" &&
    isText(parameters["flow_cta"]) &&
    isText(parameters["flow_id"] ?? parameters["flow_name"]),
  location_request_message: ({ name }) => name === "send_location",
  product: ({ catalog_id, product_retailer_id }) => isText(catalog_id) && isText(product_retailer_id),
  product_list: ({ catalog_id, sections }) =>
    isText(catalog_id) &&
    isBoundedList(sections, 10, ({ title, product_items }) =>
      isBoundedList(product_items, 30, (item) => isText(title) && isText(item["product_retailer_id"])),
    ),
  catalog_message: ({ name }) => name === "catalog_message",
  carousel: ({ cards }) => isBoundedList(cards, 10, ({ card_index }) => typeof card_index === "number"),
  call_permission_request: ({ name }) => name === "call_permission_request",
  address_message: ({ name }) => name === "address_message",
  voice_call: ({ name }) => name === "voice_call",
};

function interactiveRefusal(interactive: Json | undefined): GraphRefusal | null {
  if (!isJsonObject(interactive)) return invalid("The parameter interactive is required.");
  const { type, header, body, action } = interactive;
  const rule = typeof type === "string" && Object.hasOwn(ACTIONS, type) ? ACTIONS[type] : undefined;
  if (rule === undefined) {
    return invalid(`Param interactive['type'] must be one of {${Object.keys(ACTIONS).join(", ").toUpperCase()}}.`);
  }
  const isSaid = isJsonObject(body) && isText(body["text"]);
  if (type !== "product" && !isSaid) return invalid("The parameter interactive['body']['text'] is required.");
  if (type === "product_list" && header === undefined) {
    return invalid("The parameter interactive['header'] is required.");
  }
  const wrongHeader = headerRefusal(header);
  if (wrongHeader !== null) return wrongHeader;
  return isJsonObject(action) && rule(action) ? null : badValue(`interactive.action is not valid for ${String(type)}`);
}

function headerRefusal(header: Json | undefined): GraphRefusal | null {
  if (header === undefined) return null;
  const path = "interactive['header']";
  if (!isJsonObject(header)) return invalid(`Param ${path} must be a JSON object.`);
  const { type, text } = header;
  if (type === "text") return isText(text) ? null : invalid(`The parameter ${path}['text'] is required.`);
  return typeof type === "string" && ["image", "video", "document"].includes(type)
    ? mediaRefusal(header[type], `${path}['${type}']`)
    : invalid(`Param ${path}['type'] must be one of {TEXT, IMAGE, VIDEO, DOCUMENT}.`);
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

function isChoice({ id, title }: JsonObject, idMax: number, titleMax: number): boolean {
  return isText(id) && id.length <= idMax && isText(title) && Array.from(title).length <= titleMax;
}

function isBoundedList(value: Json | undefined, max: number, isFine: (one: JsonObject) => boolean): boolean {
  return (
    isJsonArray(value) &&
    value.length > 0 &&
    value.length <= max &&
    value.every((one) => isJsonObject(one) && isFine(one))
  );
}
