import { Type } from "@sinclair/typebox";
import { isRoutedOn, parseRecipient } from "../../domain/channels/email.ts";
import { TAG_WORD, TAGS_MAX, type Tag } from "../../domain/jobs/tags.ts";
import { limits } from "../../domain/limits.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { NOT_BLANK, optional, trackingSchema, withNulls } from "../../http/schemas.ts";
import { complaintAboutMembers } from "../../http/sending/acceptance.ts";
import { emailLimits } from "./limits.ts";
import { type Addressee, type EmailPayload, trackingChoice } from "./payload.ts";

/* Members of an e-mail that few messages have: further recipients, headers and tracking. */

/** The form of an address in the API document; `parseRecipient` has the whole rule. */
export const ADDRESS_PATTERN = "^[^\\u0000-\\u001f\\u007f-\\u009f]+@[^\\u0000-\\u0020\\u007f-\\u009f@]+$";

/** C0, DEL and C1: no header may contain them, and CR and LF would end it. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const IN_HEADERS = `^${CONTROL.source.replace("[", "[^")}*$`;
const HEADER_NAME = /^[A-Za-z0-9-]{1,76}$/;

const Address = Type.String({ maxLength: limits.addressBytesMax, pattern: ADDRESS_PATTERN });
const Addressed = Type.Union([
  Address,
  Type.Object(
    {
      address: Address,
      name: optional(Type.String({ maxLength: emailLimits.displayNameCharsMax, pattern: IN_HEADERS })),
    },
    { additionalProperties: false },
  ),
]);

const HeaderValue = Type.Union([Type.String({ pattern: IN_HEADERS, ...NOT_BLANK }), Type.Null()]);

export const FURTHER_MEMBERS = {
  cc: optional(
    Type.Array(Addressed, {
      maxItems: emailLimits.recipientsMax - 1,
      description:
        "Further recipients, visible to all. With `to_address` and `bcc` at most 50. Suppressed ones are left out.",
    }),
  ),
  bcc: optional(
    Type.Array(Addressed, {
      maxItems: emailLimits.recipientsMax - 1,
      description: "Further recipients, hidden from all others.",
    }),
  ),
  reply_to: optional(
    Type.Union([Addressed, Type.Array(Addressed, { maxItems: emailLimits.replyToMax })], {
      description: "Where answers go; by default to the sender.",
    }),
  ),
  headers: optional(
    Type.Record(Type.String({ pattern: HEADER_NAME.source }), HeaderValue, {
      additionalProperties: false,
      maxProperties: emailLimits.headersMax,
      description:
        "Further headers by name: X-…, but not X-Waybill-… nor those by which mail services take orders (X-SMTPAPI, X-SES-…), " +
        "In-Reply-To, References, Auto-Submitted, Precedence, Importance, Feedback-ID, List-ID. Values are one line; name and value have at most 998 bytes.",
    }),
  ),
  tracking: optional(
    withNulls(
      trackingSchema(
        "Without `opens` there is no pixel, without `clicks` links stay as they are. Absent members are as in the template, or " +
          "for the tenant, or true.",
      ),
    ),
  ),
};

const TagWord = Type.String({ pattern: TAG_WORD.source });

export const Tags = optional(
  Type.Array(Type.Object({ name: TagWord, value: TagWord }, { additionalProperties: false }), {
    maxItems: TAGS_MAX,
    description: "Labels that the history is searched and summed by, each name once. Never put anybody's address here.",
  }),
);

/** Returns the tags, or a sentence that says why they are invalid. */
export function readTags(list: Json): readonly Tag[] | string {
  if (!Array.isArray(list)) return "tags must be an array of names and values";
  if (list.length > TAGS_MAX) return `tags must not hold more than ${TAGS_MAX}`;
  const tags: Tag[] = [];
  for (const [at, tag] of list.entries()) {
    const given = isJsonObject(tag) ? tag : {};
    const unknown = complaintAboutMembers(given, ["name", "value"], `tags[${at}]`);
    if (unknown !== null) return unknown;
    const { name, value } = given;
    if (typeof name !== "string" || typeof value !== "string" || !TAG_WORD.test(name) || !TAG_WORD.test(value)) {
      return `tags[${at}] must have a name and a value, each 1 to 256 of A-Z a-z 0-9 _ -`;
    }
    if (tags.some((other) => other.name === name)) return `tags must name ${name.slice(0, 100)} only once`;
    tags.push({ name, value });
  }
  return tags;
}

export type FurtherMembers = Pick<EmailPayload, "cc" | "bcc" | "replyTo" | "headers" | "tracking">;

/** Reads the members of a body whose members have the right types, or returns a sentence that says why they are invalid. */
export function readFurtherMembers({ cc, bcc, reply_to, headers, tracking }: JsonObject): FurtherMembers | string {
  const further: { -readonly [K in keyof FurtherMembers]: FurtherMembers[K] } = {};
  for (const [member, value] of [
    ["cc", cc],
    ["bcc", bcc],
  ] as const) {
    if (value === undefined) continue;
    if (!Array.isArray(value)) return `${member} must be an array of addresses`;
    const read = readAddressees(member, value);
    if (typeof read === "string") return read;
    if (read.length > 0) further[member] = read;
  }
  if (1 + (further.cc?.length ?? 0) + (further.bcc?.length ?? 0) > emailLimits.recipientsMax) {
    return `to_address, cc and bcc must not name more than ${emailLimits.recipientsMax} recipients together`;
  }
  if (reply_to !== undefined) {
    const list = Array.isArray(reply_to) ? reply_to : [reply_to];
    if (list.length > emailLimits.replyToMax) {
      return `reply_to must not name more than ${emailLimits.replyToMax} addresses`;
    }
    const read = readAddressees("reply_to", list);
    if (typeof read === "string") return read;
    if (read.length > 0) further.replyTo = read;
  }
  if (headers !== undefined) {
    const read = readHeaders(headers);
    if (typeof read === "string") return read;
    if (Object.keys(read).length > 0) further.headers = read;
  }
  if (tracking !== undefined) {
    if (!isJsonObject(tracking)) return "tracking must be an object with opens and clicks";
    const wrong = complaintAboutMembers(tracking, ["opens", "clicks"], "tracking") ?? wrongTracking(tracking);
    if (wrong !== null) return wrong;
    further.tracking = trackingChoice(tracking);
  }
  return further;
}

function wrongTracking({ opens = null, clicks = null }: JsonObject): string | null {
  const isChoice = (value: Json) => value === null || typeof value === "boolean";
  if (!isChoice(opens)) return "tracking.opens must be true or false";
  return isChoice(clicks) ? null : "tracking.clicks must be true or false";
}

function readAddressees(member: string, list: readonly Json[]): readonly Addressee[] | string {
  if (list.length >= emailLimits.recipientsMax) {
    return `${member} must not name ${emailLimits.recipientsMax} recipients or more`;
  }
  const read: Addressee[] = [];
  for (const [at, value] of list.entries()) {
    const one = readAddressee(member, member === "reply_to" ? member : `${member}[${at}]`, value);
    if (typeof one === "string") return one;
    read.push(one);
  }
  return read;
}

/** The error for an address that `isRoutedOn`; it follows the member's name. */
export const ROUTED_ON =
  "must not have % or ! before the @, nor an @ in quotes there: some mail servers read these as a way to another domain";

function readAddressee(member: string, where: string, value: Json): Addressee | string {
  const given = isJsonObject(value) ? value : { address: value };
  const unknown = complaintAboutMembers(given, ["address", "name"], where);
  if (unknown !== null) return unknown;
  const { address, name } = given;
  const parsed = typeof address === "string" ? parseRecipient(address) : null;
  if (parsed === null) {
    return `${where} must be one e-mail address of at most ${limits.addressBytesMax} bytes, such as ada@example.com, or an object with address and name`;
  }
  // Replies are sent by their authors, not by this service.
  if (member !== "reply_to" && isRoutedOn(parsed)) return `${where} ${ROUTED_ON}`;
  if (name === undefined || name === null || name === "") return { address: parsed };
  if (typeof name !== "string") return `the name in ${where} must be a string`;
  if (CONTROL.test(name)) return `the name in ${where} must not contain control characters`;
  const most = emailLimits.displayNameCharsMax;
  return name.length <= most
    ? { address: parsed, name }
    : `the name in ${where} must not be longer than ${most} characters`;
}

/** Headers whose values mail software parses as identifiers or keywords: they are never encoded. */
const STANDARD: ReadonlyMap<string, string> = new Map(
  ["In-Reply-To", "References", "Auto-Submitted", "Precedence", "Importance", "Feedback-ID", "List-ID"].map((name) => [
    name.toLowerCase(),
    name,
  ]),
);
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

function readHeaders(given: Json): Readonly<Record<string, string>> | string {
  if (!isJsonObject(given)) return "headers must be an object of names and values";
  const entries = Object.entries(given).filter(([, value]) => value !== null);
  if (entries.length > emailLimits.headersMax)
    return `headers must not have more than ${emailLimits.headersMax} members`;
  const seen = new Set<string>();
  const read: [string, string][] = [];
  for (const [name, value] of entries) {
    const key = name.toLowerCase();
    const wrong = wrongHeader(name, value);
    if (wrong !== null || typeof value !== "string") return wrong ?? "";
    if (seen.has(key)) return `headers must name ${key} only once`;
    seen.add(key);
    read.push([STANDARD.get(key) ?? name, value.trim()]);
  }
  return Object.fromEntries(read);
}

/**
 * Headers that control mail services and mail servers: recipients, sending pools and addresses, times, tracking, the
 * account to charge. A relay that tenants share would obey them from any tenant.
 */
// biome-ignore format: a list of names, by service
const STEERING = new RegExp(`^x-(?:${[
  // Twilio SendGrid, SparkPost and Momentum, Amazon SES, Mailgun, Mailchimp Transactional, Postmark, Mailjet, Brevo.
  "smtpapi", "sendgrid-.*", "sg-.*", "msys-.*", "sparkpost-.*", "binding", "ses-.*", "amz-.*", "mailgun-.*", "mc-.*", "mandrill-.*",
  "mailchimp-.*", "pm-.*", "postmark-.*", "mj-.*", "mailjet-.*", "sib-.*", "sendinblue-.*", "brevo-.*", "mailin-.*",
  // Elastic Email, Mailtrap, MailerSend, SMTP2GO, SocketLabs, Netcore, Tipimail, Zoho, Alibaba, Azure and Exchange.
  "elastic.*", "mt-.*", "mailtrap-.*", "mailersend-.*", "smtp2go-.*", "xsmailingid", "xsmessageid", "socketlabs-.*", "apiheader",
  "tm-.*", "zoho-.*", "zm-.*", "alidm-.*", "aliyun-.*", "ms-acsemail-.*", "ms-exchange-.*",
  // PowerMTA, KumoMTA, GreenArrow, Haraka, Postal; envelopes.
  "virtual-mta", "vmta", "job", "envid", "pmta-.*", "dkim-options", "kumo.*", "greenarrow-.*", "haraka-.*", "postal-.*",
  "envelope-.*", "return-path", "rcpt-to", "bcc",
].join("|")})$`);

export function isSteeringHeader(key: string): boolean {
  return STEERING.test(key);
}

/** Whether `headers` may have a header of this name. */
export function isFurtherHeader(name: string): boolean {
  const key = name.toLowerCase();
  const isOwn = key.startsWith("x-") && !key.startsWith("x-waybill") && !STEERING.test(key);
  return HEADER_NAME.test(name) && (isOwn || STANDARD.has(key));
}

function wrongHeader(name: string, value: Json): string | null {
  const key = name.toLowerCase();
  const shown = name.slice(0, 100);
  if (STEERING.test(key)) return `headers must not set ${JSON.stringify(shown)}: some mail servers take orders from it`;
  if (!isFurtherHeader(name)) {
    return `headers must not set ${JSON.stringify(shown)}: allowed are X-… (not X-Waybill-…) and ${[...STANDARD.values()].join(", ")}`;
  }
  if (typeof value !== "string" || value.trim() === "") return `the header ${shown} must be a string that is not blank`;
  if (CONTROL.test(value) || !value.isWellFormed()) return `the header ${shown} must not contain control characters`;
  if (STANDARD.has(key) && !PRINTABLE_ASCII.test(value)) return `the header ${shown} must be in ASCII`;
  const bytes = Buffer.byteLength(`${name}: ${value}`);
  return bytes <= emailLimits.headerBytesMax
    ? null
    : `the header ${shown} must not have more than ${emailLimits.headerBytesMax} bytes with its name`;
}
