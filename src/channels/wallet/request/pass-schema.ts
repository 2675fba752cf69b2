import { Type } from "@sinclair/typebox";
import { NOTIFICATION_KINDS, PASS_TYPES } from "../../../domain/channels/wallet.ts";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { NOTE_CHARS_MAX } from "./accept-pass-update.ts";
import { ApplePassChange, ApplePassData, ApplePassPart } from "./apple-schema.ts";
import { GooglePassChange, GooglePassData, GooglePassPart } from "./google-schema.ts";

const STRICT = { additionalProperties: false } as const;

const noTemplate = Type.Optional(Type.Null({ description: "Counts as absent." }));

const ApplePassRequest = Type.Object(
  { template_id: noTemplate, pass_type: Type.Literal("apple"), pass_data: ApplePassData },
  { $id: "ApplePassRequest", ...STRICT },
);

const GooglePassRequest = Type.Object(
  { template_id: noTemplate, pass_type: Type.Literal("google"), pass_data: GooglePassData },
  { $id: "GooglePassRequest", ...STRICT },
);

export const TemplatePassRequest = Type.Object(
  {
    template_id: Type.String({ description: "Slug of a registered wallet template." }),
    pass_type: optional(enumSchema(PASS_TYPES, "The template's, or left out.")),
    pass_data: optional(
      Type.Union([ApplePassPart, GooglePassPart], {
        description: "The members that the template leaves open, or that differ from it.",
      }),
    ),
  },
  { $id: "TemplatePassRequest", ...STRICT },
);

/** The body of `POST /v1/send/wallet` and `POST /v1/passes/create`. */
export const PassRequest = Type.Union([ApplePassRequest, GooglePassRequest, TemplatePassRequest], {
  $id: "PassRequest",
});

/** The member `pass` of a message: the same body, but no time of its own. */
export const CarriedPass = Type.Union(
  [
    { ...ApplePassRequest, $id: "AppleCarriedPass" },
    { ...GooglePassRequest, $id: "GoogleCarriedPass" },
    { ...TemplatePassRequest, $id: "TemplateCarriedPass" },
  ],
  { $id: "CarriedPass" },
);

/** The body of `PUT /v1/passes/{id}`. */
export const PassUpdate = Type.Object(
  {
    pass_data: Type.Union([ApplePassChange, GooglePassChange], {
      description: "The changes, in the form of its creation.",
    }),
    notify_message: optional(
      Type.String({ maxLength: NOTE_CHARS_MAX, description: "Google: shown to the pass's holders." }),
    ),
    notification_kind: optional(enumSchema(NOTIFICATION_KINDS, "Why the pass changes; kept in its history.")),
  },
  { $id: "PassUpdate" },
);
