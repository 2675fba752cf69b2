import { Type } from "@sinclair/typebox";
import { isJsonObject, type Json, type JsonObject } from "../../domain/json.ts";
import { type PlatformCredentials, whatsappSenderOf } from "../../domain/platform.ts";
import type { NewJob } from "../../domain/queue.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { DEFAULT_LANGUAGE, LANGUAGE_CODE } from "../../domain/whatsapp.ts";
import { optional } from "../../http/schemas.ts";
import { type Acceptance, presentMembers, type Refusal, unknownMember } from "../../http/sending/acceptance.ts";
import { chatLimits } from "./limits.ts";
import { encodePayload } from "./payload.ts";

/** The body of `POST /v1/send/whatsapp`. */
export const ChatSend = Type.Object(
  {
    phone_number: Type.String({
      pattern: "^[0-9]{7,15}$",
      description: "International format: digits only, with the country's code and without a plus sign.",
    }),
    template_id: Type.String({
      minLength: 1,
      maxLength: chatLimits.chatTemplateNameCharsMax,
      description: "An alias of the tenant's, or else the provider's exact name of the template.",
    }),
    language_code: optional(
      Type.String({
        pattern: LANGUAGE_CODE.source,
        description: "The template's language. By default the alias's, or else `es`.",
      }),
    ),
    params: optional(
      Type.Array(
        Type.Union([Type.String({ maxLength: chatLimits.chatParamCharsMax }), Type.Number(), Type.Boolean()]),
        {
          maxItems: chatLimits.chatParamsMax,
          description:
            "Values of `{{1}}`, `{{2}}`, … in order. Numbers and booleans become text. No line breaks, tabs or other " +
            "control characters, and at most four blanks in a row: the provider takes no others.",
        },
      ),
    ),
  },
  { $id: "ChatSend", additionalProperties: false },
);

/**
 * Turns the parsed body of `POST /v1/send/whatsapp` into a job, or into the first reason to refuse it: malformed input
 * (400), then missing configuration (500). The template is not looked up, because only the provider knows which
 * templates exist.
 */
export function acceptWhatsapp(tenant: Tenant, given: unknown, platform: PlatformCredentials): Acceptance {
  if (!isJsonObject(given)) return { ok: false, refusal: malformed("the body must be a JSON object") };
  const body = presentMembers(given);
  const refusal =
    unknownMember(body, MEMBERS) ??
    badPhoneNumber(body["phone_number"]) ??
    badTemplate(body["template_id"]) ??
    badLanguage(body["language_code"]) ??
    badParams(body["params"]) ??
    noCredentials(tenant, platform);
  return refusal === null ? { ok: true, job: toJob(tenant, body) } : { ok: false, refusal };
}

const MEMBERS = ["phone_number", "template_id", "language_code", "params"];
/** ITU-T E.164: a number has at most 15 digits, including the country code. */
const PHONE_NUMBER = /^[0-9]{7,15}$/;
/** C0, DEL and C1. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const BLANKS_IN_A_ROW = / {5}/;

function badPhoneNumber(value: Json | undefined): Refusal | null {
  if (value === undefined || value === "") return malformed("phone_number is required");
  if (typeof value === "string" && PHONE_NUMBER.test(value)) return null;
  return malformed(
    "phone_number must be a string of 7 to 15 digits, with the country's code and without a plus sign, such as 5491122334455",
  );
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

function badParams(params: Json | undefined): Refusal | null {
  if (params === undefined) return null;
  if (!Array.isArray(params)) return malformed("params must be an array of strings, numbers and booleans");
  if (params.length > chatLimits.chatParamsMax) {
    return malformed(`params must not hold more than ${chatLimits.chatParamsMax} values`);
  }
  for (const [index, value] of params.entries()) {
    const complaint = complaintAbout(value);
    if (complaint !== null) return malformed(`params[${index}] ${complaint}`);
  }
  return null;
}

/** Describes what is wrong with one value: the provider allows little in a text parameter. */
function complaintAbout(value: unknown): string | null {
  if (typeof value === "boolean") return null;
  if (typeof value === "number") {
    // JSON.parse rounds such a number, and makes 1e999 infinite: the message would differ from the request.
    const isExact = Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
    return isExact ? null : "is too large for a number: send it as a string";
  }
  if (typeof value !== "string") return "must be a string, a number or a boolean";
  if (isTooLong(value)) return `must not be longer than ${chatLimits.chatParamCharsMax} characters`;
  if (!isPlainLine(value)) return "must not contain line breaks, tabs or other control characters";
  return BLANKS_IN_A_ROW.test(value) ? "must not contain more than four blanks in a row" : null;
}

/** Counts Unicode characters: an emoji is one. */
function isTooLong(text: string): boolean {
  const max = chatLimits.chatParamCharsMax;
  return text.length > 2 * max || (text.length > max && Array.from(text).length > max);
}

function isPlainLine(text: string): boolean {
  return !CONTROL.test(text) && text.isWellFormed();
}

function noCredentials(tenant: Tenant, platform: PlatformCredentials): Refusal | null {
  if (whatsappSenderOf(tenant, platform) !== null) return null;
  const message =
    "the channel whatsapp has no provider credentials: the operator sets a tenant's own with PUT " +
    "/dash/api/tenants/{id}/credentials/whatsapp (allow_custom must name whatsapp), or everybody's with " +
    "WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_ACCESS_TOKEN";
  return { status: 500, message };
}

/** Runs after every rule has passed, so the types of the fields are known. */
function toJob(tenant: Tenant, body: JsonObject): Pick<NewJob, "recipient" | "payload" | "template"> {
  const to = String(body["phone_number"]);
  const name = String(body["template_id"]);
  const { language_code: language, params } = body;
  const alias = tenant.whatsapp.aliases.get(name);
  const payload = encodePayload({
    to,
    template: alias?.metaName ?? name,
    language: typeof language === "string" ? language : (alias?.languageCode ?? DEFAULT_LANGUAGE),
    params: Array.isArray(params) ? params.map(String) : [],
    ...(alias?.header ? { header: alias.header } : null),
  });
  // The event store records the tenant's own name for the template, not the provider's template behind it.
  return { recipient: to, payload, template: name };
}

function malformed(message: string): Refusal {
  return { status: 400, message };
}
