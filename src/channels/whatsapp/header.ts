import { Type } from "@sinclair/typebox";
import { isJsonObject, type Json, type JsonObject, writtenOut } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import { parseUrl } from "../../domain/parse-url.ts";
import { HEADER_MEDIA_TYPES, type HeaderMedia } from "../../domain/whatsapp.ts";
import { optional } from "../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../http/sending/acceptance.ts";
import { PARAMETER_NAME, PARAMETER_NAME_RULE } from "./params.ts";
import { complaintAbout, isLonger, isPlainLine } from "./value-rules.ts";

/** The value of the one placeholder in a header of text. */
export interface HeaderText {
  readonly type: "text";
  readonly text: string;
  /** The placeholder's name; absent: it is `{{1}}`. */
  readonly parameter_name?: string;
}

/** The place that a header's map shows, in degrees (WGS 84). */
export interface HeaderLocation {
  readonly type: "location";
  readonly latitude: number;
  readonly longitude: number;
  readonly name?: string;
  readonly address?: string;
}

/** What fills a template's header, in the form of the request and of the queue. */
export type MessageHeader = HeaderMedia | HeaderText | HeaderLocation;

const TYPES = ["text", ...HEADER_MEDIA_TYPES, "location"] as const;
type HeaderType = (typeof TYPES)[number];

const HEADER_TEXT_CHARS_MAX = 60;
const FILENAME_CHARS_MAX = 240;
const PLACE_CHARS_MAX = 256;
const HTTPS = /^https:\/\//;
/** What an address has only as an escape, beside what lies beyond ASCII. */
const NOT_IN_LINKS = /[\s\p{Cc}\p{Cs}]/u;
/** The same, as a schema says it. */
export const LINK_PATTERN = "^https://[^\\x00-\\x20\\x7f-\\xa0]+$";
const MEDIA_ID = /^[A-Za-z0-9_-]{1,100}$/;

const link = optional(
  Type.String({
    maxLength: limits.linkUrlBytesMax,
    pattern: LINK_PATTERN,
    description:
      "An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or `id`.",
  }),
);
const id = optional(
  Type.String({ pattern: MEDIA_ID.source, description: "The provider's id of uploaded media. Either this or `link`." }),
);
const line = (maxLength: number) => Type.String({ minLength: 1, maxLength });

/** The member `header` of a chat send. */
export const MessageHeaderSchema = Type.Union(
  [
    Type.Object(
      {
        type: Type.Literal("text"),
        text: Type.String({
          minLength: 1,
          maxLength: HEADER_TEXT_CHARS_MAX,
          description: "The value of the header's one placeholder.",
        }),
        parameter_name: optional(
          Type.String({ pattern: PARAMETER_NAME.source, description: "The placeholder's name, where it has one." }),
        ),
      },
      { additionalProperties: false },
    ),
    Type.Object({ type: Type.Literal("image"), link, id }, { additionalProperties: false }),
    Type.Object({ type: Type.Literal("video"), link, id }, { additionalProperties: false }),
    Type.Object(
      {
        type: Type.Literal("document"),
        link,
        id,
        filename: optional(
          Type.String({ minLength: 1, maxLength: FILENAME_CHARS_MAX, description: "Its name on the phone." }),
        ),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        type: Type.Literal("location"),
        latitude: Type.Number({ minimum: -90, maximum: 90 }),
        longitude: Type.Number({ minimum: -180, maximum: 180 }),
        name: optional(line(PLACE_CHARS_MAX)),
        address: optional(line(PLACE_CHARS_MAX)),
      },
      { additionalProperties: false },
    ),
  ],
  { $id: "ChatHeader", description: "What fills the template's header. It counts before the alias's." },
);

const MEMBERS: Readonly<Record<HeaderType, readonly string[]>> = {
  text: ["type", "text", "parameter_name"],
  image: ["type", "link", "id"],
  video: ["type", "link", "id"],
  document: ["type", "link", "id", "filename"],
  location: ["type", "latitude", "longitude", "name", "address"],
};

/** What is wrong with a request's `header`, in a sentence; null: nothing. */
export function complaintAboutHeader(value: Json | undefined): string | null {
  if (value === undefined) return null;
  if (!isJsonObject(value)) return `header must be an object with a type: one of ${TYPES.join(", ")}`;
  const header = presentMembers(value);
  const type = TYPES.find((known) => known === header["type"]);
  if (type === undefined) return `header.type must be one of ${TYPES.join(", ")}`;
  const unknown = complaintAboutMembers(header, MEMBERS[type], `a header of the type ${type}`, "header.");
  if (unknown !== null) return unknown;
  if (type === "text") return complaintAboutText(header);
  return type === "location" ? complaintAboutLocation(header) : complaintAboutMedia(header);
}

function complaintAboutText({ text, parameter_name: name }: JsonObject): string | null {
  if (text === undefined) return "header.text is required";
  const complaint = complaintAbout(text, HEADER_TEXT_CHARS_MAX);
  if (complaint !== null) return `header.text ${complaint}`;
  if (name === undefined || (typeof name === "string" && PARAMETER_NAME.test(name))) return null;
  return `header.parameter_name must be ${PARAMETER_NAME_RULE}`;
}

function complaintAboutMedia({ link: address, id: mediaId, filename }: JsonObject): string | null {
  if ((address === undefined) === (mediaId === undefined)) return "header must have either a link or an id";
  const complaint = address === undefined ? null : complaintAboutLink(address);
  if (complaint !== null) return `header.link ${complaint}`;
  if (mediaId !== undefined && !(typeof mediaId === "string" && MEDIA_ID.test(mediaId))) {
    return "header.id must be the provider's id of uploaded media: 1 to 100 letters, digits, hyphens or underscores";
  }
  return filename === undefined ? null : complaintAboutLine("filename", filename, FILENAME_CHARS_MAX);
}

/** Completes "header.link …". */
function complaintAboutLink(value: Json): string | null {
  const address = `must be an https address of at most ${limits.linkUrlBytesMax} characters`;
  if (typeof value !== "string" || !HTTPS.test(value) || value.length > limits.linkUrlBytesMax) return address;
  if (NOT_IN_LINKS.test(value)) return `${address} without blanks and control characters: write a blank as %20`;
  if (parseUrl(value) === null) return `${address}, with a host that can exist`;
  return uriOf(value).length <= limits.linkUrlBytesMax ? null : `${address} once its letters beyond ASCII are escaped`;
}

/**
 * The address as the provider takes it: letters beyond ASCII are escaped, in the host by IDNA (RFC 3987, 3.1). One without any stays as
 * it is.
 */
export function uriOf(link: string): string {
  return ASCII.test(link) ? link : (parseUrl(link)?.href ?? link);
}

const ASCII = /^[\x21-\x7e]*$/;

function complaintAboutLocation({ latitude, longitude, name, address }: JsonObject): string | null {
  if (!isWithin(latitude, 90)) return "header.latitude must be a number from -90 to 90";
  if (!isWithin(longitude, 180)) return "header.longitude must be a number from -180 to 180";
  return (
    (name === undefined ? null : complaintAboutLine("name", name, PLACE_CHARS_MAX)) ??
    (address === undefined ? null : complaintAboutLine("address", address, PLACE_CHARS_MAX))
  );
}

function isWithin(value: Json | undefined, most: number): boolean {
  return typeof value === "number" && Math.abs(value) <= most;
}

function complaintAboutLine(member: string, value: Json, charsMax: number): string | null {
  const isFine = typeof value === "string" && value.trim() !== "" && !isLonger(value, charsMax) && isPlainLine(value);
  return isFine ? null : `header.${member} must be a text of 1 to ${charsMax} characters without control characters`;
}

/** The header that a checked request asks for, or that was queued; null: it is in no known form. */
export function headerOf(value: unknown): MessageHeader | null {
  if (!isJsonObject(value)) return null;
  const type = TYPES.find((known) => known === value["type"]);
  if (type === undefined) return null;
  if (type === "text") {
    const { text, parameter_name: name } = value;
    if (text === undefined || text === null) return null;
    return { type, text: writtenOut(text), ...(typeof name === "string" ? { parameter_name: name } : null) };
  }
  if (type === "location") return placeOf(value);
  const { link: address, id: mediaId, filename } = value;
  return {
    type,
    ...(typeof address === "string" ? { link: uriOf(address) } : null),
    ...(typeof mediaId === "string" ? { id: mediaId } : null),
    ...(typeof filename === "string" ? { filename } : null),
  };
}

function placeOf({ latitude, longitude, name, address }: JsonObject): HeaderLocation | null {
  if (typeof latitude !== "number" || typeof longitude !== "number") return null;
  return {
    type: "location",
    latitude,
    longitude,
    ...(typeof name === "string" ? { name } : null),
    ...(typeof address === "string" ? { address } : null),
  };
}

/** The header's parameter of a template message (WhatsApp Cloud API, "Template components"). */
export function headerParameter(header: MessageHeader): JsonObject {
  if (header.type === "text") {
    const { type, text, parameter_name } = header;
    return { type, ...(parameter_name === undefined ? {} : { parameter_name }), text };
  }
  if (header.type === "location") {
    const { type, latitude, longitude, name, address } = header;
    const place = { ...(name === undefined ? {} : { name }), ...(address === undefined ? {} : { address }) };
    return { type, [type]: { latitude: degrees(latitude), longitude: degrees(longitude), ...place } };
  }
  const { type, link: address, id: mediaId, filename } = header;
  const media = {
    ...(address === undefined ? {} : { link: address }),
    ...(mediaId === undefined ? {} : { id: mediaId }),
    ...(filename === undefined || type !== "document" ? {} : { filename }),
  };
  return { type, [type]: media };
}

/** As text, as the provider documents it: to a centimetre, and never with an exponent. */
function degrees(value: number): string {
  return value.toFixed(7).replace(/\.?0+$/, "");
}
