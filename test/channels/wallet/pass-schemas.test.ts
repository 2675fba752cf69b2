import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { acceptGoogleClass } from "../../../src/channels/wallet/request/accept-google-class.ts";
import { acceptPass } from "../../../src/channels/wallet/request/accept-pass.ts";
import { APPLE_MEMBERS } from "../../../src/channels/wallet/request/apple-pass.ts";
import { ApplePassChange, ApplePassData, ApplePassPart } from "../../../src/channels/wallet/request/apple-schema.ts";
import { NewGoogleClass } from "../../../src/channels/wallet/request/google-class-schema.ts";
import { PassRequest } from "../../../src/channels/wallet/request/pass-schema.ts";
import { Fault, snakeCase } from "../../../src/channels/wallet/request/readers.ts";
import { isJsonObject, type JsonObject } from "../../../src/domain/texts/json.ts";
import { DocumentSchemas } from "../../http/support/document-schemas.ts";
import type { Schema } from "../../http/support/documented.ts";

// Without names, every schema is compiled wherever it is used.
setDefaultTimeout(30_000);

const CONTEXT = {
  templates: new Map([
    [
      "card",
      {
        passType: "apple",
        style: null,
        passData: { serial_number: "1", organization_name: "Acme", description: "Card" },
      },
    ],
  ] as const),
  title: "Acme",
  issuerId: "33",
  kind: "generic",
} as const;
const TEXT = { defaultValue: { language: "en", value: "Final" } };

const APPLE = {
  pass_type: "apple",
  pass_data: { serial_number: "1", organization_name: "Acme", description: "Card" },
};
const GOOGLE = { pass_type: "google", pass_data: { class_id: "33.c", object_id: "33.o", object_data: {} } };
const TICKET_CLASS = { class_type: "eventTicket", class_data: { id: "33.c", issuerName: "Acme", eventName: TEXT } };
const LOGO = { privateImageId: "image-1" };
const AIRPORT = { airportIataCode: "SFO" };
const FLIGHT = { carrier: { carrierIataCode: "LX" }, flightNumber: "38" };
const CLASSES: Readonly<Record<string, JsonObject>> = {
  loyalty: { programName: "Miles", programLogo: LOGO },
  offer: { title: "20 % off", provider: "Acme", redemptionChannel: "BOTH" },
  giftCard: {},
  transit: { transitType: "BUS", logo: LOGO },
  flight: {
    origin: AIRPORT,
    destination: AIRPORT,
    flightHeader: FLIGHT,
    localScheduledDepartureDateTime: "2026-12-05T18:30",
  },
};
const GENERIC_CLASS = { class_type: "generic", class_data: { id: "33.c" } };

interface Shape {
  readonly what: string;
  readonly schema: TSchema;
  readonly whole: JsonObject;
  accept(body: unknown): unknown;
}

const pass = (what: string, whole: JsonObject): Shape => ({
  what,
  schema: PassRequest,
  whole,
  accept: (body) => acceptPass(body, CONTEXT),
});
const googleClass = (what: string, whole: JsonObject): Shape => ({
  what,
  schema: NewGoogleClass,
  whole,
  accept: acceptGoogleClass,
});

const SHAPES = [
  pass("an Apple pass", APPLE),
  pass("a Google pass", GOOGLE),
  pass("a pass from a template", { template_id: "card" }),
  googleClass("a class of event tickets", TICKET_CLASS),
  googleClass("a generic class", GENERIC_CLASS),
  ...Object.entries(CLASSES).map(([kind, members]) =>
    googleClass(`a class of kind ${kind}`, {
      class_type: kind,
      class_data: { id: "33.c", issuerName: "Acme", ...members },
    }),
  ),
];

/** As the document has it, but with every schema where it is used. */
function withoutNames(schema: TSchema): Schema {
  return JSON.parse(JSON.stringify(schema, (name, value) => (name === "$id" ? undefined : value)));
}

/** The body without one of its members, or one of theirs, each once. */
function* lacking(body: JsonObject): Generator<[string, JsonObject]> {
  for (const [name, value] of Object.entries(body)) {
    const { [name]: _, ...others } = body;
    yield [name, others];
    if (!isJsonObject(value)) continue;
    for (const inner of Object.keys(value)) {
      const { [inner]: __, ...rest } = value;
      yield [`${name}.${inner}`, { ...body, [name]: rest }];
    }
  }
}

describe("what the document says of a body", () => {
  test("names every member of an Apple pass that is taken, and no other", () => {
    // Apple's older name for the first of `barcodes`.
    const taken = APPLE_MEMBERS.filter((name) => name !== "barcode").map(snakeCase);
    expect(Object.keys(ApplePassData.properties).toSorted()).toEqual(taken.toSorted());
    expect(Object.keys(ApplePassPart.properties).toSorted()).toEqual(taken.toSorted());
    expect(Object.keys(ApplePassChange.properties).toSorted()).toEqual(taken.toSorted());
  });

  test("takes null for every member that a pass may lack, as the service does", () => {
    const field = { key: "k", value: "v", label: null, semantics: null, row: null, currencyCode: null };
    const barcode = { message: "1", format: "PKBarcodeFormatQR", messageEncoding: null, altText: null };
    const location = { latitude: 1, longitude: 1, altitude: null, relevantText: null };
    const beacon = { proximityUUID: "1", major: null, minor: null, relevantText: null };
    const date = { date: null, relevantDate: null, startDate: null, endDate: null };
    const spki = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ type: "spki", format: "der" });
    const nfc = { message: "1", encryptionPublicKey: spki.toString("base64"), requiresAuthentication: null };
    const lists = { back_fields: [field], barcodes: [barcode], locations: [location], beacons: [beacon] };
    const optional = Object.keys(ApplePassData.properties).filter((name) => !(name in APPLE.pass_data));
    const absent = Object.fromEntries(optional.map((name) => [name, null]));
    const texts = [{ id: null, header: null, body: null }];
    const documented = new DocumentSchemas({}).request(withoutNames(PassRequest));
    const bodies = [
      { ...APPLE, template_id: null, pass_data: { ...absent, ...APPLE.pass_data } },
      { ...APPLE, pass_data: { ...APPLE.pass_data, ...lists, relevant_dates: [date], nfc } },
      { ...GOOGLE, pass_data: { ...GOOGLE.pass_data, class_type: null, object_data: { textModulesData: texts } } },
      { template_id: "card", pass_type: null, pass_data: null },
      {
        template_id: "card",
        pass_data: { ...absent, serial_number: null, organization_name: null, description: null },
      },
    ];
    for (const body of bodies) {
      expect([body, documented(body)]).toEqual([body, null]);
      expect(acceptPass(body, CONTEXT)).not.toBeInstanceOf(Fault);
    }
  });

  test("takes the row of an auxiliary field as the service does", () => {
    const documented = new DocumentSchemas({}).request(withoutNames(PassRequest));
    const ticket = (row: unknown) => ({
      ...APPLE,
      pass_data: { ...APPLE.pass_data, style: "eventTicket", auxiliary_fields: [{ key: "k", value: "v", row }] },
    });
    for (const [row, isTaken] of [
      ...[0, 1].map((one) => [one, true] as const),
      ...[2, -1, "0", true].map((one) => [one, false] as const),
    ]) {
      expect([row, documented(ticket(row)) === null]).toEqual([row, isTaken]);
      expect([row, acceptPass(ticket(row), CONTEXT) instanceof Fault]).toEqual([row, !isTaken]);
    }
  });

  for (const { what, schema, whole, accept } of SHAPES) {
    test(`requires of ${what} what the service requires`, () => {
      expect(Value.Check(schema, whole)).toBe(true);
      expect(accept(whole)).not.toBeInstanceOf(Fault);
      for (const [name, body] of lacking(whole)) {
        expect([name, Value.Check(schema, body)]).toEqual([name, false]);
        expect(accept(body)).toBeInstanceOf(Fault);
      }
    });

    test(`knows no member of ${what} that the service does not`, () => {
      const body = { ...whole, colour: "blue" };
      expect(Value.Check(schema, body)).toBe(false);
      expect(accept(body)).toMatchObject({ status: 400, message: expect.stringContaining("colour") });
    });
  }
});
