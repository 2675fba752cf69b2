import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { PASS_STYLES, type PassStyle } from "../../../domain/wallet.ts";
import { enumOf, optional } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { DATE_STYLES, DETECTORS, NUMBER_STYLES, TEXT_ALIGNMENTS } from "./apple-fields.ts";
import { IMAGE_FILES } from "./apple-images.ts";
import { BARCODE_FORMATS, TRANSIT_TYPES } from "./apple-pass.ts";
import { partOf } from "./part-of.ts";
import { snakeCase } from "./readers.ts";

/** `pass_data` of an Apple pass in the API document, in one of the two accepted spellings. */

const Text = Type.String({ maxLength: walletLimits.passTextCharsMax });
const FilledText = Type.String({ minLength: 1, maxLength: walletLimits.passTextCharsMax });
const DateTime = Type.String({
  format: "date-time",
  description: "With time and zone, such as 2026-12-31T23:59:00+01:00.",
});
const AnyObject = Type.Record(Type.String(), Type.Unknown(), { description: "As Apple's pass.json has it." });

const colour = (otherwise: string) =>
  Type.String({ description: "`rgb(11, 31, 58)` or `#0B1F3A`.", default: otherwise });

const PassField = Type.Object(
  {
    key: Type.String({ minLength: 1, description: "Unique in the whole pass." }),
    value: Type.Union([Text, Type.Number()]),
    label: optional(Text),
    changeMessage: optional(
      Type.String({ description: "Shown when an update changes the value; `%@` stands for it." }),
    ),
    textAlignment: optional(enumOf(TEXT_ALIGNMENTS)),
    attributedValue: optional(Type.Union([Text, Type.Number()])),
    dataDetectorTypes: optional(Type.Array(enumOf(DETECTORS))),
    dateStyle: optional(enumOf(DATE_STYLES)),
    timeStyle: optional(enumOf(DATE_STYLES)),
    isRelative: optional(Type.Boolean()),
    ignoresTimeZone: optional(Type.Boolean()),
    numberStyle: optional(enumOf(NUMBER_STYLES)),
    currencyCode: optional(Type.String({ pattern: "^[A-Z]{3}$", description: "ISO 4217." })),
    row: optional(Type.Union([Type.Literal(0), Type.Literal(1)], { description: "Auxiliary, eventTicket only." })),
    semantics: optional(AnyObject),
  },
  { $id: "PassField" },
);

const PassBarcode = Type.Object(
  {
    message: FilledText,
    format: enumOf(BARCODE_FORMATS),
    messageEncoding: optional(Type.String({ description: "By default iso-8859-1, or utf-8 where it takes that." })),
    altText: optional(Text),
  },
  { $id: "PassBarcode" },
);

const PassLocation = Type.Object(
  {
    latitude: Type.Number({ minimum: -90, maximum: 90 }),
    longitude: Type.Number({ minimum: -180, maximum: 180 }),
    altitude: optional(Type.Number()),
    relevantText: optional(Text),
  },
  { $id: "PassLocation" },
);

const PassBeacon = Type.Object(
  {
    proximityUUID: FilledText,
    major: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
    minor: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
    relevantText: optional(Text),
  },
  { $id: "PassBeacon" },
);

const PassDates = Type.Object(
  {
    date: optional(DateTime),
    relevantDate: optional(DateTime),
    startDate: optional(DateTime),
    endDate: optional(DateTime),
  },
  { $id: "PassDates" },
);

const PassFields = Type.Array(PassField, { maxItems: walletLimits.passFieldsMax });

const SIZES: Readonly<Record<string, string>> = {
  icon_base64: "29x29; a placeholder where there is none",
  logo_base64: "160x50",
  strip_base64: "375x144",
  thumbnail_base64: "90x90",
};

const IMAGES: TProperties = Object.fromEntries(
  Array.from(IMAGE_FILES.keys(), snakeCase).map((name) => {
    const size = SIZES[name];
    return [name, Type.String({ description: `PNG in base64${size === undefined ? "" : `, ${size}`}.` })];
  }),
);

const REQUIRED: TProperties = {
  serial_number: Type.String({
    minLength: 1,
    maxLength: walletLimits.passSerialCharsMax,
    description: "Used once. An update cannot change it.",
  }),
  organization_name: FilledText,
  description: FilledText,
};

const OPTIONAL: TProperties = {
  style: Type.Unsafe<PassStyle>({ ...enumOf(PASS_STYLES), default: "generic" }),
  transit_type: Type.Unsafe<string>({
    ...enumOf(TRANSIT_TYPES, "boardingPass only."),
    default: "PKTransitTypeGeneric",
  }),
  background_color: colour("#0B1F3A"),
  foreground_color: colour("#FFFFFF"),
  label_color: colour("#FFFFFF"),
  logo_text: Text,
  barcodes: Type.Array(PassBarcode, { maxItems: 10 }),
  header_fields: PassFields,
  primary_fields: PassFields,
  secondary_fields: PassFields,
  auxiliary_fields: PassFields,
  back_fields: PassFields,
  ...IMAGES,
  relevant_date: DateTime,
  relevant_dates: Type.Array(PassDates, { maxItems: 50 }),
  expiration_date: DateTime,
  locations: Type.Array(PassLocation, { maxItems: 10 }),
  beacons: Type.Array(PassBeacon, { maxItems: 10 }),
  max_distance: Type.Number({ minimum: 0, maximum: 100_000_000 }),
  grouping_identifier: Type.String({ description: "eventTicket and boardingPass only." }),
  voided: Type.Boolean(),
  sharing_prohibited: Type.Boolean(),
  suppress_strip_shine: Type.Boolean(),
  app_launch_url: Type.String({ format: "uri", description: "Needs `associated_store_identifiers` beside it." }),
  associated_store_identifiers: Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 100 }),
  user_info: AnyObject,
  semantics: AnyObject,
  nfc: Type.Object({
    message: FilledText,
    encryptionPublicKey: optional(Text),
    requiresAuthentication: optional(Type.Boolean()),
  }),
  preferred_style_schemes: Type.Array(FilledText, { maxItems: 20 }),
};

/** All members of a pass. */
export const ApplePassData = Type.Object({ ...REQUIRED, ...membersAs(optional, OPTIONAL) }, { $id: "ApplePassData" });

/** Members laid over a template. */
export const ApplePassPart = Type.Object(partOf({ ...REQUIRED, ...OPTIONAL }), {
  $id: "ApplePassPart",
  description: "What is left out or null is the template's.",
});

/** Members laid over a pass. Required members cannot be removed. */
export const ApplePassChange = Type.Object(
  { ...membersAs(Type.Optional, REQUIRED), ...partOf(OPTIONAL) },
  { $id: "ApplePassChange", description: "What is left out stays as it is; null removes it." },
);

function membersAs(change: (member: TSchema) => TSchema, members: TProperties): TProperties {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, change(member)]));
}
