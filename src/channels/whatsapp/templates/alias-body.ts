import { Type } from "@sinclair/typebox";
import { HEADER_MEDIA_TYPES, LANGUAGE_CODE } from "../../../domain/channels/whatsapp.ts";
import { limits } from "../../../domain/limits.ts";
import { NO_CONTROL_PATTERN } from "../../../domain/texts/control-characters.ts";
import { NOT_BLANK } from "../../../http/schemas.ts";
import { chatLimits } from "../limits.ts";
import { LINK_PATTERN } from "../media.ts";

const STRICT = { additionalProperties: false } as const;

const header = Type.Object(
  {
    type: Type.Union(
      HEADER_MEDIA_TYPES.map((type) => Type.Literal(type)),
      { description: `one of ${HEADER_MEDIA_TYPES.join(", ")}` },
    ),
    link: Type.Optional(
      Type.String({
        maxLength: limits.linkUrlBytesMax,
        pattern: LINK_PATTERN,
        description: "an https address that the provider can fetch the media from; either this or id",
      }),
    ),
    id: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9_-]{1,100}$",
        description: "the provider's id of uploaded media; either this or link",
      }),
    ),
    filename: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 240,
        pattern: NO_CONTROL_PATTERN,
        description: "1 to 240 characters without control characters, for documents only",
      }),
    ),
  },
  {
    ...STRICT,
    description: "an object with the media's type and its link or id",
    // For the API document: the endpoint itself reports violations in its own words.
    allOf: [
      { oneOf: [{ required: ["link"] }, { required: ["id"] }] },
      { anyOf: [{ properties: { type: { const: "document" } } }, { not: { required: ["filename"] } }] },
    ],
  },
);

/** Body of `PUT /dash/api/tenants/{id}/aliases/{alias}`. */
export const aliasBody = Type.Object(
  {
    meta_name: Type.String({
      minLength: 1,
      maxLength: chatLimits.chatTemplateNameCharsMax,
      pattern: NO_CONTROL_PATTERN,
      description: `the provider's name of the template, 1 to ${chatLimits.chatTemplateNameCharsMax} characters`,
      ...NOT_BLANK,
    }),
    language_code: Type.Optional(
      Type.Union([Type.String({ pattern: LANGUAGE_CODE.source }), Type.Null()], {
        description: "the code of the template's language, such as es or en_US, or null",
      }),
    ),
    params: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 200,
          pattern: NO_CONTROL_PATTERN,
          description: "1 to 200 characters",
          ...NOT_BLANK,
        }),
        {
          maxItems: chatLimits.chatParamsMax,
          description: `what each position holds: at most ${chatLimits.chatParamsMax} texts`,
        },
      ),
    ),
    header: Type.Optional(
      Type.Union([header, Type.Null()], {
        description: "the media of the template's header {type, link | id, filename?}, or null",
      }),
    ),
  },
  {
    ...STRICT,
    examples: [
      {
        meta_name: "order_shipped_hx0123456789abcdef",
        language_code: "es",
        params: ["customer's name", "order number"],
        header: { type: "image", link: "https://api.example.com/parcel.png" },
      },
    ],
  },
);
