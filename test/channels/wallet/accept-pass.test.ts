import { expect, test } from "bun:test";
import { ECDH, generateKeyPairSync } from "node:crypto";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import {
  type AcceptedPass,
  acceptPass,
  checkTemplate,
  type PassContext,
} from "../../../src/channels/wallet/request/accept-pass.ts";
import { type Checked, Fault } from "../../../src/channels/wallet/request/readers.ts";
import type { WalletTemplate } from "../../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";

const ICON = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const TEXT = { defaultValue: { language: "en", value: "Member" } };

const TEMPLATES: ReadonlyMap<string, WalletTemplate> = new Map<string, WalletTemplate>([
  [
    "ticket",
    {
      passType: "apple",
      style: "eventTicket",
      passData: {
        organization_name: "Acme",
        description: "Ticket",
        logo_text: "Acme Arena",
        label_color: "#22C55E",
        icon_base64: ICON,
        barcodes: [{ message: "1", format: "PKBarcodeFormatQR" }],
        header_fields: [{ key: "gate", label: "Gate", value: "A", changeMessage: "Gate %@" }],
      },
    },
  ],
  [
    "club",
    {
      passType: "google",
      style: null,
      passData: { class_id: "33.club", class_type: "eventTicket", object_data: { header: TEXT } },
    },
  ],
]);
const CONTEXT: PassContext = { templates: TEMPLATES, title: "Acme", issuerId: "33", kind: "generic" };
const REQUIRED = { serial_number: "s", organization_name: "o", description: "d" };

const accepted = (body: JsonObject) => taken(acceptPass(body, CONTEXT));
const apple = (members: JsonObject) =>
  acceptPass({ pass_type: "apple", pass_data: { ...REQUIRED, ...members } }, CONTEXT);
const ticket = (members: JsonObject) =>
  accepted({ template_id: "ticket", pass_data: { serial_number: "s", ...members } });
const club = (members: JsonObject) => accepted({ template_id: "club", pass_data: { object_id: "33.o", ...members } });

function taken(checked: Checked<AcceptedPass>): AcceptedPass {
  if (checked instanceof Fault) throw new Error(checked.message);
  return checked;
}

test.each<[string, JsonObject]>([
  ["null for the style", { style: null }],
  ["an empty style", { style: "" }],
  ["null for texts that a pass needs", { organization_name: null, description: null }],
  ["null for a text, a colour and a list", { logo_text: null, label_color: null, barcodes: null }],
  ["null for a list of fields", { header_fields: null }],
  ["null in a field", { header_fields: [{ key: "gate", value: "A", label: null, changeMessage: null }] }],
  ["null for an image", { icon_base64: null }],
  ["an empty image", { icon_base64: "" }],
  ["null in one spelling and the template's value in the other", { labelColor: null, label_color: "#22C55E" }],
])("of a request with %s, the pass has what the template says", (_what, members) => {
  expect(ticket(members)).toEqual(ticket({}));
});

test("what a request says counts, beside null in the other spelling", () => {
  const { content } = taken(apple({ logo_text: null, logoText: "Acme", back_fields: null, backFields: [] }));
  expect(content).toMatchObject({ pass: { logoText: "Acme" } });
});

test("an empty text takes the template's away", () => {
  expect(JSON.stringify(ticket({ logo_text: "" }))).not.toContain("Acme Arena");
});

/** Apple's names of the files: https://developer.apple.com/documentation/walletpasses/creating-the-source-for-a-pass */
test.each([
  ["logo_base64", "logo.png"],
  ["logo_2x_base64", "logo@2x.png"],
  ["logo_3x_base64", "logo@3x.png"],
  ["strip_base64", "strip.png"],
  ["strip_2x_base64", "strip@2x.png"],
  ["strip_3x_base64", "strip@3x.png"],
  ["thumbnail_base64", "thumbnail.png"],
  ["thumbnail_2x_base64", "thumbnail@2x.png"],
  ["thumbnail_3x_base64", "thumbnail@3x.png"],
  ["background_base64", "background.png"],
  ["footer_base64", "footer.png"],
])("%s becomes the file %s", (member, file) => {
  const { content } = taken(apple({ [member]: ICON }));
  const images = content.type === "apple" ? Object.keys(content.images) : [];
  expect(images.filter((name) => !name.startsWith("icon"))).toEqual([file]);
});

test("where and when a pass is shown, and how a field is aligned, reach the pass as they were given", () => {
  const places = [{ latitude: -34.6, longitude: -58.4, altitude: 25, relevant_text: "You are near" }];
  const members = {
    relevant_date: "2026-11-26T20:00:00-03:00",
    locations: places,
    primary_fields: [{ key: "seat", value: "12", text_alignment: "PKTextAlignmentRight" }],
  };
  expect(taken(apple({ style: "generic", ...members })).content).toMatchObject({
    pass: {
      relevantDate: "2026-11-26T20:00:00-03:00",
      locations: [{ latitude: -34.6, longitude: -58.4, altitude: 25, relevantText: "You are near" }],
      generic: { primaryFields: [{ key: "seat", value: "12", textAlignment: "PKTextAlignmentRight" }] },
    },
  });
});

const BARCODE = { message: "1", format: "PKBarcodeFormatQR" };
const OTHER = { message: "2", format: "PKBarcodeFormatAztec" };

test("the older member for a barcode counts beside null for the list of them, and beside a list must be one of it", () => {
  const alone = taken(apple({ barcodes: [BARCODE] }));
  expect(taken(apple({ barcode: BARCODE, barcodes: null }))).toEqual(alone);
  expect(taken(apple({ barcode: null, barcodes: [BARCODE] }))).toEqual(alone);
  expect(taken(apple({ barcode: BARCODE, barcodes: [BARCODE, OTHER] }))).toEqual(
    taken(apple({ barcodes: [BARCODE, OTHER] })),
  );
  const spelled = { ...BARCODE, altText: null, message_encoding: "utf-8" };
  expect(taken(apple({ barcode: spelled, barcodes: [{ ...BARCODE, messageEncoding: "utf-8" }] }))).toEqual(
    taken(apple({ barcodes: [{ ...BARCODE, messageEncoding: "utf-8" }] })),
  );
  expect(apple({ barcode: OTHER, barcodes: [BARCODE] })).toEqual(
    new Fault("pass_data.barcode is not one of barcodes: give one of the two members"),
  );
  expect(ticket({ barcode: OTHER })).toEqual(ticket({ barcodes: [OTHER] }));
  expect(ticket({ barcode: null })).toEqual(ticket({}));
});

test("of a stored template whose barcode is none of its barcodes, those count", () => {
  const stored = TEMPLATES.get("ticket");
  if (stored === undefined) throw new Error("there is no ticket");
  const templates = new Map([["ticket", { ...stored, passData: { ...stored.passData, barcode: OTHER } }]]);
  const body = { template_id: "ticket", pass_data: { serial_number: "s" } };
  expect(taken(acceptPass(body, { ...CONTEXT, templates }))).toEqual(ticket({}));
});

test("what a barcode says may have control characters, and whatever the registry stores", () => {
  const message = "\u001d01095060001343520\u001d10ABC\u0001";
  const { content } = taken(apple({ barcodes: [{ ...BARCODE, message }] }));
  expect(content).toMatchObject({ pass: { barcodes: [{ message, messageEncoding: "iso-8859-1" }] } });
  for (const [refused, words] of [
    ["a\u0000", "must not contain the character NUL"],
    ["\ud800", "must be valid Unicode"],
    [" ", "must not be empty"],
    [7, "must be a string"],
    ["x".repeat(walletLimits.passTextCharsMax + 1), "must not be longer than"],
  ] as const) {
    const checked = apple({ barcodes: [{ ...BARCODE, message: refused }] });
    expect(checked).toMatchObject({ message: expect.stringContaining(`pass_data.barcodes[0].message ${words}`) });
  }
  expect(apple({ barcodes: [{ ...BARCODE, altText: "\u001d" }] })).toBeInstanceOf(Fault);
});

const generateKey = (namedCurve: string) =>
  generateKeyPairSync("ec", { namedCurve }).publicKey.export({ type: "spki", format: "der" }).toString("base64");

test("nfc is taken with a public key for ECDH on P-256, and with nothing else", () => {
  const key = generateKey("P-256");
  const nfc = { message: "4711", encryptionPublicKey: key, requiresAuthentication: true };
  expect(taken(apple({ nfc })).content).toMatchObject({ pass: { nfc } });
  // The same key with its point compressed, as in Apple's examples.
  const point = Buffer.from(key, "base64").subarray(26);
  const short = Buffer.from(String(ECDH.convertKey(point, "prime256v1", undefined, "hex", "compressed")), "hex");
  const compressed = Buffer.concat([
    Buffer.from(`3039${Buffer.from(key, "base64").toString("hex").slice(4, 46)}032200`, "hex"),
    short,
  ]);
  expect(taken(apple({ nfc: { ...nfc, encryptionPublicKey: compressed.toString("base64") } })).content).toMatchObject({
    pass: { nfc: { encryptionPublicKey: compressed.toString("base64") } },
  });
  const offCurve = Buffer.from(key, "base64").fill(0xff, 40).toString("base64");
  const others = [null, "", "key", 7, generateKey("P-384"), key.slice(0, -8), `${key}AAAA`, offCurve];
  for (const encryptionPublicKey of [...others, `-----BEGIN PUBLIC KEY-----\n${key}`]) {
    const refused = apple({ nfc: { ...nfc, encryptionPublicKey } });
    expect([encryptionPublicKey, refused]).toMatchObject([
      encryptionPublicKey,
      { status: 400, message: expect.stringContaining("pass_data.nfc.encryptionPublicKey") },
    ]);
  }
});

test.each<[string, JsonObject]>([
  ["null for the class", { class_id: null }],
  ["an empty class", { class_id: "" }],
  ["null for the kind", { class_type: null }],
  ["an empty kind", { classType: "" }],
  ["null for the object", { object_data: null }],
])("of a request with %s, the Google pass has what the template says", (_what, members) => {
  expect(club(members)).toEqual(club({}));
});

test("null in an object takes away what the template's object says", () => {
  expect(club({ object_data: { header: null } }).content).not.toHaveProperty("object.header");
});

test("a template may leave open as null what a request must add", () => {
  const passData = { serial_number: null, organization_name: null, description: null };
  expect(checkTemplate({ passType: "apple", style: null, passData })).toBeNull();
});
