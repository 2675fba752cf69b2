import { type TProperties, Type } from "@sinclair/typebox";
import type { JsonObject } from "../../../domain/json.ts";
import { GOOGLE_KINDS } from "../../../domain/wallet.ts";
import { enumOf, optional } from "../../../http/schemas.ts";
import { CLASS_ID, DATE_TIME } from "./accept-google-class.ts";
import { ITEMS_MAX, MODULE_ID, OBJECT_ID, OBJECT_STATES } from "./google-pass.ts";
import { partOf } from "./part-of.ts";

/** Google passes and classes in the API document. Other members are sent to Google unchanged. */

const OTHERS_TOO = { additionalProperties: true } as const;

const LocalizedText = Type.Object(
  { defaultValue: Type.Object({ language: Type.String(), value: Type.String() }) },
  { $id: "LocalizedText", ...OTHERS_TOO },
);
const Colour = Type.String({ pattern: "^#[0-9A-Fa-f]{6}$", description: "Such as #0B1F3A." });
const Links = Type.Array(Type.String({ pattern: OBJECT_ID.source }), { maxItems: ITEMS_MAX });

const TextModule = Type.Object(
  {
    id: optional(Type.String({ pattern: MODULE_ID.source, description: "Unique in the object." })),
    header: optional(Type.String()),
    body: optional(Type.String()),
  },
  OTHERS_TOO,
);

const OBJECT_MEMBERS: TProperties = {
  state: enumOf(OBJECT_STATES),
  ticketHolderName: Type.String(),
  ticketNumber: Type.String(),
  ticketType: LocalizedText,
  cardTitle: LocalizedText,
  header: LocalizedText,
  subheader: LocalizedText,
  hexBackgroundColor: Colour,
  barcode: Type.Object({ type: Type.String(), value: Type.String() }, OTHERS_TOO),
  textModulesData: Type.Array(TextModule, { maxItems: ITEMS_MAX }),
  linkedObjectIds: Links,
  linkedOfferIds: Links,
};

const GooglePassObject = Type.Object(partOf(OBJECT_MEMBERS), {
  $id: "GooglePassObject",
  ...OTHERS_TOO,
  description:
    "The object as Google's REST API takes it. `id` and `classId` are those above, `state` is ACTIVE by default, and a " +
    "generic object without `cardTitle` or `header` gets the tenant's name there.",
});

const classId = Type.String({
  pattern: OBJECT_ID.source,
  description: "`<issuer_id>.<class_name>`, not another tenant's.",
});
const classType = optional(enumOf([...GOOGLE_KINDS, ""], "Empty counts as absent."));
const objectId = Type.String({ pattern: OBJECT_ID.source, description: "`<issuer_id>.<object_name>`, used once." });

/** All members of a pass. */
export const GooglePassData = Type.Object(
  { class_id: classId, class_type: classType, object_id: objectId, object_data: GooglePassObject },
  { $id: "GooglePassData" },
);

/** Members laid over a template. */
export const GooglePassPart = Type.Object(
  {
    class_id: optional(classId),
    class_type: classType,
    object_id: optional(objectId),
    object_data: optional(GooglePassObject),
  },
  {
    $id: "GooglePassPart",
    description: "What is left out or null is the template's; in `object_data`, null removes what the template says.",
  },
);

/** Members laid over a pass. */
export const GooglePassChange = Type.Object(
  {
    class_id: Type.Optional(classId),
    class_type: classType,
    object_id: Type.Optional(objectId),
    object_data: optional(GooglePassObject),
    ...partOf(OBJECT_MEMBERS),
  },
  {
    $id: "GooglePassChange",
    ...OTHERS_TOO,
    description:
      "Members of the object stand in `object_data` or beside it. What is left out stays as it is; null removes it. " +
      "The ids and the kind cannot change.",
  },
);

const Image = Type.Object(
  { sourceUri: Type.Object({ uri: Type.String({ format: "uri" }) }, OTHERS_TOO) },
  { $id: "GoogleImage", ...OTHERS_TOO },
);
const ClassTime = Type.String({
  pattern: DATE_TIME.source,
  description: "Without an offset it is the venue's own time.",
});

const newId = Type.String({ pattern: CLASS_ID.source, description: "`<issuer_id>.<class_name>`." });
const sameId = optional(Type.String({ description: "As in the address." }));
const issuerName = Type.String({ minLength: 1 });
const design: TProperties = {
  venue: Type.Object({ name: LocalizedText, address: LocalizedText }, OTHERS_TOO),
  dateTime: Type.Object(
    { doorsOpen: optional(ClassTime), start: optional(ClassTime), end: optional(ClassTime) },
    OTHERS_TOO,
  ),
  hexBackgroundColor: Colour,
  logo: Image,
  heroImage: Image,
};
const GENERIC = "A `GenericClass` of Google's REST API. It has no `reviewStatus`.";

const NewEventTicketClass = Type.Object(
  {
    class_type: Type.Literal("eventTicket"),
    class_data: Type.Object(
      {
        id: newId,
        issuerName,
        eventName: LocalizedText,
        ...partOf(design),
        reviewStatus: optional(Type.Unsafe<string>({ ...enumOf(["DRAFT", "UNDER_REVIEW"]), default: "UNDER_REVIEW" })),
      },
      { ...OTHERS_TOO, description: "An `EventTicketClass` of Google's REST API." },
    ),
  },
  { $id: "NewEventTicketClass", additionalProperties: false },
);

const NewGenericClass = Type.Object(
  {
    class_type: Type.Literal("generic"),
    class_data: Type.Object({ id: newId }, { ...OTHERS_TOO, description: GENERIC }),
  },
  { $id: "NewGenericClass", additionalProperties: false },
);

/** The body of `POST /v1/google/classes`. */
export const NewGoogleClass = Type.Union([NewEventTicketClass, NewGenericClass], { $id: "NewGoogleClass" });

const EventTicketClassUpdate = Type.Object(
  {
    class_type: Type.Literal("eventTicket"),
    class_data: Type.Object(
      {
        id: sameId,
        ...partOf({
          issuerName,
          eventName: LocalizedText,
          ...design,
          venue: Type.Object({ name: optional(LocalizedText), address: optional(LocalizedText) }, OTHERS_TOO),
          reviewStatus: enumOf(
            ["DRAFT", "UNDER_REVIEW", "APPROVED", "REJECTED"],
            "All but DRAFT count as UNDER_REVIEW, so what was read can be given back.",
          ),
        }),
      },
      { ...OTHERS_TOO, description: "What changes. `venue` and `dateTime` keep the members that are left out." },
    ),
  },
  { $id: "EventTicketClassUpdate", additionalProperties: false },
);

const GenericClassUpdate = Type.Object(
  {
    class_type: Type.Literal("generic"),
    class_data: Type.Object({ id: sameId }, { ...OTHERS_TOO, description: `What changes. ${GENERIC}` }),
  },
  { $id: "GenericClassUpdate", additionalProperties: false },
);

/** The body of `PUT /v1/google/classes/{id}`. */
export const GoogleClassUpdate = Type.Union([EventTicketClassUpdate, GenericClassUpdate], { $id: "GoogleClassUpdate" });

/** A class as Google returns it, unchecked: its known members, and any others. */
export const GoogleClass = Type.Unsafe<JsonObject>(
  Type.Object(
    {
      id: Type.String(),
      issuerName: Type.Optional(Type.String()),
      eventName: Type.Optional(LocalizedText),
      venue: Type.Optional(
        Type.Object({ name: Type.Optional(LocalizedText), address: Type.Optional(LocalizedText) }, OTHERS_TOO),
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
      logo: Type.Optional(Image),
      heroImage: Type.Optional(Image),
      reviewStatus: Type.Optional(Type.String()),
    },
    {
      $id: "GoogleClass",
      ...OTHERS_TOO,
      description: "An `EventTicketClass` or a `GenericClass` of Google's REST API.",
    },
  ),
);
