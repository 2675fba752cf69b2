import type { IncomingMessage } from "../../../domain/channels/incoming-messages.ts";
import type { NumberOfAccount } from "../../../domain/channels/sender-accounts.ts";
import type { NewsType } from "../../../domain/tenants/tenant-news.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { chatErrorText } from "../chat-error-text.ts";
import { chatLimits } from "../limits.ts";
import { type ChangedPerson, changedPerson, type PersonIds, readSubject, readWriter } from "../person.ts";
import { accountEvent, EVENT_CHARS_MAX, type PartKind } from "./account-events.ts";
import { shortened } from "./shortened.ts";

/** The provider's report on one message that we sent through it. */
export interface WhatsappStatus {
  /** The provider's id of the message. */
  readonly messageId: string;
  /** The provider's id of the sending number; null if the call names none. */
  readonly phoneNumberId: string | null;
  readonly type: "sent" | "delivered" | "read" | "failed";
  readonly result: JsonObject;
  /** The time of the event in unix milliseconds; null if the provider gave no plausible time. */
  readonly occurredAtMs: number | null;
  /** The callback data that the sender attached; null if there was none. */
  readonly callbackData: string | null;
}

/** A button that a person pressed. */
export interface PressedButton {
  /** The payload that the button's sender attached; null if there is none. */
  readonly payload: string | null;
  /** The button's label. */
  readonly text: string | null;
}

/** A message that a person wrote to one of the sending numbers. */
export interface ChatMessage {
  readonly message: IncomingMessage;
  /** The writer's ids; an answer can be sent to any of them. */
  readonly writer: PersonIds;
  /** The writer's new number or ids, if the provider reports a change. */
  readonly changed: ChangedPerson | null;
  /** The time of writing in unix milliseconds; null if the provider gives none. */
  readonly writtenAtMs: number | null;
  /** Whether the message is the provider's own notice about the person, such as a new number, not the person's words. */
  readonly isNotice: boolean;
  readonly said: {
    /** The text of a text message. */
    readonly text: string | null;
    readonly button: PressedButton | null;
    /** The provider's id of the message that this one answers. */
    readonly answers: string | null;
  };
}

/** A part of a call that is neither a status nor a message. */
export interface CallbackPart {
  readonly type: Exclude<NewsType, "message.received">;
  /** The level of the call's body at which the part was found. */
  readonly what: "body" | "entry" | "change" | "value" | "status" | "message" | "errors";
  readonly accountId: string | null;
  readonly phoneNumberId: string | null;
  readonly displayNumber: string | null;
  readonly field: string | null;
  readonly event: string | null;
  readonly isAlarming: boolean;
  /** Unix milliseconds; null if the provider gives none. */
  readonly atMs: number | null;
  readonly content: Json;
}

export interface WhatsappWebhook {
  /** In order of arrival. */
  readonly statuses: readonly WhatsappStatus[];
  readonly messages: readonly ChatMessage[];
  /** Reports on accounts, and content of unknown form. */
  readonly parts: readonly CallbackPart[];
  readonly numbers: readonly NumberOfAccount[];
  /** Statuses that we do not use. */
  readonly ignored: number;
  /** The number of parts beyond the bound of one call. */
  readonly dropped: number;
}

/**
 * Reads the body of a webhook call: every status and message of every change of every entry, whatever the change's
 * `field` (WhatsApp Cloud API, "Webhooks"). Everything else becomes a part and is passed on unchanged rather than only
 * counted, because the provider does not repeat it.
 */
export function readWhatsappWebhook(body: JsonObject): WhatsappWebhook {
  const found: Found = { statuses: [], messages: [], parts: [], numbers: [], ignored: 0, dropped: 0 };
  const top: Place = { found, accountId: null, atMs: null, field: null, phoneNumberId: null, displayNumber: null };
  if (body["entry"] === undefined) keep(body, "body", top);
  else for (const entry of members(body["entry"], "entry", top)) readEntry(entry, top);
  return found;
}

interface Found {
  readonly statuses: WhatsappStatus[];
  readonly messages: ChatMessage[];
  readonly parts: CallbackPart[];
  readonly numbers: NumberOfAccount[];
  ignored: number;
  dropped: number;
}

/** A position in a call's body. */
interface Place extends Pick<CallbackPart, "accountId" | "atMs" | "field" | "phoneNumberId" | "displayNumber"> {
  readonly found: Found;
}

function readEntry(entry: JsonObject, top: Place): void {
  const { id, time, changes } = entry;
  const place: Place = {
    ...top,
    accountId: isName(id) ? id : null,
    atMs: typeof time === "number" ? secondsMs(time) : null,
  };
  if (changes === undefined) {
    keep(entry, "entry", place);
    return;
  }
  for (const change of members(changes, "changes", place)) {
    const { field, value } = change;
    const its = { ...place, field: isName(field) ? field : null };
    if (isJsonObject(value)) readValue(value, its);
    else keep(change, "change", its);
  }
}

/** Members of a value that explain its statuses and messages. */
const AROUND = new Set(["messaging_product", "metadata", "contacts", "statuses", "messages", "errors"]);

function readValue(value: JsonObject, { found, ...around }: Place): void {
  const { statuses, messages, errors, metadata, contacts } = value;
  const displayNumber = extractDigits(
    isJsonObject(metadata) ? metadata["display_phone_number"] : value["display_phone_number"],
  );
  const place: Place = { found, ...around, phoneNumberId: readPhoneNumberId(metadata), displayNumber };
  const { accountId, phoneNumberId, field } = place;
  if (accountId !== null && phoneNumberId !== null) found.numbers.push({ accountId, phoneNumberId, displayNumber });
  if (statuses !== undefined) for (const one of members(statuses, "statuses", place)) readStatus(one, place);
  if (messages !== undefined) for (const one of members(messages, "messages", place)) readMessage(one, contacts, place);
  const event = accountEvent(field, value);
  if (event !== null) keep(value, "value", place, event);
  else if (errors !== undefined) keep({ errors }, "errors", place, { field: "errors", ...errorEvent(errors) });
  else if (statuses === undefined && messages === undefined) keep(value, "value", place);
  if (event !== null || (statuses === undefined && messages === undefined)) return;
  // Members that the provider may add later.
  const others = Object.entries(value).filter(([name, other]) => !AROUND.has(name) && typeof other === "object");
  if (others.length > 0) keep(Object.fromEntries(others), "value", place);
}

function errorEvent(errors: Json): Pick<PartKind, "event" | "isAlarming"> {
  const [error] = isJsonArray(errors) ? errors : [];
  const code = isJsonObject(error) ? error["code"] : undefined;
  return { event: code === undefined ? null : shortened(String(code), EVENT_CHARS_MAX), isAlarming: true };
}

/** Adds a part, either a report on the account or content of unknown form. */
function keep(content: Json, what: CallbackPart["what"], { found, ...place }: Place, kind?: PartKind): void {
  if (found.parts.length >= chatLimits.callbackPartsMax) {
    found.dropped += 1;
    return;
  }
  const unknown = { type: "message.unknown", event: null, isAlarming: true } as const;
  found.parts.push({ ...place, ...unknown, ...(kind && { type: "account.updated", ...kind }), what, content });
}

function readStatus(status: JsonObject, place: Place): void {
  const { found, phoneNumberId } = place;
  const { id, status: word, timestamp, biz_opaque_callback_data: data } = status;
  const type = STATUSES.find((known) => known === word);
  if (!isName(id) || type === undefined) {
    if (isName(id) && UNUSED_STATUSES.some((known) => known === word)) found.ignored += 1;
    else keep(status, "status", place);
    return;
  }
  const result = type === "failed" ? { error: formatFailure(status["errors"]) } : {};
  const callbackData = typeof data === "string" ? data : null;
  const occurredAtMs = parseTime(timestamp);
  found.statuses.push({ messageId: id, phoneNumberId, type, result, occurredAtMs, callbackData });
}

/** Parses epoch seconds of this century, as text. */
function parseTime(timestamp: Json | undefined): number | null {
  if (typeof timestamp !== "string" || !/^\d{9,10}$/.test(timestamp)) return null;
  return secondsMs(Number(timestamp));
}

function secondsMs(seconds: number): number | null {
  const ms = Math.floor(seconds * 1_000);
  return ms > 0 && ms < CENTURY_END_MS ? ms : null;
}

const CENTURY_END_MS = Date.UTC(2100, 0, 1);

const STATUSES = ["sent", "delivered", "read", "failed"] as const;
/** Documented statuses that are no step of a delivery. */
const UNUSED_STATUSES = ["played", "deleted", "warning"] as const;

function readMessage(message: JsonObject, contacts: Json | undefined, place: Place): void {
  const { id, type } = message;
  const isNotice = type === "system";
  const writer = readWriter(message, contacts) ?? (isNotice ? readSubject(message) : null);
  if (!isName(id) || writer === null || !isName(type)) {
    keep(message, "message", place);
    return;
  }
  const { from, userId, username, name } = writer;
  const isKept = JSON.stringify(message).length <= chatLimits.incomingMessageCharsMax;
  const content = isKept ? message : null;
  place.found.messages.push({
    message: { id, phoneNumberId: place.phoneNumberId, from, userId, username, name, type, content },
    writer,
    changed: isNotice ? changedPerson(message) : null,
    writtenAtMs: unixMs(message["timestamp"]),
    isNotice,
    said: {
      text: textAt(message["text"], "body"),
      button: pressedButton(message),
      answers: answeredBy(message["context"]),
    },
  });
}

/** Converts the provider's seconds, as text, to milliseconds. */
function unixMs(timestamp: Json | undefined): number | null {
  return typeof timestamp === "string" && /^\d{1,11}$/.test(timestamp) ? Number(timestamp) * 1000 : null;
}

/** Reads a pressed button: a template's is in `button`, another message's in `interactive`. */
function pressedButton({ button, interactive }: JsonObject): PressedButton | null {
  if (isJsonObject(button)) return { payload: textAt(button, "payload"), text: textAt(button, "text") };
  const reply = isJsonObject(interactive) ? (interactive["button_reply"] ?? interactive["list_reply"]) : undefined;
  return isJsonObject(reply) ? { payload: textAt(reply, "id"), text: textAt(reply, "title") } : null;
}

function answeredBy(context: Json | undefined): string | null {
  const id = isJsonObject(context) ? context["id"] : undefined;
  return isName(id) ? id : null;
}

/** Reads a text member, shortened to the greatest length that the provider documents. */
function textAt(value: Json | undefined, member: string): string | null {
  const text = isJsonObject(value) ? value[member] : undefined;
  return shortened(text, chatLimits.chatTextCharsMax);
}

function readPhoneNumberId(metadata: Json | undefined): string | null {
  const id = isJsonObject(metadata) ? metadata["phone_number_id"] : undefined;
  return isName(id) ? id : null;
}

/** Extracts the digits of a number as the provider displays it, `+1 555-000-1111`. */
function extractDigits(value: Json | undefined): string | null {
  const digits = typeof value === "string" ? value.slice(0, EVENT_CHARS_MAX).replace(/\D/g, "") : "";
  return digits === "" ? null : digits;
}

/** Formats the error for the tenant. Statuses use the same codes as replies to calls. */
function formatFailure(errors: Json | undefined): string {
  const [error] = isJsonArray(errors) ? errors : [];
  if (!isJsonObject(error)) return NO_REASON;
  const { code, title, message, error_data: data } = error;
  const details = isJsonObject(data) ? data["details"] : undefined;
  return chatErrorText(typeof code === "number" ? `error ${code}` : NO_REASON, {
    message: [title, message].find(isText) ?? "",
    details: isText(details) ? details : null,
  });
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

const NO_REASON = "the provider could not deliver the message";

/** Returns the objects in a list. A value that is not a list, and items that are not objects, become parts of their own. */
function members(list: Json | undefined, name: string, place: Place): readonly JsonObject[] {
  if (!isJsonArray(list)) {
    keep({ [name]: list ?? null }, "value", place);
    return [];
  }
  const others = list.filter((item) => !isJsonObject(item));
  if (others.length > 0) keep({ [name]: others }, "value", place);
  return list.filter(isJsonObject);
}

function isName(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "" && value.length <= chatLimits.chatMessageIdCharsMax;
}
