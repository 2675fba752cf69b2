import { Type } from "@sinclair/typebox";
import { SUPPRESSION_REASONS } from "../domain/job.ts";

/** Body of `PUT /dash/api/tenants/{id}/suppressions/{address}`. */
export const suppressionBody = Type.Object(
  {
    reason: Type.Optional(
      Type.Union(
        SUPPRESSION_REASONS.map((reason) => Type.Literal(reason)),
        { description: `one of ${SUPPRESSION_REASONS.join(", ")}; by default manual` },
      ),
    ),
  },
  { additionalProperties: false, examples: [{ reason: "manual" }] },
);
