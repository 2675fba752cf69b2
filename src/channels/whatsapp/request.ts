import { Type } from "@sinclair/typebox";
import { DEFAULT_LANGUAGE, LANGUAGE_CODE, WHATSAPP_USER_ID } from "../../domain/channels/whatsapp.ts";
import { normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { exactlyOne, optional } from "../../http/schemas.ts";
import { type Acceptance, presentMembers, type Refusal, unknownMember } from "../../http/sending/acceptance.ts";
import { closedWindow, type ReplyWindowPorts, toFreeText } from "./free-text.ts";
import { chatLimits } from "./limits.ts";
import { encodePayload } from "./payload.ts";
import { resolveWhatsappSender, type WhatsappPlatform } from "./platform.ts";
import {
  buildReply,
  complaintAboutReply,
  REPLY_CHOICES,
  REPLY_MEMBERS,
  REPLY_NAMES,
  type ReplyName,
  replyIn,
} from "./reply.ts";
import { complaintAboutButtons, MessageButtonsSchema, readButtons } from "./templates/buttons.ts";
import {
  CardsSchema,
  ComponentsSchema,
  complaintAboutComponents,
  furtherComponents,
  OfferSchema,
} from "./templates/components.ts";
import { complaintAboutHeader, MessageHeaderSchema, readHeader } from "./templates/header.ts";
import { complaintAboutParams, MessageParamsSchema, readParams } from "./templates/params.ts";
import type { TemplateDesk } from "./templates/template-desk.ts";
import { isPlainLine, line } from "./templates/value-rules.ts";

/** ITU-T E.164: a number has at most 15 digits, and begins with the country's code, which has no zero in front. */
const PHONE_NUMBER = /^[1-9][0-9]{6,14}$/;

/** The body of `POST /v1/send/whatsapp`. */
export const ChatSend = Type.Object(
  {
    phone_number: optional(
      Type.String({
        pattern: PHONE_NUMBER.source,
        description:
          "International format: digits only, with the country's code and without a plus sign. Either this or `recipient`.",
      }),
    ),
    recipient: optional(
      Type.String({
        pattern: WHATSAPP_USER_ID.source,
        description:
          "The provider's id of a person, as `user_id` of a message that came in: people with a username can hide their " +
          "number. Either this or `phone_number`.",
      }),
    ),
    template_id: optional(
      line(
        chatLimits.chatTemplateNameCharsMax,
        "An alias of the tenant's, or else the provider's exact name of the template. Either this or a message without a template.",
      ),
    ),
    language_code: optional(
      Type.String({
        pattern: LANGUAGE_CODE.source,
        description: "The template's language. By default the alias's, or else `es`.",
      }),
    ),
    params: optional(MessageParamsSchema),
    header: optional(MessageHeaderSchema),
    buttons: optional(MessageButtonsSchema),
    cards: optional(CardsSchema),
    limited_time_offer: optional(OfferSchema),
    components: optional(ComponentsSchema),
    ...REPLY_MEMBERS,
  },
  {
    $id: "ChatSend",
    additionalProperties: false,
    // For the API document only: the endpoint reports missing members in its own words.
    anyOf: [
      { required: ["template_id"], properties: { template_id: { type: "string", minLength: 1 } } },
      ...REPLY_CHOICES,
    ],
    ...exactlyOne("phone_number", "recipient"),
  },
);

/** Dependencies of the checks of a chat send. */
export interface ChatSendPorts extends ReplyWindowPorts {
  readonly templates: Pick<TemplateDesk, "doubt">;
  readonly platform: WhatsappPlatform;
}

/**
 * Turns the parsed body of `POST /v1/send/whatsapp` into a job, or into the first reason to refuse it: malformed input
 * (400), then missing configuration (500). Where the tenant's templates are known and the message fits none, the
 * provider confirms that (400). A message without one requires a recent message from the recipient (422).
 */
export function acceptWhatsapp(tenant: Tenant, given: unknown, ports: ChatSendPorts): Acceptance {
  if (!isJsonObject(given)) return { ok: false, refusal: malformed("the body must be a JSON object") };
  const body = presentMembers(given);
  const reply = replyIn(body);
  const refusal =
    unknownMember(body, MEMBERS) ??
    badRecipient(body) ??
    (reply === null ? badTemplateMessage(body) : badReply(body, reply)) ??
    noCredentials(tenant, ports.platform);
  if (refusal !== null) return { ok: false, refusal };
  return reply === null ? templateJob(tenant, body, ports) : replyJob(tenant, { body, name: reply }, ports);
}

/** Members that only a message from a template has. */
const TEMPLATE_MEMBERS = [
  "template_id",
  "language_code",
  "params",
  "header",
  "buttons",
  "cards",
  "limited_time_offer",
  "components",
];
const MEMBERS = ["phone_number", ...TEMPLATE_MEMBERS, ...REPLY_NAMES, "reply_to", "recipient"];

function badRecipient({ phone_number: number, recipient }: JsonObject): Refusal | null {
  if (recipient === undefined) return badPhoneNumber(number);
  if (number !== undefined) return malformed("send either phone_number or recipient, not both");
  if (typeof recipient === "string" && WHATSAPP_USER_ID.test(recipient)) return null;
  return malformed(
    "recipient must be the provider's id of a person, such as US.13491208655302741918: two letters, a dot, and up to 128 letters or digits",
  );
}

function badPhoneNumber(value: Json | undefined): Refusal | null {
  if (value === undefined || value === "") return malformed("phone_number is required");
  if (typeof value === "string" && PHONE_NUMBER.test(value)) return null;
  if (typeof value === "string" && /^0[0-9]{6,14}$/.test(value)) {
    return malformed("phone_number must begin with the country's code, which has no 0 in front, such as 5491122334455");
  }
  return malformed(
    "phone_number must be a string of 7 to 15 digits, with the country's code and without a plus sign, such as 5491122334455",
  );
}

/** Checks the members of a message from a template. */
function badTemplateMessage(body: JsonObject): Refusal | null {
  return (
    badQuotation(body["reply_to"]) ??
    badTemplate(body["template_id"]) ??
    badLanguage(body["language_code"]) ??
    toRefusal(complaintAboutParams(body["params"])) ??
    toRefusal(complaintAboutHeader(body["header"])) ??
    toRefusal(complaintAboutButtons(body["buttons"])) ??
    toRefusal(complaintAboutComponents(body))
  );
}

function badQuotation(value: Json | undefined): Refusal | null {
  return value === undefined ? null : malformed("reply_to is for messages without a template");
}

/** Checks the members of a message without a template. */
function badReply(body: JsonObject, name: ReplyName): Refusal | null {
  const other = TEMPLATE_MEMBERS.find((name) => body[name] !== undefined);
  if (other !== undefined)
    return malformed(`${other} is for messages from a template: send either template_id or ${name}`);
  return toRefusal(complaintAboutReply(body, name));
}

function toRefusal(complaint: string | null): Refusal | null {
  return complaint === null ? null : malformed(complaint);
}

function badTemplate(value: Json | undefined): Refusal | null {
  if (value === undefined) return malformed("template_id is required");
  if (typeof value !== "string") return malformed("template_id must be a string");
  if (value.trim() === "") return malformed("template_id is required");
  if (value.length > chatLimits.chatTemplateNameCharsMax) {
    return malformed(`template_id must not be longer than ${chatLimits.chatTemplateNameCharsMax} characters`);
  }
  return isPlainLine(value) ? null : malformed("template_id must not contain control characters");
}

function badLanguage(value: Json | undefined): Refusal | null {
  if (value === undefined) return null;
  if (typeof value === "string" && LANGUAGE_CODE.test(value)) return null;
  return malformed("language_code must be the code of a template's language, such as es or en_US");
}

function noCredentials(tenant: Tenant, platform: WhatsappPlatform): Refusal | null {
  if (resolveWhatsappSender(tenant, platform) !== null) return null;
  const message =
    "the channel whatsapp has no provider credentials: the operator sets a tenant's own with PUT " +
    "/dash/api/tenants/{id}/credentials/whatsapp (allow_custom must name whatsapp), or everybody's with " +
    "WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_ACCESS_TOKEN";
  return { status: 500, code: "not_configured", message };
}

/** Runs after every rule has passed, so the types of the fields are known. */
function templateJob(tenant: Tenant, body: JsonObject, { templates }: ChatSendPorts): Acceptance {
  const to = readRecipient(body);
  const own = String(body["template_id"]);
  const { language_code: language, components: others } = body;
  const alias = tenant.whatsapp.aliases.get(own);
  const sent = {
    name: alias?.metaName ?? own,
    language: typeof language === "string" ? language : (alias?.languageCode ?? DEFAULT_LANGUAGE),
    params: readParams(body["params"]),
    header: readHeader(body["header"]) ?? alias?.header ?? null,
    buttons: readButtons(body["buttons"]) ?? [],
  };
  const components = furtherComponents(body);
  const payload = encodePayload({
    to,
    template: sent.name,
    language: sent.language,
    params: sent.params,
    ...(sent.header === null ? null : { header: sent.header }),
    ...(sent.buttons.length > 0 ? { buttons: sent.buttons } : null),
    ...(components.length > 0 ? { components } : null),
  });
  // The event store records the tenant's own name for the template, not the provider's template behind it.
  const job = { recipient: normalisedRecipient(to), payload, template: own };
  // Seemingly missing components may be among those of unknown kinds.
  const doubt = others === undefined ? templates.doubt(tenant, sent) : null;
  if (doubt === null) return { ok: true, job };
  return { ok: true, job, confirm: async () => toRefusal(await doubt()) };
}

/** Returns the number, or the provider's id unchanged. */
function readRecipient({ phone_number: number, recipient }: JsonObject): string {
  return String(number ?? recipient);
}

/** Runs after every rule has passed. */
function replyJob(tenant: Tenant, { body, name }: Reply, ports: ChatSendPorts): Acceptance {
  const to = readRecipient(body);
  const { text, reply_to: quoted } = body;
  // Text keeps its own form for releases that support no other messages without a template.
  const isText = text !== undefined && quoted === undefined;
  const payload = encodePayload(isText ? { to, text: toFreeText(text) } : { to, message: buildReply(body, name) });
  const job = { recipient: normalisedRecipient(to), payload };
  const sender = resolveWhatsappSender(tenant, ports.platform);
  if (sender === null) return { ok: true, job };
  const { phoneNumberId } = sender;
  const isOwn = phoneNumberId !== ports.platform.whatsapp?.phoneNumberId;
  return { ok: true, job, confirm: () => closedWindow(ports, { phoneNumberId, isOwn }, { to, what: name }) };
}

interface Reply {
  readonly body: JsonObject;
  /** The member that contains the message. */
  readonly name: ReplyName;
}

function malformed(message: string): Refusal {
  return { status: 400, message };
}
