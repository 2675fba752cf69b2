import type { Address, Mailbox } from "postal-mime";
import { isRoutedOn, parseRecipient, recipientKey, type TrackingChoice } from "../../../domain/channels/email.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { ApiError } from "../../../http/api-error.ts";
import { parsePassedOn } from "../../../http/parse-json.ts";
import { isIdempotencyKey } from "../../../http/sending/idempotency.ts";
import { headerText } from "../content/header-text.ts";
import { checkHtml } from "../content/html-rules.ts";
import { isFurtherHeader, ROUTED_ON } from "../further-members.ts";
import { emailLimits } from "../limits.ts";
import { findOwnSender } from "../own-sender.ts";
import type { KeptContent } from "../request.ts";
import type { Field } from "./header-fields.ts";
import { addressesIn, decodeHeader, firstAddressesIn, headerIn } from "./header-values.ts";
import { keptMail } from "./kept-mails.ts";
import { isTraceHeader } from "./kept-message.ts";
import { type Entity, walkLeaves } from "./mime-tree.ts";
import {
  exactFiles,
  exactTexts,
  looseFiles,
  looseTexts,
  type OrdinaryParts,
  ordinaryParts,
  readFilename,
} from "./ordinary-mail.ts";
import { textIn } from "./part-content.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

/** A message in the form of `POST /v1/send/email`. */
export interface SendBodies {
  /** From the header, or null. */
  readonly idempotencyKey: string | null;
  /** Identifies this message in every repetition (RFC 5322, 3.6.4), or null. */
  readonly messageId: string | null;
  /** The message to send unchanged; null if the body has all of it. */
  readonly kept: KeptContent | null;
  /** Returns the body for one recipient, as JSON. */
  bodyFor(recipient: string): string;
}

/**
 * Converts a message to the API's members if it can be expressed in them, with all features of the API (tracking, for
 * example). Any other message is kept and sent unchanged.
 *
 * Rejects with an `SmtpRefusal` if the message cannot be sent or is not from the tenant's own sender.
 */
export async function buildSendBodies(tenant: Tenant, message: Entity, platformSender: string): Promise<SendBodies> {
  const { fields } = message;
  const sender = requireOwnSender(tenant, fields, platformSender);
  const own = readOwnHeaders(fields);
  const { kept, ...members } = await readMembers(message, own, sender);
  const shared = {
    ...members,
    ...(own.tags.length > 0 && { tags: own.tags }),
    ...(own.tracking !== null && { tracking: own.tracking }),
    ...(own.topic !== null && { topic: own.topic }),
    ...(kept && { kept_mail: kept.sha256 }),
  };
  const common = JSON.stringify(shared).slice(1);
  const names = readDisplayNames(fields);
  return {
    idempotencyKey: own.idempotencyKey,
    messageId: headerIn(fields, "message-id") || null,
    kept,
    bodyFor(recipient) {
      const name = names.get(recipientKey(recipient));
      const to = { to_address: recipient, ...(name !== undefined && { to_name: name }) };
      const own = JSON.stringify(to).slice(0, -1);
      return common === "}" ? `${own}}` : `${own},${common}`;
    },
  };
}

/** Reads the members that all recipients share. */
async function readMembers(message: Entity, own: OwnHeaders, sender: string) {
  const parts = ordinaryParts(message);
  if (own.template !== null || own.data !== null) return filledMembers(message, parts, own, sender);
  const subject = readSubject(message);
  const headers = exactHeaders(message.fields, sender);
  const texts =
    parts === null || headers === null || subject.length > emailLimits.subjectCharsMax ? null : exactTexts(parts);
  const files = parts === null || texts === null ? null : exactFiles(parts);
  const braces = bracesIn(`${subject}${texts?.text ?? ""}${texts?.html ?? ""}`);
  if (texts === null || files === null || braces > BRACES_MAX || /<[^\s/><{]*\{\{/.test(texts.html ?? ""))
    return keptMembers(message, subject);
  return {
    ...literal({ ...(subject !== "" && { subject }), ...texts }),
    ...headers,
    ...filesMember(files),
    kept: null,
  };
}

/** Reads the members of a message with placeholders to fill; the API may refuse one with a sentence that names it. */
function filledMembers(message: Entity, parts: OrdinaryParts | null, own: OwnHeaders, sender: string) {
  if (parts === null) {
    const names = [TEMPLATE, DATA].map((name) => OWN + name).join(" and ");
    throw refused(`a message with ${names} can have a text, HTML and files, and no other parts: leave the headers out`);
  }
  const subject = headerText(readSubject(message), emailLimits.subjectCharsMax);
  const members = {
    ...(subject !== "" && { subject }),
    ...(own.template === null ? looseTexts(parts) : { template_id: own.template }),
  };
  const filled = own.data === null ? literal(members) : { ...members, data: own.data };
  return { ...filled, ...looseHeaders(message.fields, sender), ...filesMember(looseFiles(parts)), kept: null };
}

function filesMember(files: readonly JsonObject[]): JsonObject {
  return files.length > 0 ? { attachments: files } : {};
}

/** Reads the visible parts of a kept message, which are checked for spam and displayed in the job. */
async function keptMembers(message: Entity, subject: string) {
  const leaves = [...walkLeaves(message)].filter(
    (leaf) => leaf.disposition?.value !== "attachment" && readFilename(leaf) === "",
  );
  const shown = (type: string) => {
    let text = "";
    for (const leaf of leaves) {
      if (leaf.type.value !== type || text.length > SHOWN_CHARS_MAX) continue;
      text += `${text === "" ? "" : "\n"}${textIn(leaf, SHOWN_BYTES_MAX).text.trimEnd()}`;
    }
    return text;
  };
  const [text, html] = [shown("text/plain"), shown("text/html")];
  const script = checkHtml(html).find(({ rule }) => rule === "script");
  if (script !== undefined) throw refused(`the inline HTML cannot be sent: see violations: ${script.message}`);
  const seen = {
    subject: headerText(subject, emailLimits.subjectCharsMax),
    ...(html !== "" && { html: cut(html) }),
    ...((html === "" || text !== "") && { text: cut(text) }),
  };
  return { ...literal(seen), kept: await keptMail(message) };
}

const SHOWN_BYTES_MAX = 2 * emailLimits.inlineHtmlBytesMax;
const SHOWN_CHARS_MAX = emailLimits.inspectedHtmlCharsMax;

/** Cuts a text to a length that the API accepts in any script. */
function cut(text: string): string {
  const isShort = Buffer.byteLength(text) <= emailLimits.inlineHtmlBytesMax / 2;
  const shown = isShort ? text : text.slice(0, emailLimits.inlineHtmlBytesMax / 8);
  return shown.split("{{", BRACES_MAX).join("{{").toWellFormed();
}

/** Braces in one message; each is written in more characters. */
const BRACES_MAX = 1_000;

function bracesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("{{"); at !== -1; at = text.indexOf("{{", at + 2)) count += 1;
  return count;
}

/** Escapes the braces, so that the text has no other placeholders. */
function literal(members: { readonly [name: string]: string }): JsonObject {
  const entries = Object.entries(members);
  if (!entries.some(([, text]) => text.includes("{{"))) return members;
  const written = entries.map(([name, text]) => [name, text.replaceAll("{{", "{{.braces}}")] as const);
  return { ...Object.fromEntries(written), data: { braces: "{{" } };
}

function readSubject({ fields }: Entity): string {
  return oneLine(decodeHeader(headerIn(fields, "subject")));
}

/** Converts the headers; null if the API has no member for one of them. */
function exactHeaders(fields: readonly Field[], sender: string): JsonObject | null {
  const addresses = addressesIn(fields, "reply-to");
  if (addresses === null) return null;
  const isOdd = (one: Mailbox) =>
    parseRecipient(one.address) === null || one.name.length > emailLimits.displayNameCharsMax;
  if (addresses.length > emailLimits.replyToMax || addresses.some((one) => one.group !== undefined)) return null;
  if (flattenGroups(addresses).some(isOdd)) return null;
  const seen = new Set<string>();
  for (const { name, key, value } of fields) {
    if (!isFurtherHeader(key) || isTraceHeader(key)) continue;
    const text = furtherText(key, value);
    const isLong = Buffer.byteLength(`${name}: ${text}`) > emailLimits.headerBytesMax;
    const isEncoded = !key.startsWith("x-") && /[^\x20-\x7e]/.test(text);
    if (isLong || isEncoded || seen.size === seen.add(key).size || seen.size > emailLimits.headersMax) return null;
  }
  return looseHeaders(fields, sender);
}

function looseHeaders(fields: readonly Field[], sender: string): JsonObject {
  const replyTo = readReplyTo(fields, sender);
  const headers = collectFurtherHeaders(fields);
  return {
    ...(replyTo.length > 0 && { reply_to: replyTo }),
    ...(Object.keys(headers).length > 0 && { headers }),
  };
}

/**
 * Collects the first header of each name that the API passes on. Others are dropped, because a program cannot act on a
 * refusal of them.
 */
function collectFurtherHeaders(fields: readonly Field[]): Readonly<Record<string, string>> {
  const further = new Map<string, readonly [string, string]>();
  for (const { key, name, value } of fields) {
    if (!isFurtherHeader(key) || isTraceHeader(key) || further.has(key)) continue;
    const text = furtherText(key, value);
    if (text !== "") further.set(key, [name, text]);
  }
  return Object.fromEntries(further.values());
}

/** Returns the header's value for the API. */
function furtherText(key: string, value: string): string {
  return key === "references" ? shortened(value) : oneLine(decodeHeader(value));
}

/** Shortens a long thread's message ids to the first and the last ones, as many as fit on one line (RFC 5322, 2.1.1). */
function shortened(references: string): string {
  const [first = "", ...ids] = oneLine(references).split(/\s+/);
  const room = REFERENCES_CHARS_MAX - first.length;
  let last = "";
  while (ids.length > 0 && last.length + (ids.at(-1) ?? "").length + 1 <= room) last = ` ${ids.pop() ?? ""}${last}`;
  return first + last;
}

const REFERENCES_CHARS_MAX = 900;

/** The `X-Waybill-…` headers, which have no equivalent in SMTP. They are not passed on. */
interface OwnHeaders {
  readonly template: string | null;
  readonly data: JsonObject | null;
  readonly tags: readonly JsonObject[];
  readonly tracking: TrackingChoice | null;
  readonly topic: string | null;
  readonly idempotencyKey: string | null;
}

const OWN = "x-waybill-";
const [TEMPLATE, DATA, TAG, TOPIC, TRACKING, IDEMPOTENCY_KEY] = [
  "template",
  "data",
  "tag",
  "topic",
  "tracking",
  "idempotency-key",
] as const;
/** The header of messages that are sent unchanged; a message forwarded from a reader's mailbox still has it. */
const JOB = "job";
const KNOWN: readonly string[] = [TEMPLATE, DATA, TAG, TOPIC, TRACKING, IDEMPOTENCY_KEY];

function readOwnHeaders(headers: readonly Field[]): OwnHeaders {
  const values = new Map<string, string[]>();
  for (const { key, value } of headers) {
    if (!key.startsWith(OWN)) continue;
    const name = key.slice(OWN.length);
    if (name === JOB) continue;
    if (!KNOWN.includes(name)) {
      const known = KNOWN.map((one) => OWN + one).join(", ");
      throw refused(`${key.slice(0, 80)} is not a header that is known here: known are ${known}`);
    }
    const all = values.get(name) ?? [];
    all.push(decodeHeader(value).trim());
    values.set(name, all);
  }
  const single = (name: string): string | null => {
    const [value, ...more] = values.get(name) ?? [];
    if (more.length > 0) throw refused(`the header ${OWN}${name} is there more than once`);
    return value ?? null;
  };
  const template = single(TEMPLATE);
  if (template === "") throw refused(`the header ${OWN}${TEMPLATE} is empty`);
  const idempotencyKey = single(IDEMPOTENCY_KEY);
  if (idempotencyKey !== null && !isIdempotencyKey(idempotencyKey)) {
    throw refused(`the header ${OWN}${IDEMPOTENCY_KEY} must be 1 to 255 printable ASCII characters`);
  }
  const [data, tags] = [parseData(single(DATA)), (values.get(TAG) ?? []).map(parseTag)];
  return { template, data, tags, topic: single(TOPIC), tracking: parseTracking(single(TRACKING)), idempotencyKey };
}

function parseData(text: string | null): JsonObject | null {
  if (text === null) return null;
  const data = parseDataJson(text);
  if (!isJsonObject(data)) throw refused(`the header ${OWN}${DATA} must be a JSON object`);
  return data;
}

function parseDataJson(text: string): unknown {
  try {
    return parsePassedOn(Buffer.from(text));
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

function parseTracking(text: string | null): TrackingChoice | null {
  if (text === null) return null;
  const choice: Record<string, boolean> = {};
  for (const part of text.split(",")) {
    const [name = "", value] = part.split("=").map((word) => word.trim().toLowerCase());
    const isChoice = (name === "opens" || name === "clicks") && (value === "true" || value === "false");
    if (!isChoice)
      throw refused(`the header ${OWN}${TRACKING} must be opens=false, clicks=false, or one of them; or true`);
    choice[name] = value === "true";
  }
  return choice;
}

function parseTag(text: string): JsonObject {
  const at = text.indexOf("=");
  if (at < 1) throw refused(`the header ${OWN}${TAG} must be name=value`);
  return { name: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
}

/**
 * Returns the sender's address. Mail is sent from the tenant's own sender, or the platform's: a message with another
 * sender is refused rather than changed.
 */
function requireOwnSender(tenant: Tenant, headers: readonly Field[], platformSender: string): string {
  const sender = getSenderAddress(tenant, platformSender);
  const [only, ...more] = addressesIn(headers, "from") ?? [];
  if (only?.address === undefined || more.length > 0) {
    throw new SmtpRefusal(550, `5.7.1 the message must have one address in From: ${sender}`);
  }
  if (recipientKey(only.address) === recipientKey(sender)) return sender;
  const given = only.address.slice(0, 100);
  throw new SmtpRefusal(550, `5.7.1 ${given} is not a sender of yours: the address in From must be ${sender}`);
}

/** Throws an `SmtpRefusal` if the tenant's own domain is not verified. */
export function getSenderAddress(tenant: Tenant, platformSender: string): string {
  const own = findOwnSender(tenant);
  switch (own.kind) {
    case "platform":
      return platformSender;
    case "verified":
      return own.sender.fromAddress;
    case "unverified":
      throw new SmtpRefusal(550, `5.7.1 the sender's domain ${own.domain} is not verified`);
  }
}

/** Throws an `SmtpRefusal`. */
export function requireRecipient(given: string): string {
  const address = parseRecipient(given);
  if (address !== null && isRoutedOn(address)) throw new SmtpRefusal(553, `5.1.3 the recipient ${ROUTED_ON}`);
  if (address !== null) return address;
  throw new SmtpRefusal(553, "5.1.3 the recipient must be one e-mail address, such as ada@example.com");
}

/** Returns the display names of recipients by address, for a bounded number of them. */
function readDisplayNames(headers: readonly Field[]): ReadonlyMap<string, string> {
  const addresses = ["to", "cc"].flatMap((key) => firstAddressesIn(headers, key));
  const named = flattenGroups(addresses).filter(({ name }) => oneLine(name) !== "");
  return new Map(named.map(({ name, address }) => [recipientKey(address), oneLine(name)]));
}

/** Reads the addresses for replies; empty if they equal the sender. */
function readReplyTo(headers: readonly Field[], sender: string): readonly Json[] {
  const addresses = addressesIn(headers, "reply-to");
  if (addresses === null) throw refused("the header reply-to is too long");
  const mailboxes = flattenGroups(addresses);
  if (mailboxes.every(({ address }) => recipientKey(address) === recipientKey(sender))) return [];
  return mailboxes.map(({ name, address }) => ({ address, ...(oneLine(name) !== "" && { name: oneLine(name) }) }));
}

function flattenGroups(addresses: readonly Address[]): readonly Mailbox[] {
  return addresses.flatMap((one) => (one.group === undefined ? [one] : one.group)).filter(({ address }) => address);
}

/** Puts a text on one line: folding may leave tabs, and encoded words may contain any character. */
function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
}

function refused(why: string): SmtpRefusal {
  return new SmtpRefusal(554, `5.6.0 ${why}`);
}
