import { Type } from "@sinclair/typebox";
import { HEADER_MEDIA_TYPES, type HeaderMedia } from "../../../domain/channels/whatsapp.ts";
import { isJsonObject, type Json, type JsonObject, writtenOut } from "../../../domain/texts/json.ts";
import { optional } from "../../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../../http/sending/acceptance.ts";
import { complaintAboutSource, MEDIA_SOURCE, ONE_SOURCE, readSource } from "../media.ts";
import { complaintAboutPlace, graphPlace, PLACE_MEMBERS, type Place, readPlace } from "../place.ts";
import { PARAMETER_NAME, PARAMETER_NAME_RULE } from "./params.ts";
import { complaintAboutProduct, PRODUCT_MEMBERS, type Product, readProduct } from "./products.ts";
import { complaintAbout, complaintAboutLine, fillingValue, line } from "./value-rules.ts";

/** The value of the one placeholder in a header of text. */
export interface HeaderText {
  readonly type: "text";
  readonly text: string;
  /** The placeholder's name; absent: it is `{{1}}`. */
  readonly parameter_name?: string;
}

/** The location on a header's map. */
export interface HeaderLocation extends Place {
  readonly type: "location";
}

/** The catalogue product whose picture a header shows. */
export interface HeaderProduct extends Product {
  readonly type: "product";
}

/** The value of a template's header, in the form of both the request and the queue. */
export type MessageHeader = HeaderMedia | HeaderText | HeaderLocation | HeaderProduct;

const TYPES = ["text", ...HEADER_MEDIA_TYPES, "location", "product"] as const;
export type HeaderType = (typeof TYPES)[number];

const HEADER_TEXT_CHARS_MAX = 60;
export const FILENAME_CHARS_MAX = 240;

const STRICT = { additionalProperties: false } as const;
const ONE_OF_MEDIA = { ...STRICT, ...ONE_SOURCE };

/** Schemas of a header's values, by its type. */
export const HEADER_SCHEMAS = {
  text: Type.Object(
    {
      type: Type.Literal("text"),
      text: fillingValue(HEADER_TEXT_CHARS_MAX, "The value of the header's one placeholder."),
      parameter_name: optional(
        Type.String({ pattern: PARAMETER_NAME.source, description: "The placeholder's name, where it has one." }),
      ),
    },
    STRICT,
  ),
  image: Type.Object({ type: Type.Literal("image"), ...MEDIA_SOURCE }, ONE_OF_MEDIA),
  video: Type.Object({ type: Type.Literal("video"), ...MEDIA_SOURCE }, ONE_OF_MEDIA),
  document: Type.Object(
    {
      type: Type.Literal("document"),
      ...MEDIA_SOURCE,
      filename: optional(line(FILENAME_CHARS_MAX, "Its name on the phone.")),
    },
    ONE_OF_MEDIA,
  ),
  location: Type.Object({ type: Type.Literal("location"), ...PLACE_MEMBERS }, STRICT),
  product: Type.Object({ type: Type.Literal("product"), ...PRODUCT_MEMBERS }, STRICT),
};

/** The member `header` of a chat send. */
export const MessageHeaderSchema = Type.Union(
  TYPES.map((type) => HEADER_SCHEMAS[type]),
  { $id: "ChatHeader", description: "The value for the template's header. It takes precedence over the alias's." },
);

const MEMBERS: Readonly<Record<HeaderType, readonly string[]>> = {
  text: ["type", "text", "parameter_name"],
  image: ["type", "link", "id"],
  video: ["type", "link", "id"],
  document: ["type", "link", "id", "filename"],
  location: ["type", "latitude", "longitude", "name", "address"],
  product: ["type", "product_retailer_id", "catalog_id"],
};

/** Returns a sentence that says why the header `where` of a request is invalid; null if it is valid or absent. */
export function complaintAboutHeader(
  value: Json | undefined,
  where = "header",
  types: readonly HeaderType[] = TYPES,
): string | null {
  if (value === undefined) return null;
  if (!isJsonObject(value)) return `${where} must be an object with a type: one of ${types.join(", ")}`;
  const header = presentMembers(value);
  const type = types.find((known) => known === header["type"]);
  if (type === undefined) return `${where}.type must be one of ${types.join(", ")}`;
  const unknown = complaintAboutMembers(header, MEMBERS[type], `a header of the type ${type}`, `${where}.`);
  if (unknown !== null) return unknown;
  switch (type) {
    case "text":
      return complaintAboutText(header, where);
    case "location":
      return complaintAboutPlace(header, where);
    case "product":
      return complaintAboutProduct(header, where);
    default:
      return (
        complaintAboutSource(header, where) ??
        complaintAboutLine(header["filename"], FILENAME_CHARS_MAX, `${where}.filename`)
      );
  }
}

function complaintAboutText({ text, parameter_name: name }: JsonObject, where: string): string | null {
  if (text === undefined) return `${where}.text is required`;
  const complaint = complaintAbout(text, HEADER_TEXT_CHARS_MAX);
  if (complaint !== null) return `${where}.text ${complaint}`;
  if (name === undefined || (typeof name === "string" && PARAMETER_NAME.test(name))) return null;
  return `${where}.parameter_name must be ${PARAMETER_NAME_RULE}`;
}

/** Reads the header of a checked request or a queued payload; null if its form is unknown. */
export function readHeader(value: unknown): MessageHeader | null {
  if (!isJsonObject(value)) return null;
  const type = TYPES.find((known) => known === value["type"]);
  if (type === undefined) return null;
  if (type === "text") {
    const { text, parameter_name: name } = value;
    if (text === undefined || text === null) return null;
    return { type, text: writtenOut(text), ...(typeof name === "string" ? { parameter_name: name } : null) };
  }
  if (type === "location") {
    const place = readPlace(value);
    return place === null ? null : { type, ...place };
  }
  if (type === "product") {
    const product = readProduct(value);
    return product === null ? null : { type, ...product };
  }
  const { filename } = value;
  return { type, ...readSource(value), ...(typeof filename === "string" ? { filename } : null) };
}

/** Builds the header's parameter of a template message (WhatsApp Cloud API, "Template components"). */
export function headerParameter(header: MessageHeader): JsonObject {
  switch (header.type) {
    case "text": {
      const { type, text, parameter_name } = header;
      return { type, ...(parameter_name === undefined ? {} : { parameter_name }), text };
    }
    case "location": {
      const { type, ...place } = header;
      return { type, [type]: graphPlace(place) };
    }
    case "product": {
      const { type, ...product } = header;
      return { type, [type]: { ...product } };
    }
    default: {
      const { type, filename, ...source } = header;
      return { type, [type]: { ...source, ...(filename === undefined || type !== "document" ? {} : { filename }) } };
    }
  }
}
