import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { optional } from "../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../http/sending/acceptance.ts";
import { INTERACTIVE_KINDS, type InteractiveKind } from "./interactive-kinds.ts";
import { AnyObject, complaintAboutRaw } from "./raw.ts";
import {
  complaintAboutHeader,
  HEADER_SCHEMAS,
  type HeaderType,
  headerParameter,
  readHeader,
} from "./templates/header.ts";
import { complaintAboutLine, complaintAboutLines, fillingValue, line, lines } from "./templates/value-rules.ts";

const WHERE = "interactive";
const BODY_CHARS_MAX = 1_024;
const FOOTER_CHARS_MAX = 60;
const TYPE = /^[a-z][a-z_]{0,63}$/;
const ANY_HEADER: readonly HeaderType[] = ["text", "image", "video", "document"];
/** Any kind that this release does not know. */
const OTHER = { headers: ANY_HEADER, needsBody: false, bodyCharsMax: 4_096 } as const;

const HeaderText = Type.Object({ type: Type.Literal("text"), text: fillingValue(60) }, { additionalProperties: false });

function headerSchema(types: readonly HeaderType[]): TSchema {
  const schemas = types.map((type) => (type === "text" ? HeaderText : HEADER_SCHEMAS[type]));
  return schemas.length === 1 && schemas[0] !== undefined ? schemas[0] : Type.Union(schemas);
}

function buildSchema(
  type: TSchema,
  members: TProperties,
  around: Omit<InteractiveKind, "members" | "action" | "complaint">,
) {
  const { headers, needsHeader = false, needsBody, bodyCharsMax = BODY_CHARS_MAX } = around;
  const header = headers.length === 0 ? null : headerSchema(headers);
  return Type.Object(
    {
      type,
      ...(header !== null && { header: needsHeader ? header : optional(header) }),
      body: needsBody ? lines(bodyCharsMax) : optional(lines(bodyCharsMax)),
      footer: optional(line(FOOTER_CHARS_MAX)),
      ...members,
    },
    { additionalProperties: false },
  );
}

/** The member `interactive` of a chat send. */
export const InteractiveSchema = Type.Union(
  [
    ...Object.entries(INTERACTIVE_KINDS).map(([type, kind]) => buildSchema(Type.Literal(type), kind.members, kind)),
    buildSchema(
      Type.String({ pattern: TYPE.source, description: "A type of the provider's." }),
      { action: AnyObject("Its action, which reaches the provider unchanged: up to 16 KiB.") },
      OTHER,
    ),
  ],
  { $id: "ChatInteractive", description: "A message with buttons, a list, a link, a flow or products." },
);

/** Returns a sentence that says why a request's `interactive` is invalid, or null. */
export function complaintAboutInteractive(value: Json): string | null {
  if (!isJsonObject(value)) return `${WHERE} must be an object with a type`;
  const given = presentMembers(value);
  const { type } = given;
  const kind = findKind(given);
  const known = Object.keys(INTERACTIVE_KINDS).join(", ");
  if (typeof type !== "string" || !TYPE.test(type) || (kind === null && given["action"] === undefined)) {
    return `${WHERE}.type must be one of ${known}, or another of the provider's beside action`;
  }
  const around = kind ?? OTHER;
  const own = kind === null ? ["action"] : Object.keys(kind.members);
  const all = ["type", ...(around.headers.length > 0 ? ["header"] : []), "body", "footer", ...own];
  const unknown = complaintAboutMembers(given, all, `an interactive message of the type ${type}`, `${WHERE}.`);
  if (unknown !== null) return unknown;
  const complaint = complaintAround(given, around);
  if (complaint !== null) return complaint;
  if (kind !== null) return kind.complaint(given, WHERE);
  const { action } = given;
  return isJsonObject(action) ? complaintAboutRaw(action, `${WHERE}.action`) : `${WHERE}.action must be an object`;
}

function complaintAround(
  { header, body, footer }: JsonObject,
  around: Pick<InteractiveKind, "headers" | "needsHeader" | "needsBody" | "bodyCharsMax">,
): string | null {
  if (header === undefined && around.needsHeader === true) return `${WHERE}.header is required`;
  if (body === undefined && around.needsBody) return `${WHERE}.body is required`;
  if (isJsonObject(header) && header["type"] === "text" && "parameter_name" in header) {
    return `${WHERE}.header.parameter_name is for templates`;
  }
  return (
    complaintAboutHeader(header, `${WHERE}.header`, around.headers) ??
    (body === undefined ? null : complaintAboutLines(body, around.bodyCharsMax ?? BODY_CHARS_MAX, `${WHERE}.body`)) ??
    complaintAboutLine(footer, FOOTER_CHARS_MAX, `${WHERE}.footer`)
  );
}

/** Finds the kind; null if the body contains the provider's action itself. */
function findKind({ type, action }: JsonObject): InteractiveKind | null {
  if (typeof type !== "string" || action !== undefined) return null;
  return Object.hasOwn(INTERACTIVE_KINDS, type) ? (INTERACTIVE_KINDS[type] ?? null) : null;
}

/** Converts a checked `interactive` to the provider's form (WhatsApp Cloud API, "Interactive messages"). */
export function graphInteractive(value: JsonObject): JsonObject {
  const given = presentMembers(value);
  const { type = "", body, footer, action = {} } = given;
  const header = readHeader(given["header"]);
  return {
    type,
    ...(header === null ? null : { header: headerParameter(header) }),
    ...(body === undefined ? null : { body: { text: body } }),
    ...(footer === undefined ? null : { footer: { text: footer } }),
    action: findKind(given)?.action(given) ?? action,
  };
}
