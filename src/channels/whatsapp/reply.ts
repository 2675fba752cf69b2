import { type TProperties, Type } from "@sinclair/typebox";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { optional } from "../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../http/sending/acceptance.ts";
import { complaintAboutText, FreeTextSchema, toFreeText } from "./free-text.ts";
import { complaintAboutInteractive, graphInteractive, InteractiveSchema } from "./interactive.ts";
import { chatLimits } from "./limits.ts";
import { complaintAboutSource, MEDIA_SOURCE, ONE_SOURCE, readSource } from "./media.ts";
import { complaintAboutPlace, graphPlace, PLACE_MEMBERS, readPlace } from "./place.ts";
import { complaintAboutRaw } from "./raw.ts";
import { FILENAME_CHARS_MAX } from "./templates/header.ts";
import { complaintAboutLine, complaintAboutLines, line, lines } from "./templates/value-rules.ts";

/* Messages without a template, which answer a person who wrote recently. */

const CAPTION_CHARS_MAX = 1_024;
const CONTACTS_MAX = 20;
const EMOJI_CHARS_MAX = 64;
const STRICT = { additionalProperties: false } as const;

const MessageId = line(chatLimits.chatMessageIdCharsMax);
const caption = optional(lines(CAPTION_CHARS_MAX));

/** The members of each type of media beside its source. */
const MEDIA_MEMBERS: Readonly<Record<string, TProperties>> = {
  image: { caption },
  video: { caption },
  audio: { voice: optional(Type.Boolean({ description: "Whether it is shown as recorded by voice: OGG with OPUS." })) },
  document: {
    caption,
    filename: optional(line(FILENAME_CHARS_MAX, "Its name on the phone.")),
  },
  sticker: {},
};

const MediaSchema = Type.Union(
  Object.entries(MEDIA_MEMBERS).map(([type, members]) =>
    Type.Object({ type: Type.Literal(type), ...MEDIA_SOURCE, ...members }, { ...STRICT, ...ONE_SOURCE }),
  ),
  { $id: "ChatMedia", description: "A picture, video, sound, document or sticker." },
);

const ContactsSchema = Type.Array(
  Type.Object(
    {
      name: Type.Object({ formatted_name: line(CAPTION_CHARS_MAX) }, { additionalProperties: true }),
    },
    { additionalProperties: true },
  ),
  {
    minItems: 1,
    maxItems: CONTACTS_MAX,
    description: "Cards of people. All other members reach the provider unchanged. Up to 16 KiB.",
  },
);

const ReactionSchema = Type.Object(
  {
    message_id: { ...MessageId, description: "The provider's id of the message that came in." },
    emoji: Type.String({ maxLength: EMOJI_CHARS_MAX, description: "Empty: the reaction is taken back." }),
  },
  { $id: "ChatReaction", ...STRICT },
);

interface ReplyKind {
  readonly schema: ReturnType<typeof Type.Unsafe>;
  complaint(value: Json): string | null;
  /** Converts a checked value to the provider's form: the message's type, and the value of the member of that name. */
  graph(value: Json): readonly [type: string, content: Json];
}

/** Kinds of message by the member of a send that contains them. */
const KINDS = {
  text: { schema: FreeTextSchema, complaint: complaintAboutText, graph: (value) => ["text", toFreeText(value)] },
  media: { schema: MediaSchema, complaint: complaintAboutMedia, graph: graphMedia },
  location: {
    schema: Type.Object(PLACE_MEMBERS, { $id: "ChatLocation", ...STRICT }),
    complaint: complaintAboutLocation,
    graph: (value) => ["location", graphPlace(readPlace(objectIn(value)) ?? { latitude: 0, longitude: 0 })],
  },
  contacts: { schema: ContactsSchema, complaint: complaintAboutContacts, graph: (value) => ["contacts", value] },
  reaction: { schema: ReactionSchema, complaint: complaintAboutReaction, graph: (value) => ["reaction", value] },
  interactive: {
    schema: InteractiveSchema,
    complaint: complaintAboutInteractive,
    graph: (value) => ["interactive", graphInteractive(objectIn(value))],
  },
} satisfies Readonly<Record<string, ReplyKind>>;

export type ReplyName = keyof typeof KINDS;
export const REPLY_NAMES = Object.keys(KINDS) as readonly ReplyName[];

/** The members of a chat send that make a message without a template. */
export const REPLY_MEMBERS = {
  ...Object.fromEntries(Object.entries(KINDS).map(([name, { schema }]) => [name, optional(schema)])),
  reply_to: optional({ ...MessageId, description: "The provider's id of the message that this one quotes." }),
};

/** The API document's rule that one of the members must be present. */
export const REPLY_CHOICES = Object.entries(KINDS).map(([name, { schema }]) => ({
  required: [name],
  properties: { [name]: schema },
}));

/** Returns the member that contains the message; null if it comes from a template. */
export function replyIn(body: JsonObject): ReplyName | null {
  return REPLY_NAMES.find((name) => body[name] !== undefined) ?? null;
}

/** Returns a sentence that says why a message without a template is invalid, or null. */
export function complaintAboutReply(body: JsonObject, name: ReplyName): string | null {
  const other = REPLY_NAMES.find((one) => one !== name && body[one] !== undefined);
  if (other !== undefined) return `send either ${name} or ${other}, not both`;
  const complaint = KINDS[name].complaint(body[name] ?? null);
  return complaint ?? complaintAboutLine(body["reply_to"], chatLimits.chatMessageIdCharsMax, "reply_to");
}

/** Converts a checked message without a template to the provider's form. */
export function buildReply(body: JsonObject, name: ReplyName): JsonObject {
  const [type, content] = KINDS[name].graph(body[name] ?? null);
  const { reply_to: message_id } = body;
  return { ...(message_id === undefined ? null : { context: { message_id } }), type, [type]: content };
}

function complaintAboutMedia(value: Json): string | null {
  const types = Object.keys(MEDIA_MEMBERS).join(", ");
  if (!isJsonObject(value)) return `media must be an object with a type: one of ${types}`;
  const media = presentMembers(value);
  const { type, caption: words, filename, voice } = media;
  const own = typeof type === "string" && Object.hasOwn(MEDIA_MEMBERS, type) ? MEDIA_MEMBERS[type] : undefined;
  if (own === undefined) return `media.type must be one of ${types}`;
  const members = ["type", "link", "id", ...Object.keys(own)];
  if (voice !== undefined && typeof voice !== "boolean" && "voice" in own) return "media.voice must be true or false";
  return (
    complaintAboutMembers(media, members, `media of the type ${String(type)}`, "media.") ??
    complaintAboutSource(media, "media") ??
    (words === undefined ? null : complaintAboutLines(words, CAPTION_CHARS_MAX, "media.caption")) ??
    complaintAboutLine(filename, FILENAME_CHARS_MAX, "media.filename")
  );
}

function graphMedia(value: Json): readonly [string, Json] {
  const { type, link, id, ...others } = presentMembers(objectIn(value));
  return [String(type), { ...readSource({ ...(link && { link }), ...(id && { id }) }), ...others }];
}

function complaintAboutLocation(value: Json): string | null {
  if (!isJsonObject(value)) return "location must be an object with latitude and longitude";
  const place = presentMembers(value);
  return (
    complaintAboutMembers(place, Object.keys(PLACE_MEMBERS), "location", "location.") ??
    complaintAboutPlace(place, "location")
  );
}

function complaintAboutContacts(value: Json): string | null {
  if (!isJsonArray(value) || value.length === 0 || value.length > CONTACTS_MAX) {
    return `contacts must be an array of 1 to ${CONTACTS_MAX} objects with a name`;
  }
  for (const [at, contact] of value.entries()) {
    const name = isJsonObject(contact) ? contact["name"] : undefined;
    const shown = isJsonObject(name) ? name["formatted_name"] : undefined;
    const member = `contacts[${at}].name.formatted_name`;
    const complaint =
      shown === undefined ? `${member} is required` : complaintAboutLine(shown, CAPTION_CHARS_MAX, member);
    if (complaint !== null) return complaint;
  }
  return complaintAboutRaw(value, "contacts");
}

function complaintAboutReaction(value: Json): string | null {
  if (!isJsonObject(value)) return "reaction must be an object with message_id and emoji";
  const reaction = presentMembers(value);
  const { message_id: id, emoji } = reaction;
  if (typeof emoji !== "string" || emoji.length > EMOJI_CHARS_MAX || !emoji.isWellFormed()) {
    return "reaction.emoji must be an emoji, or empty to take the reaction back";
  }
  return (
    complaintAboutMembers(reaction, ["message_id", "emoji"], "reaction", "reaction.") ??
    (id === undefined ? "reaction.message_id is required" : null) ??
    complaintAboutLine(id, chatLimits.chatMessageIdCharsMax, "reaction.message_id")
  );
}

function objectIn(value: Json): JsonObject {
  return isJsonObject(value) ? value : {};
}
