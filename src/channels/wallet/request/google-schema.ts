import { type TProperties, Type } from "@sinclair/typebox";
import { GOOGLE_KINDS } from "../../../domain/channels/wallet.ts";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { OBJECT_ID, OBJECT_MEMBERS } from "./google-object-members.ts";
import { OTHERS_TOO, toSchemas } from "./kinds.ts";
import { toPart } from "./part-of.ts";

/** Google passes in the API document. Other members are sent to Google unchanged. */

const MEMBERS: TProperties = toSchemas(OBJECT_MEMBERS, Object.keys(OBJECT_MEMBERS));

const GooglePassObject = Type.Object(toPart(MEMBERS), {
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
    ...toPart(MEMBERS),
  },
  {
    $id: "GooglePassChange",
    ...OTHERS_TOO,
    description:
      "Members of the object stand in `object_data` or beside it. Absent members stay unchanged; null removes one. " +
      "The ids and the kind cannot change.",
  },
);
