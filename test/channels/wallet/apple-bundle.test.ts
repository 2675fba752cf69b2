import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv from "ajv";
import { unzipSync } from "fflate";
import { PKPass } from "passkit-generator";
import { type PassSigner, PassSigners } from "../../../src/channels/wallet/apple/pass-signers.ts";
import { type PassParts, signedBundle } from "../../../src/channels/wallet/apple/signed-bundle.ts";
import { acceptPass } from "../../../src/channels/wallet/request/accept-pass.ts";
import { BARCODE_FORMATS } from "../../../src/channels/wallet/request/apple-top.ts";
import { Fault } from "../../../src/channels/wallet/request/readers.ts";
import { PASS_STYLES, type PassStyle } from "../../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { issueCertificate, SUBJECT } from "../../../src/runtime/certificates/certificate-authority.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { AppleAuthority, PASS_TYPE, TEAM, validFor } from "./apple-authority.ts";
import schema from "./apple-pass.schema.json";
import { usable } from "./usable.ts";

setDefaultTimeout(90_000);

const TOKEN = "0123456789abcdef0123456789abcdef";
const ICON = new Uint8Array(
  Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  ),
);
const ICON_HASH = createHash("sha256").update(ICON).digest("hex");

let apple: AppleAuthority;
let signer: PassSigner;
let folder: string;

beforeAll(async () => {
  apple = await AppleAuthority.make();
  const signers = new PassSigners({ telemetry: new QuietTelemetry(), nowMs: Date.now });
  signer = usable(await signers.open(await apple.signer(), "acme"));
  folder = await mkdtemp(join(tmpdir(), "waybill-bundle-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

function aPass(style: PassStyle, pass: Readonly<Record<string, unknown>> = {}): PassParts {
  const field = (key: string) => ({ key, label: key.toUpperCase(), value: `${key} ✓`, changeMessage: "now %@" });
  const fields = {
    headerFields: [field("gate")],
    primaryFields: [field("who")],
    secondaryFields: [field("where")],
    auxiliaryFields: [field("when"), field("seat")],
    backFields: [field("terms")],
  };
  const content = {
    type: "apple",
    style,
    pass: {
      organizationName: "Acme",
      description: "A pass",
      backgroundColor: "rgb(11, 31, 58)",
      barcodes: [{ message: "4711", format: "PKBarcodeFormatQR", messageEncoding: "iso-8859-1" }],
      [style]: style === "boardingPass" ? { ...fields, transitType: "PKTransitTypeGeneric" } : fields,
      ...pass,
    },
    images: { "icon.png": ICON_HASH, "icon@2x.png": ICON_HASH },
  };
  return {
    // Values that JSON cannot express do not occur here.
    content: content as PassParts["content"],
    serial: "serial-1",
    authenticationToken: TOKEN,
    webServiceUrl: "https://send.example.com/wallet",
    images: new Map([[ICON_HASH, ICON]]),
  };
}

async function createBundle(
  parts: PassParts,
  nowMs = Date.now(),
  by: PassSigner = signer,
): Promise<Record<string, Uint8Array>> {
  const bytes = await signedBundle(parts, by, nowMs);
  if (bytes === null) throw new Error("an image is missing");
  return unzipSync(bytes);
}

function json(bytes: Uint8Array | undefined): Record<string, unknown> {
  return JSON.parse(new TextDecoder().decode(bytes));
}

async function openssl(...args: readonly string[]): Promise<{ exitCode: number; output: string }> {
  const child = Bun.spawn(["openssl", ...args], { cwd: folder, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { exitCode: await child.exited, output: out + err };
}

/** Verifies as a device would, but with the test's root in place of Apple's. */
async function verify(files: Record<string, Uint8Array>, rootPem = apple.root.certificatePem) {
  await Bun.write(join(folder, "manifest.json"), files["manifest.json"] ?? "");
  await Bun.write(join(folder, "signature"), files["signature"] ?? "");
  await Bun.write(join(folder, "root.pem"), rootPem);
  const verifying = ["cms", "-verify", "-binary", "-inform", "DER", "-in", "signature", "-content", "manifest.json"];
  return openssl(...verifying, "-CAfile", "root.pem", "-purpose", "any", "-out", "/dev/null");
}

test("OpenSSL verifies the signature over the manifest, from the root alone", async () => {
  const files = await createBundle(aPass("generic"));
  expect(await verify(files)).toEqual({ exitCode: 0, output: "CMS Verification successful\n" });
});

test("a certificate that signed itself signs passes that OpenSSL verifies from it alone", async () => {
  const subject = [[SUBJECT.commonName, "somebody"]] as const;
  const { certificatePem, privateKeyPem } = await issueCertificate(
    { subject, ...validFor(30), purpose: "client" },
    null,
  );
  const credentials = { ...(await apple.signer()), certificatePem, privateKeyPem, wwdrPem: null };
  const signers = new PassSigners({ telemetry: new QuietTelemetry(), nowMs: Date.now });
  const self = usable(await signers.open(credentials, "acme"));
  const files = await createBundle(aPass("generic"), Date.now(), self);
  expect(await verify(files, certificatePem)).toEqual({ exitCode: 0, output: "CMS Verification successful\n" });
});

test("a manifest that was changed after it was signed is not verified", async () => {
  const files = await createBundle(aPass("generic"));
  const manifest = new TextDecoder().decode(files["manifest.json"]).replace("icon.png", "icom.png");
  expect((await verify({ ...files, "manifest.json": new TextEncoder().encode(manifest) })).exitCode).not.toBe(0);
});

test("the signature is detached and says when it was made", async () => {
  const atMs = Date.now() - 5 * 60_000;
  const files = await createBundle(aPass("generic"), atMs);
  await Bun.write(join(folder, "signature"), files["signature"] ?? "");
  const { output } = await openssl("cms", "-cmsout", "-print", "-noout", "-inform", "DER", "-in", "signature");
  expect(output).toContain("eContent: <ABSENT>");
  expect(output).toContain("object: signingTime (1.2.840.113549.1.9.5)");
  const time = /UTCTIME:(.+) GMT/.exec(output)?.[1] ?? "";
  expect(Date.parse(`${time} GMT`)).toBe(Math.floor(atMs / 1000) * 1000);
  expect(output.match(/d\.certificate:/g)).toHaveLength(2);
});

test("the manifest names every file but itself and the signature, with the SHA-1 of its bytes", async () => {
  const files = await createBundle(aPass("coupon"));
  const { "manifest.json": manifest, signature: _, ...others } = files;
  const hashes = Object.entries(others).map(([name, bytes]) => [name, createHash("sha1").update(bytes).digest("hex")]);
  expect(json(manifest)).toEqual(Object.fromEntries(hashes));
  expect(Object.keys(files).toSorted()).toEqual(["icon.png", "icon@2x.png", "manifest.json", "pass.json", "signature"]);
  expect(others["icon.png"]).toEqual(ICON);
});

test("pass.json of every style is valid by the schema of Apple's passes", async () => {
  const { $schema: _, ...draft4 } = schema;
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(draft4);
  for (const style of PASS_STYLES) {
    const pass = json((await createBundle(aPass(style)))["pass.json"]);
    validate(pass);
    expect({ style, errors: validate.errors }).toEqual({ style, errors: null });
    validate({ ...pass, serialNumber: 4711 });
    expect(validate.errors).not.toBeNull();
  }
});

test("passkit-generator reads every field of every style back", async () => {
  for (const style of PASS_STYLES) {
    const parts = aPass(style);
    const files = await createBundle(parts);
    const buffers = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes)]));
    const pass = new PKPass(buffers);
    // One that older devices know comes before the newest.
    const found = pass.types.at(-1);
    expect(found?.type).toBe(style);
    const given = parts.content.pass[style];
    for (const list of ["headerFields", "primaryFields", "secondaryFields", "auxiliaryFields", "backFields"] as const) {
      expect(Array.from(found?.[list] ?? [])).toEqual(Reflect.get(given as object, list));
    }
    expect(pass.props).toMatchObject({ serialNumber: "serial-1", teamIdentifier: TEAM });
  }
});

/** Passes that only iOS 18, 26 and 27 know, as a request asks for them. */
const NEWER: readonly (readonly [string, JsonObject])[] = [
  [
    "a poster ticket",
    {
      style: "eventTicket",
      preferredStyleSchemes: ["posterEventTicket", "eventTicket"],
      eventLogoText: "Final",
      bagPolicyURL: "https://example.com/bags",
      contactVenueEmail: "arena@example.com",
      useAutomaticColors: true,
      footerBackgroundColor: "rgb(1, 2, 3)",
      semantics: { eventName: "Final", venueName: "Arena", eventType: "PKEventTypeSports" },
      additionalInfoFields: [{ key: "info", label: "Bags", value: "Small ones" }],
      upcomingPassInformation: [
        { identifier: "b", name: "Second leg", type: "event", URLs: { sellURL: "https://example.com" } },
      ],
    },
  ],
  [
    "a semantic boarding pass",
    {
      style: "boardingPass",
      transitType: "PKTransitTypeAir",
      preferredStyleSchemes: ["semanticBoardingPass", "boardingPass"],
      changeSeatURL: "https://example.com/seat",
      semantics: { airlineCode: "EX", flightNumber: 123, departureCityName: "London" },
    },
  ],
  [
    "a poster card",
    {
      style: "posterGeneric",
      headerFields: [{ key: "number", value: "102035" }],
      footerFields: [{ key: "kind", value: "Family" }],
      barcodes: [
        { format: "PKBarcodeFormatCodabar", message: "123456789" },
        { format: "PKBarcodeFormatQR", message: "1" },
      ],
      featuredActions: [{ identifier: "a", type: "membershipBenefits", url: "https://example.com/benefits" }],
    },
  ],
];

/** Returns the files of the pass that a request with these members creates. */
async function requested(members: JsonObject) {
  const passData = { serial_number: "serial-1", organization_name: "Acme", description: "A pass", ...members };
  const context = { templates: new Map(), title: "Acme", issuerId: null, kind: "generic" } as const;
  const accepted = acceptPass({ pass_type: "apple", pass_data: passData }, context);
  if (accepted instanceof Fault || accepted.content.type !== "apple") throw new Error(JSON.stringify(accepted));
  const images = new Map(Array.from(accepted.images, ([hash, png]) => [hash, new Uint8Array(png)]));
  return createBundle({ ...aPass("generic"), content: accepted.content, images });
}

test.each(NEWER)(
  "%s is signed so that OpenSSL verifies it, and valid by schema and second parser",
  async (_what, members) => {
    const files = await requested(members);
    expect(await verify(files)).toEqual({ exitCode: 0, output: "CMS Verification successful\n" });
    const pass = json(files["pass.json"]);
    const { $schema: _, ...draft4 } = structuredClone(schema);
    // An iOS older than 27, whose formats it lacks.
    draft4.definitions.barcode.properties.format.enum = [...BARCODE_FORMATS];
    const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(draft4);
    validate(pass);
    expect(validate.errors).toBeNull();
    const buffers = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes)]));
    const read = new PKPass(buffers);
    const {
      style,
      headerFields: _h,
      footerFields: _f,
      additionalInfoFields: _a,
      transitType: __,
      barcodes: _b,
      ...top
    } = members;
    expect(read.types.at(-1)?.type).toBe(String(style) as PassStyle);
    expect(read.props).toMatchObject(top);
    if (style === "posterGeneric") expect(pass["generic"]).toEqual(pass["posterGeneric"]);
  },
);

test("each language has its texts and images in the bundle, and a second parser finds them", async () => {
  const logo = Buffer.from(ICON).toString("base64");
  const text = 'Tor "7" \\ neu\n;';
  const localizations = {
    de: { strings: { gate: text, Gate: "Tor" }, logo_base64: logo },
    "pt-BR": { icon2xBase64: logo },
  };
  const files = await requested({ localizations });
  expect(await verify(files)).toEqual({ exitCode: 0, output: "CMS Verification successful\n" });
  expect(Object.keys(json(files["manifest.json"]))).toEqual(
    expect.arrayContaining(["de.lproj/pass.strings", "de.lproj/logo.png", "pt-BR.lproj/icon@2x.png"]),
  );
  expect(json(files["pass.json"])).not.toHaveProperty("localizations");
  expect(new TextDecoder().decode(files["de.lproj/pass.strings"])).toBe(
    String.raw`"gate" = "Tor \"7\" \\ neu\n;";` + '\n"Gate" = "Tor";\n',
  );
  const buffers = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes)]));
  expect(new PKPass(buffers).languages).toContain("de");
});

test("a pass that asks its holder has a form that a second parser takes, and none once it was filled in", async () => {
  const nfc = { message: "card", encryptionPublicKey: "AA==" };
  const personalization = {
    requiredPersonalizationFields: ["PKPassPersonalizationFieldName", "PKPassPersonalizationFieldPhoneNumber"],
    description: "Join",
    termsAndConditions: "Be kind.",
  };
  const parts = aPass("storeCard", { nfc });
  const logos = { "personalizationLogo@2x.png": ICON_HASH, "de.lproj/personalizationLogo@2x.png": ICON_HASH };
  const content = { ...parts.content, images: { ...parts.content.images, ...logos } };
  const files = await createBundle({ ...parts, content: { ...content, personalization } });
  expect(await verify(files)).toMatchObject({ exitCode: 0 });
  const buffers = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes)]));
  const { certificatePem: signerCert, privateKeyPem: signerKey } = await apple.signer();
  // It leaves out a form that Wallet would not show.
  const again = new PKPass(buffers, { wwdr: apple.wwdr.certificatePem, signerCert, signerKey }).getAsRaw();
  expect(json(again["personalization.json"])).toEqual(personalization);
  expect(Object.keys(again)).toContain("personalizationLogo@2x.png");

  const after = await createBundle({ ...parts, content: { ...content, personalized: "mark" } });
  expect(Object.keys(after).filter((name) => /personalization/.test(name))).toEqual([]);
  expect(await verify(after)).toMatchObject({ exitCode: 0 });
});

test("nothing in a pass replaces what the service itself sets", async () => {
  const pass = json(
    (
      await createBundle(
        aPass("generic", {
          formatVersion: 2,
          passTypeIdentifier: "pass.test.other",
          teamIdentifier: "ZZZZZ99999",
          serialNumber: "another",
          webServiceURL: "https://elsewhere.example",
          authenticationToken: "another-token-of-16",
        }),
      )
    )["pass.json"],
  );
  expect(pass).toMatchObject({
    formatVersion: 1,
    passTypeIdentifier: PASS_TYPE,
    teamIdentifier: TEAM,
    serialNumber: "serial-1",
    webServiceURL: "https://send.example.com/wallet",
    authenticationToken: TOKEN,
  });
});

test("a pass whose image is not there is not signed", async () => {
  expect(await signedBundle({ ...aPass("generic"), images: new Map() }, signer, Date.now())).toBeNull();
});

test("a time beyond 2049 is written as RFC 5652 has it", async () => {
  const files = await createBundle(aPass("generic"), Date.UTC(2051, 4, 6, 7, 8, 9));
  await Bun.write(join(folder, "late"), files["signature"] ?? "");
  const { output } = await openssl("asn1parse", "-inform", "DER", "-in", "late");
  expect(output).toContain("GENERALIZEDTIME   :20510506070809Z");
});

test("credentials that expire while they are remembered sign nothing more", async () => {
  let nowMs = Date.now();
  const clocked = new PassSigners({ telemetry: new QuietTelemetry(), nowMs: () => nowMs });
  const credentials = await apple.signer();
  usable(await clocked.open(credentials, "acme"));
  nowMs += 366 * 24 * 60 * 60 * 1000;
  const why = "the credentials of the Apple wallet cannot sign: the certificate expired";
  expect(await clocked.open(credentials, "acme")).toEqual({ why });
});
