import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { type AcceptedPass, acceptPass } from "../../../src/channels/wallet/request/accept-pass.ts";
import { acceptPassUpdate, updatedContent } from "../../../src/channels/wallet/request/accept-pass-update.ts";
import { FIELD_PLACES } from "../../../src/channels/wallet/request/apple-fields.ts";
import { IMAGE_FILES } from "../../../src/channels/wallet/request/apple-images.ts";
import { APPLE_MEMBERS } from "../../../src/channels/wallet/request/apple-pass.ts";
import { BARCODE_FORMATS } from "../../../src/channels/wallet/request/apple-top.ts";
import { type Checked, Fault, snakeCase } from "../../../src/channels/wallet/request/readers.ts";
import { type AppleContent, PASS_STYLES, type PassContent } from "../../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import schema from "./apple-pass.schema.json";
import { PASS_BUILDER, PASS_BUILDER_BARCODES, PASS_BUILDER_FIELDS } from "./apple-pass-builder.ts";

const REQUIRED = { serial_number: "s", organization_name: "Acme", description: "A pass" };
const CONTEXT = { templates: new Map(), title: "Acme", issuerId: "33", kind: "generic" } as const;
const apple = (members: JsonObject) =>
  acceptPass({ pass_type: "apple", pass_data: { ...REQUIRED, ...members } }, CONTEXT);

function getContent(checked: Checked<AcceptedPass | PassContent>): AppleContent {
  if (checked instanceof Fault) throw new Error(checked.message);
  const content = "content" in checked ? checked.content : checked;
  if (content.type !== "apple") throw new Error("not one of Apple's");
  return content;
}

/** The content after an update. */
function changed(content: AppleContent, pass_data: JsonObject): Checked<PassContent> {
  const update = acceptPassUpdate({ pass_data });
  if (update instanceof Fault) return update;
  const pass = {
    passId: "p",
    tenantId: "acme",
    serial: "s",
    state: "ready",
    version: 1,
    content,
    passTypeId: "pass.test.acme",
    authenticationToken: "t",
    jobId: "j",
  } as const;
  return updatedContent(update, pass, "Acme");
}

const KEY = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  .publicKey.export({ type: "spki", format: "der" })
  .toString("base64");
const LOGO = Buffer.concat([
  Buffer.from("89504e470d0a1a0a0000000d49484452000001c200000078", "hex"),
  Buffer.alloc(32, 1),
  Buffer.from("0000000049454e44ae426082", "hex"),
]).toString("base64");
const ALL_ONE = "https://example.com/there";
/** Each member that iOS 18 to 27 added, with a value that a phone accepts. */
const NEWER: JsonObject = {
  ...Object.fromEntries(
    APPLE_MEMBERS.filter((name) => /[a-z](?:URL|Website)$/.test(name)).map((name) => [name, ALL_ONE]),
  ),
  preferredStyleSchemes: ["posterEventTicket", "eventTicket"],
  eventLogoText: "Final",
  logoSymbolName: "ticket.fill",
  businessChatIdentifier: "0000-1111",
  contactVenueEmail: "arena@example.com",
  contactVenuePhoneNumber: "+541155550000",
  transitProviderEmail: "air@example.com",
  transitProviderPhoneNumber: "+541155550001",
  useAutomaticColors: true,
  suppressHeaderDarkening: true,
  footerBackgroundColor: "rgb(1, 2, 3)",
  stripColor: "rgb(4, 5, 6)",
  associatedStoreIdentifiers: [1],
  auxiliaryStoreIdentifiers: [1_234_567],
  semantics: { eventName: "Final", venueName: "Arena", seats: [{ seatAisle: "4" }], wifiAccess: [] },
  featuredActions: [
    { identifier: "a", type: "membershipBenefits", url: ALL_ONE },
    { identifier: "b", type: "place", placeIdentifier: "I1234" },
  ],
  upcomingPassInformation: [
    {
      identifier: "second-leg",
      name: "Second leg",
      type: "event",
      isActive: false,
      dateInformation: { date: "2026-12-24T20:00:00Z", isUndetermined: false, timeZone: "America/Buenos_Aires" },
      URLs: { bagPolicyURL: ALL_ONE, contactVenueEmail: "arena@example.com" },
      images: { headerImage: { URLs: [{ URL: ALL_ONE, SHA256: "ab".repeat(32), scale: 2, size: 7 }] } },
      additionalInfoFields: [{ key: "doors", label: "Doors", value: "18:00" }],
      backFields: [{ key: "terms", value: "None" }],
      auxiliaryStoreIdentifiers: [1_234_567],
      semantics: { venueName: "Arena" },
    },
  ],
};
const INFO = { additionalInfoFields: [{ key: "info", label: "Bags", value: "Small ones" }] };

test("every member that iOS 18 to 27 brought is copied into pass.json, in either spelling", () => {
  const { pass } = getContent(apple({ style: "eventTicket", ...INFO, ...NEWER }));
  expect(pass).toMatchObject({ ...NEWER, eventTicket: INFO });
  const snaked = Object.fromEntries(
    Object.entries({ ...INFO, ...NEWER }).map(([name, value]) => [snakeCase(name), value]),
  );
  expect(getContent(apple({ style: "eventTicket", ...snaked })).pass).toEqual(pass);
});

test("an update that says nothing of them leaves them all in the pass", () => {
  const content = getContent(apple({ style: "eventTicket", ...INFO, ...NEWER, extra: { later: [1, null] } }));
  expect(getContent(changed(content, { back_fields: [{ key: "b", value: "1" }] })).pass).toEqual({
    ...content.pass,
    eventTicket: { ...INFO, backFields: [{ key: "b", value: "1" }] },
  });
});

test.each<[string, JsonObject, string]>([
  [
    "a poster of a pass that is no ticket",
    { preferred_style_schemes: ["posterEventTicket"] },
    "pass_data.preferred_style_schemes has posterEventTicket, which is for the style eventTicket only",
  ],
  [
    "a semantic boarding pass that is none",
    { style: "coupon", preferred_style_schemes: ["semanticBoardingPass"] },
    "is for the style boardingPass only",
  ],
  [
    "three actions",
    { featured_actions: [1, 2, 3].map((i) => ({ identifier: `${i}`, type: "call", url: "tel:+1" })) },
    "pass_data.featured_actions must not have more than 2 items",
  ],
  [
    "an action to nowhere",
    { featured_actions: [{ identifier: "a", type: "shop" }] },
    "pass_data.featured_actions[0] must have either url or placeIdentifier",
  ],
  [
    "two actions of one name",
    { featured_actions: [1, 2].map(() => ({ identifier: "a", type: "shop", url: ALL_ONE })) },
    "pass_data.featured_actions[1].identifier must be unique",
  ],
  ["a link that is none", { bag_policy_url: "here" }, "pass_data.bag_policy_url must be a URL"],
  ["a colour that is none", { footer_background_color: "blue" }, "pass_data.footer_background_color must be a colour"],
  ["a word for a flag", { use_automatic_colors: "yes" }, "pass_data.use_automatic_colors must be true or false"],
  [
    "an upcoming pass without a name",
    { upcoming_pass_information: [{ identifier: "a", type: "event" }] },
    "pass_data.upcoming_pass_information[0].name is required",
  ],
  [
    "an image over http",
    {
      upcoming_pass_information: [
        {
          identifier: "a",
          name: "b",
          type: "event",
          images: { venueMap: { URLs: [{ URL: "http://example.com", SHA256: "a".repeat(64) }] } },
        },
      ],
    },
    "must be a URL of https",
  ],
  [
    "a field twice, in two places",
    { additional_info_fields: [{ key: "a", value: 1 }], footer_fields: [{ key: "a", value: 1 }] },
    "must be unique in the whole pass",
  ],
  [
    "letters in an EAN-13",
    { barcodes: [{ format: "PKBarcodeFormatEAN13", message: "A" }] },
    "pass_data.barcodes[0].message must have 12 or 13 digits in EAN-13",
  ],
  [
    "a wrong check digit",
    { barcodes: [{ format: "PKBarcodeFormatEAN13", message: "5901234123458" }] },
    "must end with the check digit of EAN-13",
  ],
  ["small letters in Code 39", { barcodes: [{ format: "PKBarcodeFormatCode39", message: "abc" }] }, "in Code 39"],
  ["a word in Codabar", { barcodes: [{ format: "PKBarcodeFormatCodabar", message: "HELLO" }] }, "in Codabar"],
  [
    "a word in Interleaved 2 of 5",
    { barcodes: [{ format: "PKBarcodeFormatI2of5", message: "1a" }] },
    "in Interleaved 2 of 5",
  ],
])("%s is refused, since no phone would show it", (_what, members, words) => {
  expect(apple(members)).toMatchObject({ status: 400, message: expect.stringContaining(words) });
});

test("the linear barcodes of iOS 27 are taken with what they can hold", () => {
  const barcodes = [
    { format: "PKBarcodeFormatEAN13", message: "5901234123457" },
    { format: "PKBarcodeFormatCode39", message: "ACME-4711" },
    { format: "PKBarcodeFormatCodabar", message: "A123456789B" },
    { format: "PKBarcodeFormatI2of5", message: "00123456" },
    { format: "PKBarcodeFormatQR", message: "4711" },
  ];
  expect(getContent(apple({ barcodes })).pass).toMatchObject({ barcodes });
});

describe("a form for the holder", () => {
  const nfc = { message: "m", encryptionPublicKey: KEY };
  const logo = { personalization_logo_2x_base64: LOGO };
  const form = {
    requiredPersonalizationFields: ["PKPassPersonalizationFieldName"],
    description: "Join",
    termsAndConditions: "Be kind.\nThat is all.",
  };
  const card = { style: "storeCard", nfc, ...logo, personalization: form };

  test("is kept as personalization.json has it, in either spelling, with fields that Apple may add", () => {
    expect(getContent(apple(card)).personalization).toEqual(form);
    const { requiredPersonalizationFields, termsAndConditions, description } = form;
    const snaked = {
      required_personalization_fields: requiredPersonalizationFields,
      terms_and_conditions: termsAndConditions,
      description,
    };
    expect(getContent(apple({ ...card, personalization: snaked })).personalization).toEqual(form);
    const later = { ...form, requiredPersonalizationFields: ["PKPassPersonalizationFieldBirthday"] };
    expect(getContent(apple({ ...card, personalization: later })).personalization).toEqual(later);
    expect(getContent(apple({ ...card, personalization: null }))).not.toHaveProperty("personalization");
  });

  const at = "pass_data.personalization";
  test.each<[string, JsonObject, string]>([
    ["of another style", { style: "coupon" }, `${at} is for the style storeCard only`],
    ["without nfc", { nfc: null }, `${at} needs nfc beside it`],
    ["without a logo", { personalization_logo_2x_base64: null }, `${at} needs personalization_logo_2x_base64 or`],
    ["that is no object", { personalization: [1] }, `${at} must be an object`],
    ["without a description", { personalization: { ...form, description: null } }, `${at}.description is required`],
    ["for nothing", { personalization: { ...form, requiredPersonalizationFields: [] } }, "must not be empty"],
    [
      "for one field twice",
      {
        personalization: { ...form, requiredPersonalizationFields: [1, 2].map(() => "PKPassPersonalizationFieldName") },
      },
      `${at}.requiredPersonalizationFields must have each field once`,
    ],
    [
      "for what is no field",
      { personalization: { ...form, requiredPersonalizationFields: ["Name"] } },
      `${at}.requiredPersonalizationFields[0] must be a field of Apple's, such as PKPassPersonalizationFieldName`,
    ],
    ["with more", { personalization: { ...form, more: 1 } }, `${at}.more is not a known field`],
  ])("%s is refused", (_what, change, words) => {
    expect(apple({ ...card, ...change })).toMatchObject({ status: 400, message: expect.stringContaining(words) });
  });

  test("that was filled in stays so with other updates, and asks anew when it is given again", () => {
    const { personalization: _, ...asked } = getContent(apple(card));
    const content = { ...asked, personalized: "mark" };
    const after = (pass_data: JsonObject) => getContent(changed(content, pass_data));
    expect(after({ description: "Gold" })).toMatchObject({ personalized: "mark" });
    expect(after({ nfc: null, description: "Gold" })).toMatchObject({ personalized: "mark" });
    expect(after({ personalization: null })).toEqual(content);
    const anew = after({ personalization: form });
    expect(anew).toEqual(getContent(apple(card)));
  });
});

describe("extra", () => {
  test("is copied into pass.json as it is", () => {
    const extra = { newIn2028: { deep: [1, null, "é", { a: false }] }, "odd name": "", none: null };
    const { pass } = getContent(apple({ extra }));
    expect(pass).toMatchObject(extra);
    expect(getContent(apple({})).pass).not.toHaveProperty("newIn2028");
  });

  const taken = [...APPLE_MEMBERS, ...APPLE_MEMBERS.map(snakeCase), ...PASS_STYLES];
  const setHere = ["formatVersion", "passTypeIdentifier", "teamIdentifier", "webServiceURL", "authenticationToken"];
  test("never stands in for a member that is known, or that the service sets", () => {
    for (const name of [...taken, ...setHere]) {
      const refused = apple({ extra: { fine: 1, [name]: "x" } });
      expect(refused).toMatchObject({ status: 400, message: expect.stringContaining(`pass_data.extra.${name} is `) });
    }
  });

  test.each<[string, unknown, string]>([
    ["a list", [1], "pass_data.extra must be an object"],
    ["a text", "x", "pass_data.extra must be an object"],
    ["too much", { a: "x".repeat(walletLimits.passExtraCharsMax) }, "pass_data.extra must not be larger than"],
    ["what is not storable", { a: "\u0000" }, "pass_data.extra.a must not contain control characters"],
  ])("of %s is refused", (_what, extra, words) => {
    expect(apple({ extra } as JsonObject)).toMatchObject({ status: 400, message: expect.stringContaining(words) });
  });
});

/** The members of pass.json that ours turn into, without fields and images. */
const OURS = new Set([
  ...APPLE_MEMBERS.filter((name) => !IMAGE_FILES.has(name) && !FIELD_PLACES.some((place) => place === name)),
  ...PASS_STYLES,
]);
const FROM_HERE = "the service sets it, and takes it from nobody";
const OWN_WORD = "a word of this API, not of pass.json";
const INSIDE = "in pass.json inside of the boarding pass";

describe("what Apple and this service know differently", () => {
  test("of the members that Apple's Pass Builder writes, each difference has its reason", () => {
    const reasons = {
      formatVersion: FROM_HERE,
      webServiceURL: FROM_HERE,
      authenticationToken: FROM_HERE,
      passTypeIdentifier: FROM_HERE,
      teamIdentifier: FROM_HERE,
    };
    expect(PASS_BUILDER.filter((name) => !OURS.has(name)).toSorted()).toEqual(Object.keys(reasons).toSorted());
    const beyond = {
      style: OWN_WORD,
      localizations: OWN_WORD,
      personalization: "a file of its own beside pass.json",
      extra: OWN_WORD,
      transitType: INSIDE,
      businessChatIdentifier: "in Apple's documentation of Pass, and not in its Pass Builder",
      suppressStripShine: "of iOS 6, and in Apple's older schema",
      userInfo: "for companion apps, and not in the Pass Builder",
    };
    const names: ReadonlySet<string> = new Set(PASS_BUILDER);
    expect([...OURS].filter((name) => !names.has(name)).toSorted()).toEqual(Object.keys(beyond).toSorted());
    expect([...PASS_BUILDER_FIELDS].toSorted()).toEqual([...FIELD_PLACES].toSorted());
    expect(BARCODE_FORMATS.toSorted()).toEqual(PASS_BUILDER_BARCODES.toSorted());
  });

  test("of the public schema, everything is known but what the service sets; it knows nothing since iOS 12", () => {
    const missing = Object.keys(schema.properties).filter((name) => !OURS.has(name));
    expect(missing.toSorted()).toEqual([
      "authenticationToken",
      "formatVersion",
      "passTypeIdentifier",
      "teamIdentifier",
      "webServiceURL",
    ]);
    const older: readonly string[] = schema.definitions.barcode.properties.format.enum;
    expect(older.filter((format) => !BARCODE_FORMATS.includes(format))).toEqual([]);
    // `posterEventTicket` and the rest stand in the list above.
    expect(Object.keys(schema.properties)).not.toContain("preferredStyleSchemes");
  });
});
