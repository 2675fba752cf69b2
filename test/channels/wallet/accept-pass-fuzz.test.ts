import { expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import Ajv from "ajv";
import fc from "fast-check";
import type { Pass } from "../../../src/channels/wallet/passes.ts";
import { type AcceptedPass, acceptPass, type PassContext } from "../../../src/channels/wallet/request/accept-pass.ts";
import {
  type AcceptedUpdate,
  acceptPassUpdate,
  imagesOfUpdate,
  updatedContent,
} from "../../../src/channels/wallet/request/accept-pass-update.ts";
import { type Checked, Fault } from "../../../src/channels/wallet/request/readers.ts";
import { asSent } from "../../../src/channels/wallet/request/sent-names.ts";
import { PASS_STYLES } from "../../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import schema from "./apple-pass.schema.json";

const CONTEXT: PassContext = { templates: new Map(), title: "Acme", issuerId: "33", kind: "generic" };
const { $schema: _, ...plainSchema } = schema;
const ajv = new Ajv({ strict: false, validateFormats: false });
const isValidPass = ajv.compile(plainSchema);
const RUNS = { numRuns: 1_500 };
const IN_TIME_MS = 60_000;

/** A PNG of one colour. */
function png(width: number, height: number): string {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(data.length, 0);
    ends.writeUInt32BE(Bun.hash.crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt16BE(0x0800, 8);
  const pixels = deflateSync(Buffer.alloc((width + 1) * height));
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  const chunks = [chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]).toString("base64");
}

const anything = fc.jsonValue({ maxDepth: 3 });
const mostly = <T>(good: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 200, arbitrary: good }, fc.constantFrom("", null), anything);
const field = fc.record(
  {
    key: mostly(fc.string({ minLength: 2, maxLength: 6 })),
    value: mostly(fc.oneof(fc.string(), fc.integer())),
    label: mostly(fc.string()),
    changeMessage: mostly(fc.constant("now %@")),
    text_alignment: mostly(fc.constantFrom("PKTextAlignmentLeft", "PKTextAlignmentRight")),
    semantics: mostly(fc.object({ maxDepth: 1 })),
  },
  { requiredKeys: ["key", "value"] },
);
const fields = mostly(fc.array(field, { maxLength: 3 }));
const colour = mostly(fc.constantFrom("#0B1F3A", "#fff", "rgb(1,2,3)", "rgb( 255, 0, 7 )"));
const date = mostly(fc.constantFrom("2026-12-31T23:59:59Z", "2026-12-31T23:59:59.123+01:00", "2026-02-28T10:00Z"));
const image = mostly(fc.constantFrom(png(29, 29), `data:image/png;base64,${png(2, 3)}`));
const data = fc.record(
  {
    serial_number: mostly(fc.string({ minLength: 1 })),
    organization_name: mostly(fc.string({ minLength: 1 })),
    description: mostly(fc.string({ minLength: 1 })),
    style: mostly(fc.constantFrom(...PASS_STYLES)),
    background_color: colour,
    labelColor: colour,
    logo_text: mostly(fc.string()),
    barcodes: mostly(
      fc.array(
        fc.record(
          {
            message: mostly(fc.string({ minLength: 1, unit: "grapheme" })),
            format: mostly(fc.constantFrom("PKBarcodeFormatQR", "PKBarcodeFormatCode128")),
            messageEncoding: mostly(fc.constantFrom("iso-8859-1", "utf-8")),
          },
          { requiredKeys: ["message", "format"] },
        ),
        { maxLength: 2 },
      ),
    ),
    primary_fields: fields,
    backFields: fields,
    auxiliary_fields: fields,
    icon_base64: image,
    icon_2x_base64: image,
    strip3xBase64: image,
    relevant_date: date,
    expiration_date: date,
    locations: mostly(
      fc.array(
        fc.record({
          latitude: mostly(fc.float({ min: -90, max: 90, noNaN: true })),
          longitude: mostly(fc.constant(5)),
        }),
        {
          maxLength: 2,
        },
      ),
    ),
    maxDistance: mostly(fc.integer({ min: 1, max: 99 })),
    voided: mostly(fc.boolean()),
    userInfo: mostly(fc.object({ maxDepth: 2 })),
  },
  { requiredKeys: ["serial_number", "organization_name", "description"] },
);

/** Reads a request: returns the pass, or null if it is refused with a sentence. Any other error is a bug of ours. */
function taken(body: unknown): AcceptedPass | null {
  // The body as it comes over the wire.
  return orRefused(acceptPass(JSON.parse(JSON.stringify(body)), CONTEXT));
}

function orRefused<T>(checked: Checked<T>): T | null {
  if (!(checked instanceof Fault)) return checked;
  expect([checked.status, checked.message.length > 10]).toEqual([400, true]);
  return null;
}

/** A change that must be accepted. */
function change(passData: JsonObject): AcceptedUpdate {
  const update = orRefused(acceptPassUpdate({ pass_data: passData }));
  if (update === null) throw new Error("refused");
  return update;
}

function buildPass({ serial, content }: AcceptedPass): Pass {
  const ids = { passId: "p", tenantId: "acme", jobId: "j", passTypeId: "pass.test", authenticationToken: "t" };
  return { ...ids, serial, content, state: "ready", version: 1 };
}

test(
  "whatever is sent for an Apple pass is refused with 400 or becomes a pass.json that Apple's schema takes",
  () => {
    let passes = 0;
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: data }, anything), (pass_data) => {
        const accepted = taken({ pass_type: "apple", pass_data });
        if (accepted === null || accepted.content.type !== "apple") return;
        passes += 1;
        const { pass, images, style } = accepted.content;
        const whole = { ...pass, formatVersion: 1, passTypeIdentifier: "pass.test", serialNumber: accepted.serial };
        isValidPass(whole);
        expect(isValidPass.errors).toBeNull();
        expect(Object.keys(pass).filter((key) => PASS_STYLES.some((one) => one === key))).toEqual([style]);
        expect(Object.keys(images)).toContain("icon.png");
        for (const hash of Object.values(images)) expect(accepted.images.has(hash)).toBe(true);
      }),
      RUNS,
    );
    expect(passes).toBeGreaterThan(100);
  },
  IN_TIME_MS,
);

test(
  "a pass that is read back and changed by nothing stays as it is, and whatever changes it leaves a valid pass or none",
  () => {
    let updates = 0;
    fc.assert(
      fc.property(data, fc.oneof(data, anything), (pass_data, changes) => {
        const accepted = taken({ pass_type: "apple", pass_data });
        if (accepted === null) return;
        const stored = buildPass({ ...accepted, content: JSON.parse(JSON.stringify(accepted.content)) });
        expect(updatedContent(change({}), stored, "Acme")).toEqual(stored.content);
        const update = orRefused(acceptPassUpdate(JSON.parse(JSON.stringify({ pass_data: changes }))));
        const content = update === null ? null : orRefused(updatedContent(update, stored, "Acme"));
        if (update === null || content?.type !== "apple") return;
        updates += 1;
        const images = orRefused(imagesOfUpdate(update, stored));
        isValidPass({ ...content.pass, formatVersion: 1, passTypeIdentifier: "p", serialNumber: "s" });
        expect(isValidPass.errors).toBeNull();
        const known = [...accepted.images.keys(), ...(images?.keys() ?? [])];
        for (const hash of Object.values(content.images)) expect(known).toContain(hash);
      }),
      RUNS,
    );
    expect(updates).toBePositive();
  },
  IN_TIME_MS,
);

test(
  "whatever is sent for a Google pass is refused with 400 or becomes an object with its own ids and state",
  () => {
    const object = fc.record(
      {
        id: fc.constantFrom("33.o", "33.x"),
        classId: fc.constantFrom("33.c", null),
        state: mostly(fc.constantFrom("ACTIVE", "expired")),
        textModulesData: mostly(fc.array(fc.record({ id: mostly(fc.constantFrom("a", "b")), body: anything }))),
        header: mostly(fc.constant({ defaultValue: { language: "en", value: "x" } })),
        linksModuleData: anything,
      },
      { requiredKeys: [] },
    );
    const google = fc.record(
      { class_id: mostly(fc.constant("33.c")), objectId: mostly(fc.constant("33.o")), object_data: mostly(object) },
      { requiredKeys: ["class_id", "objectId"] },
    );
    let updates = 0;
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: google }, anything), mostly(object), (pass_data, changes) => {
        const accepted = taken({ pass_type: "google", pass_data });
        if (accepted === null || accepted.content.type !== "google") return;
        expect(own(accepted.content.object)).toEqual(["33.o", "33.c", true]);
        const stored = buildPass(accepted);
        expect(updatedContent(change({}), stored, "Acme")).toEqual(accepted.content);
        const update = orRefused(acceptPassUpdate({ pass_data: changes }));
        const changed = update === null ? null : orRefused(updatedContent(update, stored, "Acme"));
        if (changed?.type !== "google") return;
        updates += 1;
        expect(own(changed.object)).toEqual(["33.o", "33.c", true]);
      }),
      RUNS,
    );
    expect(updates).toBePositive();
  },
  IN_TIME_MS,
);

function own({ id = null, classId = null, state }: JsonObject) {
  return [id, classId, /^(ACTIVE|COMPLETED|EXPIRED|INACTIVE)$/.test(String(state))];
}

test("a value that its style cannot show is refused: a device would refuse the whole pass", () => {
  const field = (more: JsonObject) => apple({ back_fields: [{ key: "k", ...more }] });
  expect(field({ value: "soon", dateStyle: "PKDateStyleShort" })).toBeNull();
  expect(field({ value: "2026-12-31T10:00Z", date_style: "PKDateStyleShort" })).not.toBeNull();
  expect(field({ value: "12", currencyCode: "EUR" })).toBeNull();
  expect(field({ value: 12, currencyCode: "EUR" })).not.toBeNull();
});

const required: JsonObject = { serial_number: "s", organization_name: "o", description: "d" };
const apple = (more: JsonObject) => taken({ pass_type: "apple", pass_data: { ...required, ...more } });

test("a pass that says nothing more has the platform's design, and a placeholder for its icon", () => {
  const content = apple({})?.content;
  expect(content).toMatchObject({
    style: "generic",
    pass: {
      backgroundColor: "rgb(11, 31, 58)",
      foregroundColor: "rgb(255, 255, 255)",
      labelColor: "rgb(255, 255, 255)",
      generic: {},
    },
  });
  expect(Object.keys(content?.type === "apple" ? content.images : {})).toEqual([
    "icon.png",
    "icon@2x.png",
    "icon@3x.png",
  ]);
});

/** Returns the sentence with which a body is refused. */
function getRefusal(checked: Checked<unknown>): string {
  if (!(checked instanceof Fault)) throw new Error("it was taken");
  return checked.message;
}

test.each([
  [{ backFields: [{ key: "a", value: "1", textAlignment: "up" }] }, "pass_data.backFields[0].textAlignment must"],
  [{ back_fields: [{ key: "a", value: "1", text_alignment: "up" }] }, "pass_data.back_fields[0].text_alignment must"],
  [{ icon2xBase64: "?" }, "pass_data.icon2xBase64 is not"],
  [{ icon_2x_base64: "?" }, "pass_data.icon_2x_base64 is not"],
  [{ logo_text: "snake", logoText: "camel" }, "pass_data.logoText is there twice, in both spellings"],
  [{ icon_base64: png(1_025, 29) }, "pass_data.icon_base64 must be 1 to 1024 pixels"],
])("a refusal of %j names the member as it was sent", (members, sentence) => {
  const passData = { serial_number: "1", organization_name: "Acme", description: "Pass", ...members };
  const body = { pass_type: "apple", pass_data: passData };
  expect(getRefusal(acceptPass(body, CONTEXT))).toStartWith(sentence);
});

test("a refused update of a Google pass names the members where they were sent", () => {
  const accepted = acceptPass(
    { pass_type: "google", pass_data: { class_id: "33.a", object_id: "33.b", object_data: { state: "ACTIVE" } } },
    CONTEXT,
  );
  if (accepted instanceof Fault) throw new Error(accepted.message);
  const refused = (passData: JsonObject) => {
    const body = { pass_data: passData };
    const update = acceptPassUpdate(body);
    if (update instanceof Fault) return update.message;
    return getRefusal(asSent(updatedContent(update, buildPass(accepted), "Acme"), body));
  };
  expect(refused({ state: "GONE" })).toStartWith("pass_data.state must");
  expect(refused({ object_data: { state: "GONE" } })).toStartWith("pass_data.object_data.state must");
  expect(refused({ objectData: { state: "GONE" } })).toStartWith("pass_data.objectData.state must");
  expect(refused({ object_id: "33.c" })).toBe("pass_data.object_id cannot be changed");
  expect(refused({ state: "ACTIVE", notifyMessage: 7 })).toBe("pass_data.notifyMessage must be a string");
});

test("an icon that is sent takes the place of the placeholder in every size", () => {
  const accepted = apple({});
  if (accepted === null) throw new Error("refused");
  const content = orRefused(updatedContent(change({ icon_2x_base64: png(58, 58) }), buildPass(accepted), "Acme"));
  const images = content?.type === "apple" ? content.images : {};
  expect(Object.keys(images).toSorted()).toEqual(["icon.png", "icon@2x.png"]);
  expect(images["icon.png"]).toBe(images["icon@2x.png"] ?? "");
});

test("a boarding pass is told how it travels, and a pass that becomes another style is not", () => {
  const accepted = apple({ style: "boardingPass" });
  expect(accepted?.content).toMatchObject({ pass: { boardingPass: { transitType: "PKTransitTypeGeneric" } } });
  if (accepted === null) throw new Error("refused");
  const update = change({ style: "coupon" });
  expect(updatedContent(update, buildPass(accepted), "Acme")).toMatchObject({ style: "coupon", pass: { coupon: {} } });
  expect(apple({ style: "coupon", transit_type: "PKTransitTypeAir" })).toBeNull();
});
