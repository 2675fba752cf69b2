import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { PASS_STYLES, type PassStyle } from "../../../domain/channels/wallet.ts";
import { enumSchema, oneLine, optional } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { FIELD_PLACES, PassFieldParts, PassFields } from "./apple-fields.ts";
import { IMAGE_FILES, PNG_PATTERN } from "./apple-images.ts";
import { LANGUAGE } from "./apple-languages.ts";
import { TRANSIT_TYPES } from "./apple-pass.ts";
import { PERSONALIZATION } from "./apple-personalization.ts";
import { TOP } from "./apple-top.ts";
import { text } from "./kinds.ts";
import { toPart } from "./part-of.ts";
import { snakeCase } from "./readers.ts";

/** `pass_data` of an Apple pass in the API document, in one of the two accepted spellings. */

const SIZES: Readonly<Record<string, string>> = {
  artwork_base64: "358x448, of poster passes",
  primary_logo_base64: "up to 126x30, of poster passes",
  secondary_logo_base64: "up to 135x12, of poster passes",
  icon_base64: "29x29; a placeholder where there is none",
  logo_base64: "160x50",
  strip_base64: "375x144",
  thumbnail_base64: "90x90",
  personalization_logo_base64: "150x40, of the sign-up form",
};

const IMAGES: TProperties = Object.fromEntries(
  Array.from(IMAGE_FILES.keys(), snakeCase).map((name) => {
    const size = SIZES[name];
    return [
      name,
      Type.String({ pattern: PNG_PATTERN, description: `PNG in base64${size === undefined ? "" : `, ${size}`}.` }),
    ];
  }),
);

const Localization = Type.Object(
  {
    strings: optional(Type.Record(Type.String(), text.schema, { description: "Text of the pass → text to show." })),
    ...membersAs(optional, IMAGES),
  },
  { $id: "PassLocalization" },
);

const MEMBERS = snakeNames(Object.fromEntries(Object.entries(TOP).map(([name, { schema }]) => [name, schema])));
const ALWAYS: readonly string[] = ["organization_name", "description"];
const membersThat = (areAlways: boolean): TProperties =>
  Object.fromEntries(Object.entries(MEMBERS).filter(([name]) => ALWAYS.includes(name) === areAlways));

const REQUIRED: TProperties = {
  serial_number: oneLine("Used once. An update cannot change it.", walletLimits.passSerialCharsMax, 1),
  ...membersThat(true),
};

const OPTIONAL: TProperties = {
  style: Type.Unsafe<PassStyle>({ ...enumSchema(PASS_STYLES), default: "generic" }),
  transit_type: Type.Unsafe<string>({
    ...enumSchema(TRANSIT_TYPES, "boardingPass only."),
    default: "PKTransitTypeGeneric",
  }),
  ...fieldPlaces(PassFields),
  ...IMAGES,
  ...membersThat(false),
  personalization: PERSONALIZATION.schema,
  localizations: Type.Record(Type.String({ pattern: LANGUAGE.source }), Type.Union([Localization, Type.Null()]), {
    additionalProperties: false,
    maxProperties: walletLimits.passLanguagesMax,
    description:
      "By language, such as `de` or `pt-BR`: what is shown in place of the pass's own texts and images. An update replaces what it " +
      `names of a language, and null takes a language off. At most ${walletLimits.passLanguagesMax}.`,
  }),
  extra: Type.Record(Type.String(), Type.Unknown(), {
    description:
      "Members of Apple's pass.json that are not known here, copied into it as they are; " +
      `at most ${walletLimits.passExtraCharsMax} characters.`,
  }),
};

/** All members of a pass. */
export const ApplePassData = Type.Object({ ...REQUIRED, ...membersAs(optional, OPTIONAL) }, { $id: "ApplePassData" });

/** Members laid over a template. */
export const ApplePassPart = Type.Object(toPart({ ...REQUIRED, ...OPTIONAL, ...fieldPlaces(PassFieldParts) }), {
  $id: "ApplePassPart",
  description: "Absent and null members are the template's.",
});

/** Members laid over a pass. Required members cannot be removed. */
export const ApplePassChange = Type.Object(
  { ...membersAs(Type.Optional, REQUIRED), ...toPart({ ...OPTIONAL, ...fieldPlaces(PassFieldParts) }) },
  { $id: "ApplePassChange", description: "Absent members stay unchanged; null removes one." },
);

function fieldPlaces(fields: TSchema): TProperties {
  return snakeNames(Object.fromEntries(FIELD_PLACES.map((place) => [place, fields])));
}

function membersAs(change: (member: TSchema) => TSchema, members: TProperties): TProperties {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, change(member)]));
}

function snakeNames(members: TProperties): TProperties {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [snakeCase(name), member]));
}
