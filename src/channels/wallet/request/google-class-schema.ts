import { type TProperties, Type } from "@sinclair/typebox";
import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { CLASS_ID } from "./accept-google-class.ts";
import { CLASS_MEMBERS, FURTHER_OF_CLASS, GIVEN_IN_PART, image, REQUIRED_OF_CLASS } from "./google-class-members.ts";
import { localized } from "./google-object-members.ts";
import { OTHERS_TOO, said, text, toSchemas } from "./kinds.ts";
import { toPart } from "./part-of.ts";

/** Google classes in the API document. Other members are sent to Google unchanged. */

/** Members by name, which mean the same in each kind that has them. */
const MEMBERS: TProperties = toSchemas(CLASS_MEMBERS, Object.keys(CLASS_MEMBERS));
/** The same where a change can give them in part. */
const IN_PARTS: TProperties = toSchemas(GIVEN_IN_PART, Object.keys(GIVEN_IN_PART));

const newId = Type.String({ pattern: CLASS_ID.source, description: "`<issuer_id>.<class_name>`." });
const sameId = optional(said(text, "As in the address.").schema);
const newReview = optional(Type.Unsafe<string>({ ...enumSchema(["DRAFT", "UNDER_REVIEW"]), default: "UNDER_REVIEW" }));
const review = enumSchema(
  ["DRAFT", "UNDER_REVIEW", "APPROVED", "REJECTED"],
  "All but DRAFT count as UNDER_REVIEW, so what was read can be given back.",
);

function newClass(kind: GoogleKind) {
  const required = pick(MEMBERS, REQUIRED_OF_CLASS[kind]);
  const further = toPart(pick(MEMBERS, FURTHER_OF_CLASS[kind]));
  const members = { id: newId, ...required, ...further, ...(kind === "generic" ? {} : { reviewStatus: newReview }) };
  return Type.Object(
    {
      class_type: Type.Literal(kind),
      class_data: Type.Object(members, { ...OTHERS_TOO, description: `${aClass(kind)}${unreviewed(kind)}` }),
    },
    { $id: `New${capitalizeKind(kind)}Class`, additionalProperties: false },
  );
}

function classUpdate(kind: GoogleKind) {
  const known = pick({ ...MEMBERS, ...IN_PARTS }, [...REQUIRED_OF_CLASS[kind], ...FURTHER_OF_CLASS[kind]]);
  const members = toPart(kind === "generic" ? known : { ...known, reviewStatus: review });
  const parts = Object.keys(known).filter((name) => Object.hasOwn(IN_PARTS, name) || name === "dateTime");
  const kept =
    parts.length === 0 ? "" : ` ${parts.map((name) => `\`${name}\``).join(", ")} keep the members that are left out.`;
  return Type.Object(
    {
      class_type: Type.Literal(kind),
      class_data: Type.Object(
        { id: sameId, ...members },
        { ...OTHERS_TOO, description: `The changes. ${aClass(kind)}${unreviewed(kind)}${kept}` },
      ),
    },
    { $id: `${capitalizeKind(kind)}ClassUpdate`, additionalProperties: false },
  );
}

function pick(members: TProperties, names: readonly string[]): TProperties {
  return Object.fromEntries(Object.entries(members).filter(([name]) => names.includes(name)));
}

function capitalizeKind(kind: GoogleKind): string {
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

function aClass(kind: GoogleKind): string {
  return `${/^[AEIOU]/.test(capitalizeKind(kind)) ? "An" : "A"} \`${capitalizeKind(kind)}Class\` of Google's REST API.`;
}

function unreviewed(kind: GoogleKind): string {
  return kind === "generic" ? " It has no `reviewStatus`." : "";
}

/** The body of `POST /v1/google/classes`. */
export const NewGoogleClass = Type.Union(
  [
    newClass("eventTicket"),
    newClass("generic"),
    newClass("loyalty"),
    newClass("offer"),
    newClass("giftCard"),
    newClass("transit"),
    newClass("flight"),
  ],
  { $id: "NewGoogleClass" },
);

/** The body of `PUT /v1/google/classes/{id}`. */
export const GoogleClassUpdate = Type.Union(
  [
    classUpdate("eventTicket"),
    classUpdate("generic"),
    classUpdate("loyalty"),
    classUpdate("offer"),
    classUpdate("giftCard"),
    classUpdate("transit"),
    classUpdate("flight"),
  ],
  { $id: "GoogleClassUpdate" },
);

/** A class as Google returns it, unchecked: its known members, and any others. */
export const GoogleClass = Type.Unsafe<JsonObject>(
  Type.Object(
    {
      id: Type.String(),
      issuerName: Type.Optional(Type.String()),
      eventName: Type.Optional(localized.schema),
      venue: Type.Optional(
        Type.Object({ name: Type.Optional(localized.schema), address: Type.Optional(localized.schema) }, OTHERS_TOO),
      ),
      dateTime: Type.Optional(
        Type.Object(
          {
            doorsOpen: Type.Optional(Type.String()),
            start: Type.Optional(Type.String()),
            end: Type.Optional(Type.String()),
          },
          OTHERS_TOO,
        ),
      ),
      hexBackgroundColor: Type.Optional(Type.String()),
      logo: Type.Optional(image.schema),
      heroImage: Type.Optional(image.schema),
      reviewStatus: Type.Optional(Type.String()),
    },
    {
      $id: "GoogleClass",
      ...OTHERS_TOO,
      description: "A class of Google's REST API, such as an `EventTicketClass`.",
    },
  ),
);
