import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { PASS_STYLES, type PassStyle } from "../../../domain/wallet.ts";
import { enumOf, optional } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { DATE_STYLES, DETECTORS, NUMBER_STYLES, TEXT_ALIGNMENTS } from "./apple-fields.ts";
import { IMAGE_FILES } from "./apple-images.ts";
import { TRANSIT_TYPES } from "./apple-pass.ts";
import { PERSONALIZATION_FIELDS } from "./apple-personalization.ts";
import { BARCODE_FORMATS, EVENT_CONTACTS, EVENT_LINKS, PLAIN_FLAGS, PLAIN_TEXTS, TRANSIT_LINKS } from "./apple-top.ts";
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

const Colour = Type.String({ description: "`rgb(11, 31, 58)` or `#0B1F3A`." });

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

const Link = Type.String({ format: "uri" });
const StoreIds = Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 100 });

const FeaturedAction = Type.Object(
  {
    identifier: FilledText,
    type: Type.String({ minLength: 1, description: "Such as `viewSchedule`, `call`, `shop` or `place`." }),
    url: optional(Link),
    placeIdentifier: optional(FilledText),
  },
  { $id: "PassFeaturedAction", description: "With either `url` or `placeIdentifier`." },
);

const PassFields = Type.Array(PassField, { maxItems: walletLimits.passFieldsMax });

const UpcomingImage = Type.Object(
  {
    URLs: optional(
      Type.Array(
        Type.Object({
          URL: Link,
          SHA256: Type.String({ pattern: "^[0-9a-fA-F]{64}$" }),
          scale: optional(Type.Integer({ minimum: 1, maximum: 3 })),
          size: optional(Type.Integer({ minimum: 0, maximum: 2 * 1024 * 1024 })),
        }),
        { maxItems: 10 },
      ),
    ),
    reuseExisting: optional(Type.Boolean()),
  },
  { $id: "PassUpcomingImage" },
);

const UpcomingPass = Type.Object(
  {
    identifier: FilledText,
    name: FilledText,
    type: Type.String({ minLength: 1, description: "`event`." }),
    isActive: optional(Type.Boolean()),
    dateInformation: optional(
      Type.Object({
        date: optional(DateTime),
        ignoreTimeComponents: optional(Type.Boolean()),
        isAllDay: optional(Type.Boolean()),
        isUnannounced: optional(Type.Boolean()),
        isUndetermined: optional(Type.Boolean()),
        timeZone: optional(FilledText),
      }),
    ),
    additionalInfoFields: optional(PassFields),
    backFields: optional(PassFields),
    auxiliaryStoreIdentifiers: optional(StoreIds),
    images: optional(Type.Object({ headerImage: optional(UpcomingImage), venueMap: optional(UpcomingImage) })),
    semantics: optional(AnyObject),
    URLs: optional(Type.Object(membersAs(optional, { ...all(EVENT_LINKS, Link), ...all(EVENT_CONTACTS, Text) }))),
  },
  { $id: "PassUpcoming" },
);

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
    return [name, Type.String({ description: `PNG in base64${size === undefined ? "" : `, ${size}`}.` })];
  }),
);

const Localization = Type.Object(
  {
    strings: optional(Type.Record(Type.String(), Type.String(), { description: "Text of the pass → text to show." })),
    ...membersAs(optional, IMAGES),
  },
  { $id: "PassLocalization" },
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
  strip_color: Colour,
  footer_background_color: Colour,
  barcodes: Type.Array(PassBarcode, { maxItems: 10 }),
  header_fields: PassFields,
  primary_fields: PassFields,
  secondary_fields: PassFields,
  auxiliary_fields: PassFields,
  back_fields: PassFields,
  additional_info_fields: PassFields,
  footer_fields: PassFields,
  ...IMAGES,
  relevant_date: DateTime,
  relevant_dates: Type.Array(PassDates, { maxItems: 50 }),
  expiration_date: DateTime,
  locations: Type.Array(PassLocation, { maxItems: 10 }),
  beacons: Type.Array(PassBeacon, { maxItems: 10 }),
  max_distance: Type.Number({ minimum: 0, maximum: 100_000_000 }),
  grouping_identifier: Type.String({ description: "eventTicket and boardingPass only." }),
  ...snakeNames(all(PLAIN_FLAGS, Type.Boolean())),
  ...snakeNames(all(PLAIN_TEXTS, Text)),
  ...snakeNames(all([...EVENT_LINKS, ...TRANSIT_LINKS], Link)),
  app_launch_url: Type.String({ format: "uri", description: "Needs `associated_store_identifiers` beside it." }),
  associated_store_identifiers: StoreIds,
  auxiliary_store_identifiers: StoreIds,
  user_info: AnyObject,
  semantics: AnyObject,
  nfc: Type.Object(
    {
      message: FilledText,
      encryptionPublicKey: Type.String({ description: "Base64 of the SubjectPublicKeyInfo of an ECDH key on P-256." }),
      requiresAuthentication: optional(Type.Boolean()),
    },
    { description: "Only with a certificate that Apple issued for NFC." },
  ),
  personalization: Type.Object(
    {
      requiredPersonalizationFields: Type.Array(
        Type.String({
          pattern: "^PKPassPersonalizationField[A-Za-z]+$",
          description: PERSONALIZATION_FIELDS.join(", "),
        }),
        { minItems: 1, maxItems: 20, uniqueItems: true },
      ),
      description: FilledText,
      termsAndConditions: optional(Text),
    },
    {
      description:
        "Wallet asks the holder for these before it adds the pass, and the webhook event `pass.personalized` has what was entered. For a " +
        "storeCard with `nfc` and a `personalization_logo` of 2x or 3x.",
    },
  ),
  preferred_style_schemes: Type.Array(FilledText, {
    maxItems: 20,
    description: "Such as `posterEventTicket` for an eventTicket, or `semanticBoardingPass` for a boardingPass.",
  }),
  featured_actions: Type.Array(FeaturedAction, { maxItems: 2 }),
  upcoming_pass_information: Type.Array(UpcomingPass, { maxItems: walletLimits.passUpcomingMax }),
  localizations: Type.Record(Type.String(), Type.Union([Localization, Type.Null()]), {
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

function all(names: readonly string[], member: TSchema): TProperties {
  return Object.fromEntries(names.map((name) => [name, member]));
}

function snakeNames(members: TProperties): TProperties {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [snakeCase(name), member]));
}
