import { isJsonObject } from "../../../domain/texts/json.ts";
import { badValue, type GraphRefusal, invalid } from "./graph-refusal.ts";
import { isReplyType, replyRefusal } from "./reply-request.ts";
import { isOfAuthentication, templateName } from "./template-request.ts";

/** A message in the form that the Graph API accepts. */
export interface MessageRequest {
  /** Digits, or the id of a person. */
  readonly to: string;
  /** The template's name; null: it has none. */
  readonly template: string | null;
  /** Returned with every callback. */
  readonly opaque: string | null;
}

/** Reads the message from a request, or returns its first error in the provider's words. */
export function readMessageRequest(body: string): MessageRequest | GraphRefusal {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return invalid("The request body is not valid JSON.");
  }
  if (!isJsonObject(parsed)) return invalid("The request body must be an object.");
  const {
    messaging_product,
    recipient_type,
    to: number,
    recipient,
    type,
    template,
    biz_opaque_callback_data: opaque,
  } = parsed;
  if (messaging_product !== "whatsapp") return invalid("The parameter messaging_product is required.");
  if (recipient_type !== undefined && recipient_type !== "individual") {
    return invalid('Param recipient_type must be one of {"INDIVIDUAL"}.');
  }
  // A number goes before an id, as with the provider.
  const to = number ?? recipient;
  if (typeof to !== "string" || to === "") return invalid("The parameter to is required.");
  if (number === undefined && !USER_ID.test(to)) return badValue("Recipient user id is not valid");
  if (number !== undefined && !/^\+?\d{7,15}$/.test(to)) return badValue("Recipient phone number is not valid");
  if (type !== "template" && !isReplyType(type)) {
    return { status: 400, code: 131051, message: "Unsupported message type" };
  }
  if (opaque !== undefined && (typeof opaque !== "string" || opaque.length > OPAQUE_CHARS_MAX)) {
    return badValue(`biz_opaque_callback_data must be a string of at most ${OPAQUE_CHARS_MAX} characters`);
  }
  const name = type === "template" ? templateName(template) : replyRefusal(type, parsed);
  if (name !== null && typeof name !== "string") return name;
  if (number === undefined && isOfAuthentication(template)) return NO_USER_ID;
  return { to: to.replace("+", ""), template: name, opaque: opaque ?? null };
}

const USER_ID = /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/;
const OPAQUE_CHARS_MAX = 512;

const NO_USER_ID: GraphRefusal = {
  status: 400,
  code: 131062,
  message: "Business-scoped User ID (BSUID) recipients are not supported for this message.",
};
