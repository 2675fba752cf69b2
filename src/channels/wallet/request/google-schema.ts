import { type TProperties, Type } from "@sinclair/typebox";
import { GOOGLE_KINDS } from "../../../domain/channels/wallet.ts";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { ITEMS_MAX, MODULE_ID, OBJECT_ID, OBJECT_STATES } from "./google-pass.ts";
import { toPart } from "./part-of.ts";

/** Google passes in the API document. Other members are sent to Google unchanged. */

export const OTHERS_TOO = { additionalProperties: true } as const;

export const LocalizedText = Type.Object(
  { defaultValue: Type.Object({ language: Type.String(), value: Type.String() }) },
  { $id: "LocalizedText", ...OTHERS_TOO },
);
export const Colour = Type.String({ pattern: "^#[0-9A-Fa-f]{6}$", description: "Such as #0B1F3A." });
const Links = Type.Array(Type.String({ pattern: OBJECT_ID.source }), { maxItems: ITEMS_MAX });

const TextModule = Type.Object(
  {
    id: optional(Type.String({ pattern: MODULE_ID.source, description: "Unique in the object." })),
    header: optional(Type.String()),
    body: optional(Type.String()),
  },
  OTHERS_TOO,
);

const Money = Type.Object(
  {
    micros: Type.Union([Type.String({ pattern: "^-?[0-9]{1,19}$" }), Type.Integer()], {
      description: "The amount in millionths: 12.50 is 12500000.",
    }),
    currencyCode: Type.String({ minLength: 1 }),
  },
  { $id: "GoogleMoney", ...OTHERS_TOO },
);
const Points = Type.Object(
  {
    balance: Type.Object(
      {
        string: optional(Type.String()),
        int: optional(Type.Integer()),
        double: optional(Type.Number()),
        money: optional(Money),
      },
      { ...OTHERS_TOO, description: "In one of these forms." },
    ),
  },
  { $id: "GooglePoints", ...OTHERS_TOO },
);

const OBJECT_MEMBERS: TProperties = {
  state: enumSchema(OBJECT_STATES),
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
  loyaltyPoints: Points,
  secondaryLoyaltyPoints: Points,
  cardNumber: Type.String({ minLength: 1, description: "Required of a giftCard." }),
  balance: Money,
  tripType: Type.String({ minLength: 1, description: "Required of a transit pass, such as ONE_WAY or ROUND_TRIP." }),
  passengerName: Type.String({ minLength: 1, description: "Required of a flight." }),
  reservationInfo: Type.Object({}, { ...OTHERS_TOO, description: "Required of a flight." }),
};

const GooglePassObject = Type.Object(toPart(OBJECT_MEMBERS), {
  $id: "GooglePassObject",
  ...OTHERS_TOO,
  description:
    "The object as Google's REST API takes it. `id` and `classId` are those above, `state` is ACTIVE by default, and a " +
    "generic object without `cardTitle` or `header` gets the tenant's name there. A transit pass has `ticketLeg` or " +
    "`ticketLegs`, if it has a journey.",
});

const classId = Type.String({
  pattern: OBJECT_ID.source,
  description: "`<issuer_id>.<class_name>`, not another tenant's.",
});
const classType = optional(enumSchema([...GOOGLE_KINDS, ""], "Empty counts as absent."));
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
    description: "Absent and null members are the template's; in `object_data`, null removes the template's value.",
  },
);

/** Members laid over a pass. */
export const GooglePassChange = Type.Object(
  {
    class_id: Type.Optional(classId),
    class_type: classType,
    object_id: Type.Optional(objectId),
    object_data: optional(GooglePassObject),
    ...toPart(OBJECT_MEMBERS),
  },
  {
    $id: "GooglePassChange",
    ...OTHERS_TOO,
    description:
      "Members of the object stand in `object_data` or beside it. Absent members stay unchanged; null removes one. " +
      "The ids and the kind cannot change.",
  },
);
