import type { Address, Attachment, Email, Mailbox } from "postal-mime";
import { isRoutedOn, parseRecipient, recipientKey, type TrackingChoice } from "../../../domain/email.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import type { Tenant } from "../../../domain/tenant.ts";
import { ApiError } from "../../../http/api-error.ts";
import { parsePassedOn } from "../../../http/parse-json.ts";
import { isIdempotencyKey } from "../../../http/sending/idempotency.ts";
import { FILENAME_CHARS_MAX } from "../attachments.ts";
import { isFurtherHeader, ROUTED_ON } from "../further-members.ts";
import { ownSenderOf } from "../own-sender.ts";
import { addressesIn, decodeHeader, firstAddressesIn, headerIn } from "./header-values.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

/** A message as `POST /v1/send/email` takes it. */
export interface SendBodies {
  /** From the header, or null. */
  readonly idempotencyKey: string | null;
  /** Names this very message wherever it is sent again (RFC 5322, 3.6.4), or null. */
  readonly messageId: string | null;
  /** The body for one recipient, as JSON. */
  bodyFor(recipient: string): string;
}

/** Throws an `SmtpRefusal`: the message is not one that the API takes, or is not from the tenant's own sender. */
export function sendBodiesOf(tenant: Tenant, email: Email, platformSender: string): SendBodies {
  const sender = requireOwnSender(tenant, email, platformSender);
  const own = ownHeadersOf(email);
  const common = JSON.stringify(membersOf(email, own, sender)).slice(1);
  const names = namesOf(email);
  return {
    idempotencyKey: own.idempotencyKey,
    messageId: headerIn(email.headers, "message-id") || null,
    bodyFor(recipient) {
      const name = names.get(recipientKey(recipient));
      const to = { to_address: recipient, ...(name !== undefined && { to_name: name }) };
      const own = JSON.stringify(to).slice(0, -1);
      return common === "}" ? `${own}}` : `${own},${common}`;
    },
  };
}

/** The members that all recipients share. One that the API does not know is refused there, with a sentence that names it. */
function membersOf(email: Email, own: OwnHeaders, sender: string): JsonObject {
  const replyTo = replyToOf(email, sender);
  const headers = furtherHeadersOf(email);
  const subject = oneLine(decodeHeader(headerIn(email.headers, "subject")));
  return {
    ...(subject !== "" && { subject }),
    ...(own.template === null ? contentOf(email) : { template_id: own.template }),
    ...(own.data !== null && { data: own.data }),
    ...(own.tags.length > 0 && { tags: own.tags }),
    ...(own.tracking !== null && { tracking: own.tracking }),
    ...(own.topic !== null && { topic: own.topic }),
    ...(replyTo.length > 0 && { reply_to: replyTo }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(email.attachments.length > 0 && { attachments: email.attachments.map(attachmentOf) }),
  };
}

function contentOf({ html, text = "" }: Email): JsonObject {
  if (html === undefined) return { text: text.trimEnd() };
  return { html: html.trimEnd(), ...(text.trim() !== "" && { text: text.trimEnd() }) };
}

/** Those that the API passes on: of each name the first. The others are dropped, as a program cannot act on a refusal of them. */
function furtherHeadersOf({ headers }: Email): Readonly<Record<string, string>> {
  const further = new Map<string, readonly [string, string]>();
  for (const { key, originalKey, value } of headers) {
    if (!isFurtherHeader(key) || further.has(key)) continue;
    const text = key === "references" ? shortened(value) : oneLine(decodeHeader(value));
    if (text !== "") further.set(key, [originalKey, text]);
  }
  return Object.fromEntries(further.values());
}

/** A long thread's message ids: the first and the last ones, as many as one line holds (RFC 5322, 2.1.1). */
function shortened(references: string): string {
  const [first = "", ...ids] = oneLine(references).split(/\s+/);
  const room = REFERENCES_CHARS_MAX - first.length;
  let last = "";
  while (ids.length > 0 && last.length + (ids.at(-1) ?? "").length + 1 <= room) last = ` ${ids.pop() ?? ""}${last}`;
  return first + last;
}

const REFERENCES_CHARS_MAX = 900;

/** `X-Waybill-…`: what a message in SMTP has no other place for. They are not sent on. */
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
const KNOWN: readonly string[] = [TEMPLATE, DATA, TAG, TOPIC, TRACKING, IDEMPOTENCY_KEY];

function ownHeadersOf({ headers }: Email): OwnHeaders {
  const values = new Map<string, string[]>();
  for (const { key, value } of headers) {
    if (!key.startsWith(OWN)) continue;
    const name = key.slice(OWN.length);
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
  const [data, tags] = [dataOf(single(DATA)), (values.get(TAG) ?? []).map(tagOf)];
  return { template, data, tags, topic: single(TOPIC), tracking: trackingOf(single(TRACKING)), idempotencyKey };
}

function dataOf(text: string | null): JsonObject | null {
  if (text === null) return null;
  const data = jsonOf(text);
  if (!isJsonObject(data)) throw refused(`the header ${OWN}${DATA} must be a JSON object`);
  return data;
}

function jsonOf(text: string): unknown {
  try {
    return parsePassedOn(Buffer.from(text));
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

function trackingOf(text: string | null): TrackingChoice | null {
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

function tagOf(text: string): JsonObject {
  const at = text.indexOf("=");
  if (at < 1) throw refused(`the header ${OWN}${TAG} must be name=value`);
  return { name: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
}

/**
 * The sender's address. Mail goes out from the tenant's own sender, or the platform's: a message that says otherwise is refused
 * rather than changed.
 */
function requireOwnSender(tenant: Tenant, { headers }: Email, platformSender: string): string {
  const sender = senderOf(tenant, platformSender);
  const [only, ...more] = addressesIn(headers, "from") ?? [];
  if (only?.address === undefined || more.length > 0) {
    throw new SmtpRefusal(550, `5.7.1 the message must have one address in From: ${sender}`);
  }
  if (recipientKey(only.address) === recipientKey(sender)) return sender;
  const given = only.address.slice(0, 100);
  throw new SmtpRefusal(550, `5.7.1 ${given} is not a sender of yours: the address in From must be ${sender}`);
}

/** Throws an `SmtpRefusal` if the tenant's own domain is not verified. */
export function senderOf(tenant: Tenant, platformSender: string): string {
  const own = ownSenderOf(tenant);
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
export function recipientOf(given: string): string {
  const address = parseRecipient(given);
  if (address !== null && isRoutedOn(address)) throw new SmtpRefusal(553, `5.1.3 the recipient ${ROUTED_ON}`);
  if (address !== null) return address;
  throw new SmtpRefusal(553, "5.1.3 the recipient must be one e-mail address, such as ada@example.com");
}

/** Display names of recipients, by address: of as many as anybody reads. */
function namesOf({ headers }: Email): ReadonlyMap<string, string> {
  const addresses = ["to", "cc"].flatMap((key) => firstAddressesIn(headers, key));
  const named = mailboxesOf(addresses).filter(({ name }) => oneLine(name) !== "");
  return new Map(named.map(({ name, address }) => [recipientKey(address), oneLine(name)]));
}

/** Empty if answers go to the sender anyway. */
function replyToOf({ headers }: Email, sender: string): readonly Json[] {
  const addresses = addressesIn(headers, "reply-to");
  if (addresses === null) throw refused("the header reply-to is too long");
  const mailboxes = mailboxesOf(addresses);
  if (mailboxes.every(({ address }) => recipientKey(address) === recipientKey(sender))) return [];
  return mailboxes.map(({ name, address }) => ({ address, ...(oneLine(name) !== "" && { name: oneLine(name) }) }));
}

function mailboxesOf(addresses: readonly Address[]): readonly Mailbox[] {
  return addresses.flatMap((one) => (one.group === undefined ? [one] : one.group)).filter(({ address }) => address);
}

function attachmentOf({ filename, mimeType, contentId, content }: Attachment, at: number): JsonObject {
  const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(new Uint8Array(content));
  const id = contentId?.trim().replace(/^<(.*)>$/, "$1") ?? "";
  return {
    filename: fileName(filename ?? "") || `attachment-${at + 1}`,
    content: bytes.toString("base64"),
    content_type: mimeType,
    ...(id !== "" && { content_id: id }),
  };
}

/** The last part of a path, as programs of some systems name their files. */
function fileName(given: string): string {
  const last =
    given
      .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
      .split(/[/\\]/)
      .at(-1) ?? "";
  return last.trim().slice(-FILENAME_CHARS_MAX);
}

/** Folding may leave tabs, and encoded words any character at all. */
function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
}

function refused(why: string): SmtpRefusal {
  return new SmtpRefusal(554, `5.6.0 ${why}`);
}
