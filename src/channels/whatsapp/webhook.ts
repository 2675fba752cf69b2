import type { IncomingMessage } from "../../domain/incoming-messages.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../domain/json.ts";
import { chatErrorText } from "./chat-error-text.ts";
import { chatLimits } from "./limits.ts";

/** The provider's report on one message that we sent through it. */
export interface WhatsappStatus {
  /** The provider's id of the message. */
  readonly messageId: string;
  /** The provider's id of the sending number; null if the call names none. */
  readonly phoneNumberId: string | null;
  readonly type: "sent" | "delivered" | "read" | "failed";
  readonly result: JsonObject;
  /** When it happened, unix ms; null: the provider gave no time that can be true. */
  readonly occurredAtMs: number | null;
  /** The callback data that the sender attached; null if there was none. */
  readonly callbackData: string | null;
}

/** A button that was pressed. */
export interface PressedButton {
  /** What the sender of the button gave along; null: nothing. */
  readonly payload: string | null;
  /** What is written on it. */
  readonly text: string | null;
}

/** A message that a person wrote to one of the sending numbers. */
export interface ChatMessage {
  readonly message: IncomingMessage;
  /** When it was written, in unix milliseconds; null: the provider does not say. */
  readonly writtenAtMs: number | null;
  /** Whether the provider itself says something of the person, such as a new number: the person wrote nothing. */
  readonly isNotice: boolean;
  readonly said: {
    /** The words of a message in text. */
    readonly text: string | null;
    readonly button: PressedButton | null;
    /** The provider's id of the message that it answers. */
    readonly answers: string | null;
  };
}

export interface WhatsappWebhook {
  /** In order of arrival. */
  readonly statuses: readonly WhatsappStatus[];
  readonly messages: readonly ChatMessage[];
  /** Statuses that we do not use (`played`, `deleted`, `warning`, …). */
  readonly ignored: number;
  /** Parts that do not match the provider's documentation. */
  readonly misshapen: number;
}

/**
 * Reads the body of a webhook call: every status and message of every change of every entry, whatever the change's
 * `field` (WhatsApp Cloud API, "Webhooks"). All other parts are counted and ignored.
 */
export function readWhatsappWebhook(body: JsonObject): WhatsappWebhook {
  const found: Found = { statuses: [], messages: [], ignored: 0, misshapen: 0 };
  for (const entry of members(body["entry"], found)) {
    for (const change of members(entry["changes"], found)) {
      const value = change["value"];
      if (isJsonObject(value)) readValue(value, found);
      else found.misshapen += 1;
    }
  }
  return found;
}

interface Found {
  readonly statuses: WhatsappStatus[];
  readonly messages: ChatMessage[];
  ignored: number;
  misshapen: number;
}

function readValue(value: JsonObject, found: Found): void {
  const { statuses, messages } = value;
  // Changes of other fields, such as an account's review or a template, have neither.
  if (statuses === undefined && messages === undefined) found.ignored += 1;
  const phoneNumberId = phoneNumberIdOf(value["metadata"]);
  if (statuses !== undefined) for (const one of members(statuses, found)) readStatus(one, { found, phoneNumberId });
  if (messages === undefined) return;
  const names = namesOf(value["contacts"]);
  for (const message of members(messages, found)) readMessage(message, { found, names, phoneNumberId });
}

function readStatus(status: JsonObject, { found, phoneNumberId }: Omit<Context, "names">): void {
  const { id, status: word, timestamp, biz_opaque_callback_data: data } = status;
  if (!isName(id) || typeof word !== "string") {
    found.misshapen += 1;
    return;
  }
  const type = STATUSES.find((known) => known === word);
  if (type === undefined) {
    found.ignored += 1;
    return;
  }
  const result = type === "failed" ? { error: failureOf(status["errors"]) } : {};
  const callbackData = typeof data === "string" ? data : null;
  const occurredAtMs = timeOf(timestamp);
  found.statuses.push({ messageId: id, phoneNumberId, type, result, occurredAtMs, callbackData });
}

/** Epoch seconds as text, of this century. */
function timeOf(timestamp: Json | undefined): number | null {
  if (typeof timestamp !== "string" || !/^\d{9,10}$/.test(timestamp)) return null;
  const ms = Number(timestamp) * 1_000;
  return ms < CENTURY_END_MS ? ms : null;
}

const CENTURY_END_MS = Date.UTC(2100, 0, 1);

const STATUSES = ["sent", "delivered", "read", "failed"] as const;

interface Context {
  readonly found: Found;
  readonly names: ReadonlyMap<string, string>;
  readonly phoneNumberId: string | null;
}

function readMessage(message: JsonObject, { found, names, phoneNumberId }: Context): void {
  const { id, from, type } = message;
  if (!isName(id) || !isName(from) || !isName(type)) {
    found.misshapen += 1;
    return;
  }
  const isKept = JSON.stringify(message).length <= chatLimits.incomingMessageCharsMax;
  const content = isKept ? message : null;
  found.messages.push({
    message: { id, phoneNumberId, from, name: names.get(from) ?? null, type, content },
    writtenAtMs: unixMs(message["timestamp"]),
    isNotice: type === "system",
    said: {
      text: textAt(message["text"], "body"),
      button: pressedButton(message),
      answers: answeredBy(message["context"]),
    },
  });
}

/** The provider writes seconds, as text. */
function unixMs(timestamp: Json | undefined): number | null {
  return typeof timestamp === "string" && /^\d{1,11}$/.test(timestamp) ? Number(timestamp) * 1000 : null;
}

/** A template's button comes as `button`, one of another message as `interactive`. */
function pressedButton({ button, interactive }: JsonObject): PressedButton | null {
  if (isJsonObject(button)) return { payload: textAt(button, "payload"), text: textAt(button, "text") };
  const reply = isJsonObject(interactive) ? (interactive["button_reply"] ?? interactive["list_reply"]) : undefined;
  return isJsonObject(reply) ? { payload: textAt(reply, "id"), text: textAt(reply, "title") } : null;
}

function answeredBy(context: Json | undefined): string | null {
  const id = isJsonObject(context) ? context["id"] : undefined;
  return isName(id) ? id : null;
}

/** A member that is a text, shortened to the longest that the provider documents. */
function textAt(value: Json | undefined, member: string): string | null {
  const text = isJsonObject(value) ? value[member] : undefined;
  return typeof text === "string" ? text.slice(0, chatLimits.chatTextCharsMax).toWellFormed() : null;
}

/** Senders' profile names, by number. */
function namesOf(contacts: Json | undefined): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const contact of Array.isArray(contacts) ? contacts : []) {
    const [waId, profile] = isJsonObject(contact) ? [contact["wa_id"], contact["profile"]] : [];
    const name = isJsonObject(profile) ? profile["name"] : undefined;
    if (typeof waId === "string" && typeof name === "string") names.set(waId, name.slice(0, NAME_CHARS_MAX));
  }
  return names;
}

function phoneNumberIdOf(metadata: Json | undefined): string | null {
  const id = isJsonObject(metadata) ? metadata["phone_number_id"] : undefined;
  return isName(id) ? id : null;
}

/** The error as shown to the tenant. Statuses use the same codes as replies to calls. */
function failureOf(errors: Json | undefined): string {
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
const NAME_CHARS_MAX = 256;

/** The objects in a list. A value that is not a list, and items that are not objects, are counted. */
function members(list: Json | undefined, found: Found): readonly JsonObject[] {
  if (!Array.isArray(list)) {
    found.misshapen += 1;
    return [];
  }
  const objects = list.filter(isJsonObject);
  found.misshapen += list.length - objects.length;
  return objects;
}

function isName(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "" && value.length <= chatLimits.chatMessageIdCharsMax;
}
