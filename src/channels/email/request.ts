import { Type } from "@sinclair/typebox";
import { isRoutedOn, normaliseAddress, parseRecipient } from "../../domain/channels/email.ts";
import type { Content } from "../../domain/content-store.ts";
import type { Tag } from "../../domain/jobs/tags.ts";
import { limits } from "../../domain/limits.ts";
import { readTopic, TOPIC_RULE } from "../../domain/tenants/suppressions.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { CONTROL, NO_CONTROL_PATTERN } from "../../domain/texts/control-characters.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { optional } from "../../http/schemas.ts";
import { type Acceptance, presentMembers, type Refusal, unknownMember } from "../../http/sending/acceptance.ts";
import { Attachments, type ReadAttachments, readAttachments } from "./attachments.ts";
import { brokenByText, checkFilledHtml, wouldBeTooLarge } from "./content/filled-html.ts";
import { toViolation } from "./content/html-rules.ts";
import { undottedPlaceholder } from "./content/placeholder-faults.ts";
import {
  ADDRESS_PATTERN,
  FURTHER_MEMBERS,
  type FurtherMembers,
  ROUTED_ON,
  readFurtherMembers,
  readTags,
  Tags,
} from "./further-members.ts";
import { emailLimits } from "./limits.ts";
import { findOwnSender } from "./own-sender.ts";
import { encodePayload } from "./payload.ts";

/** The body of `POST /v1/send/email`. */
export const EmailSend = Type.Object(
  {
    to_address: Type.String({
      maxLength: limits.addressBytesMax,
      pattern: ADDRESS_PATTERN,
      description:
        "One address (RFC 5321), no list, no display name, and no % or ! before the @, which some mail servers read as a way to " +
        "another domain. Internationalised domains are taken in either form; letters beyond ASCII before the @ need a relay with " +
        "SMTPUTF8.",
    }),
    to_name: optional(
      Type.String({
        maxLength: emailLimits.displayNameCharsMax,
        pattern: NO_CONTROL_PATTERN,
        description: "The recipient's display name.",
      }),
    ),
    subject: optional(
      Type.String({
        maxLength: emailLimits.subjectCharsMax,
        pattern: NO_CONTROL_PATTERN,
        description: "May hold {{.placeholders}}. By default the template's.",
      }),
    ),
    template_id: optional(
      Type.String({ description: "Slug of a registered template. Required unless `html` or `text` is given." }),
    ),
    html: optional(
      Type.String({ description: "Inline HTML, which takes precedence. Needs the permission allow_raw_html." }),
    ),
    text: optional(
      Type.String({
        description:
          "Inline text, with placeholders: beside HTML or a template what readers without HTML see, alone the whole " +
          "message. Needs the permission allow_raw_html.",
      }),
    ),
    ...FURTHER_MEMBERS,
    attachments: Attachments,
    tags: Tags,
    topic: optional(
      Type.String({
        description:
          `The topic of the message, by default its template's: ${TOPIC_RULE}. Unsubscribing then ends messages on ` +
          "this topic alone. Compared without regard to case.",
      }),
    ),
    data: optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Values for the placeholders of body and subject.",
      }),
    ),
  },
  {
    $id: "EmailSend",
    additionalProperties: false,
    anyOf: [
      { required: ["template_id"], properties: { template_id: { type: "string", minLength: 1 } } },
      { required: ["html"], properties: { html: { type: "string" } } },
      { required: ["text"], properties: { text: { type: "string" } } },
    ],
  },
);

/**
 * Turns the parsed body of `POST /v1/send/email` into a job, or into the first reason to refuse it. The order of the
 * rules is part of the contract: first malformed input (400), then missing permissions (403), then invalid content
 * (422).
 *
 * @param kept a message that is sent unchanged; the body has its visible parts
 */
export function acceptEmail(tenant: Tenant, given: unknown, kept?: KeptContent): Acceptance {
  if (!isJsonObject(given)) return refuse("the body must be a JSON object");
  const body = presentMembers(given);
  const to = readAddress(body["to_address"]);
  const more = hasMore(body) ? readMore(body) : NO_MORE;
  const refusal =
    unknownMember(body, MEMBERS) ??
    wrongType(body) ??
    badAddress(body["to_address"], to) ??
    badHeaderText(body, "to_name") ??
    badHeaderText(body, "subject") ??
    badTopic(body) ??
    (typeof more === "string" ? malformed(more) : null) ??
    noContent(body) ??
    undotted(body) ??
    unknownTemplate(tenant, body) ??
    rawHtmlNotPermitted(tenant, body) ??
    (kept === undefined ? (unsoundHtml(body) ?? unsoundText(body)) : null) ??
    unverifiedDomain(tenant);
  if (refusal !== null || typeof more === "string") return { ok: false, refusal: refusal ?? malformed(String(more)) };
  return toJob(tenant, body, to, kept === undefined ? more : { ...more, kept });
}

const STRING_FIELDS = ["to_address", "to_name", "subject", "template_id", "html", "text", "topic"] as const;
const MORE = [...Object.keys(FURTHER_MEMBERS), "attachments", "tags"];
const MEMBERS = [...STRING_FIELDS, "data", ...MORE];

/** Members that few messages have. */
interface More extends FurtherMembers {
  readonly attached: ReadAttachments | null;
  readonly tags: readonly Tag[];
  readonly kept?: KeptContent;
}

/** A message in its final form, except for the fields that its delivery adds. */
export interface KeptContent extends Content {
  /** Whether its body has bytes beyond ASCII. */
  readonly isEightBit: boolean;
}

const NO_MORE: More = { attached: null, tags: [] };

function hasMore(body: JsonObject): boolean {
  for (const name of MORE) if (body[name] !== undefined) return true;
  return false;
}

/** Reads them, or returns a sentence that says why they are invalid. */
function readMore(body: JsonObject): More | string {
  const further = readFurtherMembers(body);
  if (typeof further === "string") return further;
  const { attachments, tags: given } = body;
  const tags = given === undefined ? [] : readTags(given);
  if (typeof tags === "string") return tags;
  const attached = attachments === undefined ? null : readAttachments(attachments);
  return typeof attached === "string" ? attached : { ...further, attached, tags };
}
const QUOTED_CHARS_MAX = 100;

function wrongType(body: JsonObject): Refusal | null {
  for (const field of STRING_FIELDS) {
    const value = body[field];
    if (value !== undefined && typeof value !== "string") return malformed(`${field} must be a string`);
  }
  const data = body["data"];
  return data === undefined || isJsonObject(data) ? null : malformed("data must be an object");
}

function readAddress(address: Json | undefined): string | null {
  return typeof address === "string" ? parseRecipient(address) : null;
}

function badAddress(address: Json | undefined, read: string | null): Refusal | null {
  if (read !== null) return isRoutedOn(read) ? malformed(`to_address ${ROUTED_ON}`) : null;
  if (typeof address !== "string" || address === "") return malformed("to_address is required");
  // No header may contain them, and CR and LF would end it.
  if (CONTROL.test(address)) return malformed("to_address must not contain control characters");
  return malformed(
    `to_address must be one e-mail address of at most ${limits.addressBytesMax} bytes, such as ada@example.com`,
  );
}

function badHeaderText(body: JsonObject, field: "to_name" | "subject"): Refusal | null {
  const text = body[field];
  if (typeof text !== "string") return null;
  if (CONTROL.test(text)) return malformed(`${field} must not contain control characters`);
  const most = field === "subject" ? emailLimits.subjectCharsMax : emailLimits.displayNameCharsMax;
  return text.length <= most ? null : malformed(`${field} must not be longer than ${most} characters`);
}

function badTopic({ topic }: JsonObject): Refusal | null {
  return typeof topic !== "string" || readTopic(topic) !== null ? null : malformed(`topic must be ${TOPIC_RULE}`);
}

function noContent(body: JsonObject): Refusal | null {
  if (body["html"] !== undefined || body["text"] !== undefined || (body["template_id"] ?? "") !== "") return null;
  return malformed("template_id, html or text is required");
}

function undotted({ subject, html, text, data }: JsonObject): Refusal | null {
  if (!isJsonObject(data)) return null;
  for (const [field, written] of Object.entries({ subject, html, text })) {
    const fault = typeof written === "string" ? undottedPlaceholder(field, written, data) : null;
    if (fault !== null) return malformed(fault);
  }
  return null;
}

/** Refuses an unknown template. HTML takes precedence over a template, which may still supply the subject. */
function unknownTemplate(tenant: Tenant, body: JsonObject): Refusal | null {
  const template = body["template_id"];
  if (typeof template !== "string" || template === "" || tenant.emailTemplates.has(template)) return null;
  const message = `there is no e-mail template with the template_id "${template.slice(0, QUOTED_CHARS_MAX)}"`;
  return { status: 400, code: "unknown_template", param: "template_id", message };
}

function rawHtmlNotPermitted(tenant: Tenant, body: JsonObject): Refusal | null {
  if (tenant.permissions.has("allow_raw_html") || (body["html"] === undefined && body["text"] === undefined))
    return null;
  const param = body["html"] === undefined ? "text" : "html";
  const what = param === "text" ? "inline text" : "inline HTML";
  const message = `${what} needs the permission allow_raw_html: use a template_id, or ask for it`;
  return { status: 403, code: "permission_missing", param, message };
}

function unsoundHtml(body: JsonObject): Refusal | null {
  const html = body["html"];
  if (typeof html !== "string") return null;
  const data = body["data"];
  const violations = checkFilledHtml(html, isJsonObject(data) ? data : {});
  if (violations.length === 0) return null;
  const message = "the inline HTML cannot be sent: see violations";
  return { status: 422, code: "html_violation", param: "html", message, violations };
}

/** Checks the text, which may be empty beside HTML or a template, but not alone. */
function unsoundText(body: JsonObject): Refusal | null {
  const { text, html, template_id, data } = body;
  if (typeof text !== "string") return null;
  const isAlone = html === undefined && (template_id ?? "") === "";
  const rule = brokenByText(text, isJsonObject(data) ? data : {}, isAlone);
  if (rule === null) return null;
  const why =
    rule === "empty" ? "the text is empty" : `the text is larger than ${emailLimits.inlineHtmlBytesMax / 1024} KB`;
  const message = "the inline text cannot be sent: see violations";
  return { status: 422, code: "html_violation", param: "text", message, violations: [{ rule, message: why }] };
}

/** Tenants may send only from verified domains of their own; an unregistered domain is not verified either. */
function unverifiedDomain(tenant: Tenant): Refusal | null {
  const own = findOwnSender(tenant);
  if (own.kind !== "unverified") return null;
  const how = "have its DNS records published and verify it with POST /v1/domains/{domain}/verify";
  const message = `the sender's domain ${own.domain} is not verified: ${how}`;
  return { status: 422, code: "domain_not_verified", message };
}

/**
 * Runs after all rules have passed, so the types of the fields are known. `data` is passed on unchanged; none of its
 * keys is ever assigned.
 */
function toJob(
  tenant: Tenant,
  body: JsonObject,
  to: string | null,
  { attached, tags, kept, ...further }: More,
): Acceptance {
  const { to_name, subject, template_id, html, text, data } = body;
  const isInline = typeof html === "string" || (typeof text === "string" && (template_id ?? "") === "");
  const template = typeof template_id === "string" && !isInline ? template_id : undefined;
  const beside = typeof template_id === "string" && template === undefined ? template_id : "";
  if (to === null) return refuse("to_address is required");
  const payload = encodePayload({
    to,
    toName: typeof to_name === "string" && to_name !== "" ? to_name : undefined,
    subject: typeof subject === "string" ? subject : tenant.emailTemplates.get(beside)?.subject,
    html: typeof html === "string" ? html : undefined,
    text: typeof text === "string" ? text : undefined,
    template,
    data: isJsonObject(data) ? data : undefined,
    ...further,
    attachments: attached === null || attached.attachments.length === 0 ? undefined : attached.attachments,
    kept: kept && { sha256: kept.sha256, bytes: kept.body.length, isEightBit: kept.isEightBit },
  });
  const stored = template === undefined ? undefined : tenant.emailTemplates.get(template);
  if (stored !== undefined && wouldBeTooLarge(stored, isJsonObject(data) ? data : {}, payload.length)) {
    return { ok: false, refusal: TOO_LARGE };
  }
  const topic = findTopic(tenant, body);
  const job = {
    recipient: normaliseAddress(to),
    payload,
    // Only content that the tenant's own staff did not write.
    ...((template === undefined || typeof text === "string") && { needsScreening: true as const }),
    ...(template !== undefined && { template }),
    ...(tags.length > 0 && { tags }),
    ...(topic !== undefined && { topic }),
  };
  const contents = kept === undefined ? (attached?.contents ?? []) : [kept];
  return contents.length === 0 ? { ok: true, job } : { ok: true, job, contents };
}

/** Finds the message's own topic, or else its template's, even if only the subject comes from the template. */
function findTopic(tenant: Tenant, { topic, template_id }: JsonObject): string | undefined {
  if (typeof topic === "string") return readTopic(topic) ?? undefined;
  return typeof template_id === "string" ? tenant.emailTemplates.get(template_id)?.topic : undefined;
}

const TOO_LARGE: Refusal = {
  status: 422,
  code: "html_violation",
  param: "template_id",
  message: "the template is too large once its placeholders are filled: see violations",
  violations: [toViolation("too_large")],
};

function malformed(message: string): Refusal {
  return { status: 400, message };
}

function refuse(message: string): Acceptance {
  return { ok: false, refusal: malformed(message) };
}
