import { expect, test } from "bun:test";
import type { Pass } from "../../../src/channels/wallet/passes.ts";
import { acceptPass } from "../../../src/channels/wallet/request/accept-pass.ts";
import { acceptPassUpdate, updatedContent } from "../../../src/channels/wallet/request/accept-pass-update.ts";
import { Fault } from "../../../src/channels/wallet/request/readers.ts";
import type { PassContent } from "../../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";

const APPLE = buildPass({
  pass_type: "apple",
  pass_data: {
    serial_number: "s",
    organization_name: "Acme",
    description: "Ticket",
    back_fields: [{ key: "gate", value: "A" }],
  },
});
const GOOGLE = buildPass({
  pass_type: "google",
  pass_data: {
    class_id: "33.c",
    class_type: "eventTicket",
    object_id: "33.o",
    object_data: { ticketNumber: "1", textModulesData: [{ id: "gate", body: "A" }] },
  },
});

function buildPass(body: JsonObject): Pass {
  const context = { templates: new Map(), title: "Acme", issuerId: "33", kind: "generic" } as const;
  const accepted = acceptPass(body, context);
  if (accepted instanceof Fault) throw new Error(accepted.message);
  const { serial, content } = accepted;
  const ids = { passId: "p", tenantId: "acme", jobId: "j", passTypeId: null, authenticationToken: null };
  return { ...ids, serial, content, state: "ready", version: 1 };
}

/** The pass's content after the update, or the sentence with which it is refused. */
function changed(pass: Pass, body: JsonObject): PassContent | string {
  const update = acceptPassUpdate(body);
  const content = update instanceof Fault ? update : updatedContent(update, pass, "Acme");
  return content instanceof Fault ? content.message : content;
}

test.each<[string, Pass, JsonObject, string]>([
  [
    "object_data in both spellings",
    GOOGLE,
    { pass_data: { object_data: { ticketNumber: "2" }, objectData: { state: "EXPIRED" } } },
    "pass_data.objectData is there twice",
  ],
  [
    "a member in object_data and another value beside it",
    GOOGLE,
    { pass_data: { object_data: { ticketNumber: "2" }, ticketNumber: "3" } },
    "pass_data.ticketNumber contradicts the object_data beside it",
  ],
  [
    "a class type and another one",
    GOOGLE,
    { pass_data: { classType: "eventTicket", class_type: "generic" } },
    "class_type",
  ],
  [
    "a message beside pass_data and inside it",
    GOOGLE,
    { pass_data: { notify_message: "Gate B" }, notify_message: "Gate C" },
    "notify_message is there twice",
  ],
  [
    "a kind of notification in both spellings",
    APPLE,
    { pass_data: {}, notification_kind: "match.upcoming", notificationKind: "match.upcoming" },
    "notification_kind is there twice",
  ],
  [
    "a field twice",
    APPLE,
    {
      pass_data: {
        back_fields: [
          { key: "gate", value: "B" },
          { key: "gate", value: "C" },
        ],
      },
    },
    "must be unique in the whole pass, and is there twice",
  ],
  [
    "a text module twice",
    GOOGLE,
    {
      pass_data: {
        textModulesData: [
          { id: "gate", body: "B" },
          { id: "gate", body: "C" },
        ],
      },
    },
    "must be unique, and is there twice",
  ],
])("an update with %s is refused, because one of them would be lost", (_what, pass, body, words) => {
  expect(changed(pass, body)).toEqual(expect.stringContaining(words));
});

test.each<[string, JsonObject]>([
  ["null for the class type", { classType: null }],
  ["an empty class type", { classType: "" }],
  ["null for the object", { object_data: null, objectData: {} }],
  ["the ids in both places", { object_id: "33.o", class_id: "33.c", object_data: { id: "33.o", classId: "33.c" } }],
])("an update with %s changes nothing", (_what, pass_data) => {
  expect(changed(GOOGLE, { pass_data })).toEqual(GOOGLE.content);
});

const CARD = buildPass({
  pass_type: "apple",
  pass_data: {
    serial_number: "s",
    organization_name: "Acme",
    description: "Card",
    primary_fields: [
      { key: "points", label: "Points", value: 7, numberStyle: "PKNumberStyleDecimal" },
      { key: "name", value: "Ana" },
    ],
    back_fields: [{ key: "terms", value: "None" }],
  },
});
const fieldsAfter = (pass_data: JsonObject) => {
  const content = changed(CARD, { pass_data });
  return typeof content === "string" || content.type !== "apple" ? content : content.pass["generic"];
};
const POINTS = { key: "points", label: "Points", value: 7, numberStyle: "PKNumberStyleDecimal" };
const NAME = { key: "name", value: "Ana" };
const TERMS = { key: "terms", value: "None" };

test.each<[string, JsonObject, unknown]>([
  ["taken off", { primary_fields: [{ key: "points", value: null }] }, { primaryFields: [NAME], backFields: [TERMS] }],
  [
    "taken off where it is not there",
    { header_fields: [{ key: "x", value: null }] },
    { primaryFields: [POINTS, NAME], backFields: [TERMS] },
  ],
  [
    "moved, with what it has",
    { back_fields: [{ key: "points", value: 8 }] },
    { primaryFields: [NAME], backFields: [TERMS, { ...POINTS, value: 8 }] },
  ],
  [
    "taken off in one group and put into another anew",
    { primary_fields: [{ key: "points", value: null }], header_fields: [{ key: "points", value: "8" }] },
    { headerFields: [{ key: "points", value: "8" }], primaryFields: [NAME], backFields: [TERMS] },
  ],
  [
    "moved, and the other there taken off",
    { back_fields: [{ key: "name" }, { key: "terms", value: null }] },
    { primaryFields: [POINTS], backFields: [NAME] },
  ],
  [
    "given a currency for its style",
    { primary_fields: [{ key: "points", numberStyle: null, currencyCode: "EUR" }] },
    { primaryFields: [{ key: "points", label: "Points", value: 7, currencyCode: "EUR" }, NAME], backFields: [TERMS] },
  ],
])("in one update, a field is %s", (_what, pass_data, fields) => {
  expect(fieldsAfter(pass_data)).toEqual(fields as never);
});

test.each<[string, JsonObject, string]>([
  [
    "a field in two groups",
    { header_fields: [{ key: "points", value: 1 }], back_fields: [{ key: "points", value: 2 }] },
    "must be unique in the whole pass",
  ],
  [
    "a currency beside a style",
    { primary_fields: [{ key: "points", currencyCode: "EUR" }] },
    "pass_data.primary_fields[0].numberStyle cannot stand beside currencyCode",
  ],
])("%s is refused", (_what, pass_data, words) => {
  expect(fieldsAfter(pass_data)).toEqual(expect.stringContaining(words));
});

test("a stored pass that says what no request may say any more takes updates about something else", () => {
  const { content } = CARD;
  if (content.type !== "apple") throw new Error("not one of Apple's");
  const both = { key: "price", value: 5, currencyCode: "EUR", numberStyle: "PKNumberStyleDecimal" };
  const pass = { ...content.pass, preferredStyleSchemes: ["posterEventTicket"], generic: { primaryFields: [both] } };
  const former = { ...CARD, content: { ...content, pass } };
  expect(changed(former, { pass_data: { logo_text: "New" } })).toMatchObject({
    pass: {
      logoText: "New",
      preferredStyleSchemes: [],
      generic: { primaryFields: [{ key: "price", value: 5, currencyCode: "EUR" }] },
    },
  });
});

test.each([".", ".."])("the serial %s is refused, since no device could ask for the pass", (serial_number) => {
  const pass_data = { serial_number, organization_name: "Acme", description: "Card" };
  const context = { templates: new Map(), title: "Acme", issuerId: "33", kind: "generic" } as const;
  expect(acceptPass({ pass_type: "apple", pass_data }, context)).toMatchObject({
    message: expect.stringContaining('pass_data.serial_number must not be "." or ".."'),
  });
});

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const SPOKEN = buildPass({
  pass_type: "apple",
  pass_data: {
    serial_number: "s",
    organization_name: "Acme",
    description: "Ticket",
    localizations: {
      de: { strings: { Gate: "Tor" }, logo_base64: PNG, strip_base64: PNG },
      "pt-BR": { strings: { Gate: "Portão" } },
    },
  },
});
const spokenAfter = (pass_data: JsonObject) => {
  const content = changed(SPOKEN, { pass_data });
  if (typeof content === "string" || content.type !== "apple") return content;
  return {
    strings: content.strings,
    files: Object.keys(content.images)
      .filter((file) => file.includes("/"))
      .toSorted(),
  };
};
const FILES = ["de.lproj/logo.png", "de.lproj/strip.png"];
const STRINGS = { de: { Gate: "Tor" }, "pt-BR": { Gate: "Portão" } };

test.each<[string, JsonObject, unknown]>([
  ["nothing of them", { logo_text: "New" }, { strings: STRINGS, files: FILES }],
  [
    "other texts of a language",
    { localizations: { de: { strings: { Row: "Reihe" } } } },
    { strings: { ...STRINGS, de: { Row: "Reihe" } }, files: FILES },
  ],
  [
    "no image of a language",
    { localizations: { de: { logo_base64: null } } },
    { strings: STRINGS, files: ["de.lproj/strip.png"] },
  ],
  ["null for a language", { localizations: { de: null } }, { strings: { "pt-BR": STRINGS["pt-BR"] }, files: [] }],
  [
    "one more language",
    { localizations: { fr: { strings: { Gate: "Porte" }, icon2xBase64: PNG } } },
    { strings: { ...STRINGS, fr: { Gate: "Porte" } }, files: [...FILES, "fr.lproj/icon@2x.png"] },
  ],
  ["null for all of them", { localizations: null }, { strings: undefined, files: [] }],
])("of an update that says %s, the languages are what follows", (_what, pass_data, expected) => {
  expect(spokenAfter(pass_data)).toEqual(expected as never);
});

test.each<[string, unknown, string]>([
  ["a language that leads elsewhere", { "../x": {} }, "is not a language"],
  ["a language that is a path", { "de/x": {} }, "is not a language"],
  ["an unknown member", { de: { texts: {} } }, "pass_data.localizations.de.texts is not a known field"],
  ["a number for a text", { de: { strings: { a: 1 } } }, "pass_data.localizations.de.strings.a must be a string"],
  ["a list of texts", { de: { strings: ["a"] } }, "pass_data.localizations.de.strings must be an object with texts"],
  ["an image that is none", { de: { logo_base64: "x" } }, "pass_data.localizations.de.logo_base64"],
  ["a list", [], "pass_data.localizations must be an object"],
  [
    "too many",
    Object.fromEntries(
      Array.from({ length: 51 }, (_, i) => [`a${String.fromCharCode(97 + (i % 26))}${i > 25 ? "x" : ""}`, {}]),
    ),
    "must not have more than 50 languages",
  ],
  [
    "too much",
    { de: { strings: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`${i}`, "x".repeat(20_000)])) } },
    "must not be larger than",
  ],
])("%s is refused", (_what, localizations, words) => {
  expect(changed(SPOKEN, { pass_data: { localizations } } as JsonObject)).toEqual(expect.stringContaining(words));
});
