import { generateKeyPairSync } from "node:crypto";
import type { WalletTemplate } from "../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../src/domain/texts/json.ts";

/* Bodies that are taken, which together have every member of the sends. */

const LINK = "https://example.com/there";
const WHEN = "2026-12-31T23:59:00Z";

export const EMAILS: readonly JsonObject[] = [
  {
    to_address: "ada@example.com",
    to_name: "Ada",
    subject: "Hello",
    template_id: "welcome",
    cc: ["bob@example.com", { address: "eve@example.com", name: "Eve" }],
    bcc: [{ address: "dan@example.com" }],
    reply_to: [{ address: "help@example.com", name: "Help" }],
    headers: { "X-Order": "7" },
    tracking: { opens: true, clicks: false },
    attachments: [{ filename: "a.pdf", content: "aGVsbG8=", content_type: "application/pdf", content_id: "a" }],
    tags: [{ name: "kind", value: "order" }],
    topic: "orders",
    data: { name: "Ada", deep: { list: [1] } },
  },
  { to_address: "ada@example.com", html: "<p>Hello</p>", subject: "Hello", reply_to: "help@example.com" },
  { to_address: "ada@example.com", text: "Hello", subject: "Hello", reply_to: { address: "help@example.com" } },
];

const TO = { phone_number: "5491122334455" };
const PICTURE = { type: "image", link: LINK };
const MONEY = { type: "currency", fallback_value: "€25", code: "EUR", amount_1000: 25_000 };
const SECTIONS = [{ title: "Coats", product_retailer_ids: ["coat-1", "coat-2"] }];
const interactive = (members: JsonObject) => ({ ...TO, interactive: { body: "Which?", footer: "Acme", ...members } });

export const CHATS: readonly JsonObject[] = [
  {
    ...TO,
    template_id: "shipped",
    language_code: "en_US",
    params: ["Ada", 7, true, MONEY, { type: "date_time", fallback_value: "tomorrow" }],
    header: { type: "text", text: "Ada", parameter_name: "name" },
    buttons: [
      { index: 0, sub_type: "url", value: "orders/7" },
      { index: 1, sub_type: "flow", value: "token", data: { a: 1 } },
      { index: 2, sub_type: "catalog", value: "coat-1" },
      { index: 3, sub_type: "mpm", value: "coat-1", sections: SECTIONS },
      { index: 4, sub_type: "voice_call", parameters: [{ type: "ttl_minutes", ttl_minutes: 5 }] },
    ],
    limited_time_offer: { expires_at: WHEN },
    components: [{ type: "order_status", order: { id: "7" } }],
  },
  ...[
    { index: 0, sub_type: "flow", value: "token", data: { a: 1 } },
    { index: 0, sub_type: "catalog", value: "coat-1" },
    { index: 0, sub_type: "mpm", value: "coat-1", sections: SECTIONS },
    { index: 0, sub_type: "voice_call", parameters: [{ type: "ttl_minutes", ttl_minutes: 5 }] },
  ].map((button) => ({ ...TO, template_id: "shipped", buttons: [button] })),
  { recipient: "US.13491208655302741918", template_id: "shipped", params: { name: "Ada", amount: MONEY } },
  {
    ...TO,
    template_id: "sale",
    cards: [
      { header: PICTURE, params: ["Ada"], buttons: [{ index: 0, sub_type: "url", value: "coat" }] },
      { header: { type: "product", product_retailer_id: "coat-1", catalog_id: "7" } },
    ],
  },
  ...[
    PICTURE,
    { type: "video", id: "77" },
    { type: "document", link: LINK, filename: "a.pdf" },
    { type: "location", latitude: 1.5, longitude: 2, name: "Acme", address: "Here" },
    { type: "product", product_retailer_id: "coat-1", catalog_id: "7" },
  ].map((header) => ({ ...TO, template_id: "shipped", header })),
  { ...TO, text: "Hello", reply_to: "wamid.1" },
  { ...TO, text: { body: "Hello", preview_url: true } },
  { ...TO, media: { ...PICTURE, caption: "Here" } },
  { ...TO, media: { type: "video", id: "77", caption: "Here" } },
  { ...TO, media: { type: "audio", link: LINK, voice: true } },
  { ...TO, media: { type: "document", link: LINK, caption: "Here", filename: "a.pdf" } },
  { ...TO, media: { type: "sticker", id: "77" } },
  { ...TO, location: { latitude: 1.5, longitude: 2, name: "Acme", address: "Here" } },
  { ...TO, contacts: [{ name: { formatted_name: "Ada", first_name: "Ada" }, phones: [{ phone: "+1" }] }] },
  { ...TO, reaction: { message_id: "wamid.1", emoji: "👍" } },
  interactive({ type: "button", header: { type: "text", text: "Acme" }, buttons: [{ id: "yes", title: "Yes" }] }),
  interactive({
    type: "list",
    button: "Choose",
    header: { type: "text", text: "Acme" },
    sections: [{ title: "One", rows: [{ id: "a", title: "A", description: "First" }] }],
  }),
  interactive({ type: "cta_url", display_text: "Open", url: LINK, header: PICTURE }),
  interactive({
    type: "flow",
    flow_id: "7",
    flow_cta: "Start",
    flow_token: "t",
    flow_action: "navigate",
    screen: "FIRST",
    data: { a: 1 },
    mode: "draft",
  }),
  interactive({ type: "location_request_message" }),
  interactive({ type: "product", catalog_id: "7", product_retailer_id: "coat-1" }),
  interactive({ type: "product_list", header: { type: "text", text: "Acme" }, catalog_id: "7", sections: SECTIONS }),
  interactive({ type: "catalog_message", product_retailer_id: "coat-1" }),
  interactive({ type: "voice_call", action: { name: "voice_call" } }),
];

const KEY = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  .publicKey.export({ type: "spki", format: "der" })
  .toString("base64");
const PNG = Buffer.concat([
  Buffer.from("89504e470d0a1a0a0000000d49484452000001c200000078", "hex"),
  Buffer.alloc(32, 1),
  Buffer.from("0000000049454e44ae426082", "hex"),
]).toString("base64");

const FIELD: JsonObject = {
  key: "a",
  value: "1",
  label: "A",
  changeMessage: "Now %@",
  textAlignment: "PKTextAlignmentLeft",
  attributedValue: "<a href='https://example.com'>1</a>",
  dataDetectorTypes: ["PKDataDetectorTypeLink"],
  isRelative: false,
  ignoresTimeZone: true,
  semantics: { eventName: "Final" },
};
const TICKET: JsonObject = {
  serial_number: "s",
  organization_name: "Acme",
  description: "A ticket",
  style: "eventTicket",
  background_color: "#0B1F3A",
  foreground_color: "rgb(255, 255, 255)",
  label_color: "#fff",
  barcodes: [{ message: "7", format: "PKBarcodeFormatQR", messageEncoding: "utf-8", altText: "7" }],
  relevant_date: WHEN,
  relevant_dates: [{ date: WHEN, relevantDate: WHEN, startDate: WHEN, endDate: WHEN }],
  expiration_date: WHEN,
  locations: [{ latitude: 1.5, longitude: 2, altitude: 3, relevantText: "Here" }],
  beacons: [{ proximityUUID: "b", major: 1, minor: 2, relevantText: "Here" }],
  max_distance: 100,
  grouping_identifier: "g",
  voided: false,
  logo_text: "Acme",
  bag_policy_url: LINK,
  app_launch_url: LINK,
  associated_store_identifiers: [1],
  user_info: { a: 1 },
  semantics: { eventName: "Final" },
  preferred_style_schemes: ["posterEventTicket"],
  featured_actions: [
    { identifier: "a", type: "shop", url: LINK },
    { identifier: "b", type: "place", placeIdentifier: "I1" },
  ],
  upcoming_pass_information: [
    {
      identifier: "u",
      name: "Second leg",
      type: "event",
      isActive: false,
      dateInformation: { date: WHEN, isUndetermined: false, timeZone: "America/Buenos_Aires" },
      URLs: { bagPolicyURL: LINK, contactVenueEmail: "arena@example.com" },
      images: {
        headerImage: { URLs: [{ URL: LINK, SHA256: "ab".repeat(32), scale: 2, size: 7 }], reuseExisting: true },
      },
      additionalInfoFields: [{ key: "doors", value: "18:00" }],
      auxiliaryStoreIdentifiers: [1],
      semantics: { venueName: "Arena" },
    },
  ],
  header_fields: [{ key: "h", value: 1, numberStyle: "PKNumberStyleDecimal" }],
  primary_fields: [FIELD],
  auxiliary_fields: [{ key: "x", value: WHEN, dateStyle: "PKDateStyleShort", timeStyle: "PKDateStyleShort", row: 1 }],
  back_fields: [{ key: "m", value: 1, currencyCode: "EUR" }],
  extra: { later: [1, null] },
};
const LEAST = { serial_number: "s", organization_name: "Acme", description: "A pass" };
const apple = (members: JsonObject) => ({ pass_type: "apple", pass_data: { ...LEAST, ...members } });

export const APPLE_PASSES: readonly JsonObject[] = [
  { pass_type: "apple", pass_data: TICKET },
  apple({
    logo_base64: PNG,
    strip_base64: `data:image/png;base64,${PNG}`,
    localizations: { de: { strings: { Final: "Finale" }, logo_base64: PNG } },
  }),
  apple({ style: "boardingPass", transit_type: "PKTransitTypeAir", primary_fields: [{ key: "a", value: "1" }] }),
  apple({
    style: "storeCard",
    nfc: { message: "m", encryptionPublicKey: KEY, requiresAuthentication: true },
    personalization_logo_2x_base64: PNG,
    personalization: {
      requiredPersonalizationFields: ["PKPassPersonalizationFieldName"],
      description: "Join",
      termsAndConditions: "Be kind.",
    },
  }),
];

const text = (value: string) => ({ defaultValue: { language: "en", value } });
const OBJECT: JsonObject = {
  state: "ACTIVE",
  header: text("Ada"),
  subheader: text("Member"),
  cardTitle: text("Acme"),
  hexBackgroundColor: "#0B1F3A",
  barcode: { type: "QR_CODE", value: "7" },
  textModulesData: [{ id: "points", header: "Points", body: "7" }],
  linkedObjectIds: ["33.other"],
};
const google = (class_type: string, object_data: JsonObject) => ({
  pass_type: "google",
  pass_data: { class_id: "33.c", class_type, object_id: "33.o", object_data },
});

export const GOOGLE_PASSES: readonly JsonObject[] = [
  google("generic", OBJECT),
  google("eventTicket", { ticketHolderName: "Ada", ticketNumber: "7", ticketType: text("VIP") }),
  google("loyalty", {
    loyaltyPoints: { balance: { int: 7 } },
    secondaryLoyaltyPoints: { balance: { money: { micros: "7000000", currencyCode: "EUR" } } },
    linkedOfferIds: ["33.offer"],
  }),
  google("giftCard", { cardNumber: "7", balance: { micros: 7_000_000, currencyCode: "EUR" } }),
  google("transit", { tripType: "ONE_WAY" }),
  google("flight", { passengerName: "Ada", reservationInfo: { confirmationCode: "7" } }),
];

export const CARD_TEMPLATE: WalletTemplate = { passType: "apple", style: null, passData: LEAST };

export const TEMPLATE_PASSES: readonly JsonObject[] = [
  { template_id: "card" },
  {
    template_id: "card",
    pass_type: "apple",
    pass_data: { style: "eventTicket", primary_fields: [FIELD], logo_text: "Acme" },
  },
];

export const APPLE_BEFORE = apple({ back_fields: [{ key: "a", value: "1" }] });
export const APPLE_UPDATES: readonly JsonObject[] = [
  {
    pass_data: {
      description: "Another",
      back_fields: [{ key: "a", value: "2" }],
      logo_text: "Acme",
      localizations: { de: { strings: { "A pass": "Ein Pass" } } },
    },
    notification_kind: "match.upcoming",
  },
];
export const GOOGLE_BEFORE = google("generic", OBJECT);
export const GOOGLE_UPDATES: readonly JsonObject[] = [
  { pass_data: { object_data: { header: text("Bob") } }, notify_message: "Changed" },
  { pass_data: { ...OBJECT, class_id: "33.c", object_id: "33.o" } },
];

const LOGO = { sourceUri: { uri: LINK } };
const AIRPORT = { airportIataCode: "SFO" };
const CLASSES: Readonly<Record<string, JsonObject>> = {
  eventTicket: {
    eventName: text("Final"),
    venue: { name: text("Arena"), address: text("Here") },
    dateTime: { doorsOpen: "2026-11-21T18:30:00", start: "2026-11-21T20:00", end: "2026-11-21T22:00:00Z" },
    hexBackgroundColor: "#0B1F3A",
    logo: LOGO,
    heroImage: LOGO,
  },
  loyalty: { programName: "Miles", programLogo: { privateImageId: "image-1" } },
  offer: { title: "20 % off", provider: "Acme", redemptionChannel: "BOTH" },
  giftCard: {},
  transit: { transitType: "BUS", logo: LOGO },
  flight: {
    origin: AIRPORT,
    destination: AIRPORT,
    flightHeader: { carrier: { carrierIataCode: "LX" }, flightNumber: "38" },
    localScheduledDepartureDateTime: "2026-12-05T18:30",
  },
};
const classes = (id: JsonObject): readonly JsonObject[] =>
  Object.entries(CLASSES).map(([class_type, members]) => ({
    class_type,
    class_data: { ...id, issuerName: "Acme", reviewStatus: "UNDER_REVIEW", ...members },
  }));

export const NEW_CLASSES: readonly JsonObject[] = [
  ...classes({ id: "33.c" }),
  { class_type: "generic", class_data: { id: "33.c", hexBackgroundColor: "#0B1F3A" } },
];
export const CLASS_CHANGES: readonly JsonObject[] = [
  ...classes({}),
  { class_type: "generic", class_data: { id: "33.c" } },
];
