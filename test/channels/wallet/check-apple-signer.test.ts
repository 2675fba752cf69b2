import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isIssuedBy, readCertificate } from "../../../src/channels/wallet/apple/certificate.ts";
import { checkAppleSigner, permitsNfc } from "../../../src/channels/wallet/apple/check-apple-signer.ts";
import { PassSigners, PLATFORM } from "../../../src/channels/wallet/apple/pass-signers.ts";
import type { AppleSigner } from "../../../src/domain/channels/wallet.ts";
import type { Series, SeriesGauges } from "../../../src/domain/telemetry.ts";
import { issueCertificate, SUBJECT } from "../../../src/runtime/certificates/certificate-authority.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { AppleAuthority, authority, PASS_TYPE, TEAM, validFor } from "./apple-authority.ts";
import { usable } from "./usable.ts";

setDefaultTimeout(90_000);

const DAY_MS = 24 * 60 * 60 * 1000;
const WWDR_FOLDER = new URL("../../../src/channels/wallet/apple/wwdr/", import.meta.url).pathname;

let apple: AppleAuthority;
let good: AppleSigner;

beforeAll(async () => {
  apple = await AppleAuthority.make();
  good = await apple.signer();
});

const check = (signer: AppleSigner, nowMs = Date.now()) => checkAppleSigner(signer, nowMs).problem;
const warnings = (signer: AppleSigner) => checkAppleSigner(signer, Date.now()).warnings;

test("credentials that fit together are in order", () => {
  expect(checkAppleSigner(good, Date.now())).toEqual({ problem: null, warnings: [] });
});

test("an encrypted key opens with its passphrase alone, whichever way it was encrypted", () => {
  const key = createPrivateKey(good.privateKeyPem);
  const pkcs8 = key.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "geheim" }).toString();
  const pkcs1 = key.export({ type: "pkcs1", format: "pem", cipher: "aes-128-cbc", passphrase: "geheim" }).toString();
  for (const privateKeyPem of [pkcs8, pkcs1]) {
    expect(check({ ...good, privateKeyPem, passphrase: "geheim" })).toBeNull();
    expect(check({ ...good, privateKeyPem, passphrase: "falsch" })).toBe(
      "the private key is encrypted, and the passphrase is wrong",
    );
    expect(check({ ...good, privateKeyPem, passphrase: null })).toBe(
      "the private key is encrypted, and a passphrase is needed",
    );
  }
});

test("what a certificate permits of nfc is read from Apple's extension, or from its name", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-nfc-"));
  const made = async (...extensions: readonly string[]) => {
    const args = [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      "key.pem",
      "-subj",
      `/UID=${PASS_TYPE}/OU=${TEAM}`,
    ];
    const child = Bun.spawn(["openssl", ...args, ...extensions], { cwd: folder, stdout: "pipe", stderr: "ignore" });
    const certificatePem = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    return { ...good, certificatePem };
  };
  try {
    expect(permitsNfc(await made("-addext", "1.2.840.113635.100.6.1.26=ASN1:NULL"))).toBe(true);
    expect(permitsNfc(await made())).toBe(false);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  expect(permitsNfc(good)).toBe(false);
  const subject = [[SUBJECT.commonName, `Pass Type ID with NFC: ${PASS_TYPE}`]] as const;
  const named = await apple.signer({ subject });
  expect([permitsNfc(named), check(named)]).toEqual([true, null]);
});

test("a key of another certificate is refused", async () => {
  const other = await apple.signer();
  expect(check({ ...good, privateKeyPem: other.privateKeyPem })).toBe(
    "the private key does not belong to the certificate",
  );
});

test("keys that Apple issues no certificate for are refused", () => {
  const pem = (key: { export(options: { type: "pkcs8"; format: "pem" }): string | Buffer }) =>
    key.export({ type: "pkcs8", format: "pem" }).toString();
  const elliptic = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const short = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  expect(check({ ...good, privateKeyPem: pem(elliptic) })).toBe("the private key should be an RSA key");
  expect(check({ ...good, privateKeyPem: pem(short) })).toBe(
    "the private key has 1024 bits; it should have 2048 or more",
  );
});

test("a certificate is used neither after its end nor before its beginning", async () => {
  const nowMs = Date.now();
  const past = await apple.signer({ notBeforeMs: nowMs - 30 * DAY_MS, notAfterMs: nowMs - DAY_MS });
  const future = await apple.signer({ notBeforeMs: nowMs + DAY_MS, notAfterMs: nowMs + 30 * DAY_MS });
  expect(check(past)).toMatch(/^the certificate expired on \d{4}-\d\d-\d\d$/);
  expect(check(future)).toMatch(/^the certificate is not valid before \d{4}-\d\d-\d\d$/);
  expect(check(good, nowMs + 3700 * DAY_MS)).toMatch(/^the certificate expired/);
});

test("an expired intermediate is refused, for no device would follow it", async () => {
  const nowMs = Date.now();
  const request = { ...authority("Old"), notBeforeMs: nowMs - 30 * DAY_MS, notAfterMs: nowMs - DAY_MS };
  const old = await issueCertificate(request, apple.root);
  const subject = [
    [SUBJECT.userId, PASS_TYPE],
    [SUBJECT.organizationalUnit, TEAM],
  ] as const;
  const { certificatePem, privateKeyPem } = await issueCertificate(
    { subject, ...validFor(30), purpose: "client" },
    old,
  );
  expect(check({ ...good, certificatePem, privateKeyPem, wwdrPem: old.certificatePem })).toMatch(
    /^the intermediate certificate expired on /,
  );
});

test("a certificate of another pass type or another team is refused, and both are named", async () => {
  const otherType = await apple.signer({ passTypeId: "pass.test.other" });
  expect(check(otherType)).toBe(`the certificate is for the pass type "pass.test.other", not "${PASS_TYPE}"`);
  expect(check({ ...good, teamId: "ZZZZZ99999" })).toBe(
    `the certificate belongs to the team "${TEAM}", not "ZZZZZ99999"`,
  );
});

test("a pass type in Apple's extension counts as much as the one in the subject", async () => {
  const subject = [
    [SUBJECT.userId, PASS_TYPE],
    [SUBJECT.organizationalUnit, TEAM],
  ] as const;
  const contradictory = await apple.signer({ subject, passTypeId: "pass.test.other" });
  expect(check(contradictory)).toContain('"pass.test.other"');
});

test("a certificate that names its pass type in nothing but its common name is held to that", async () => {
  for (const name of ["Pass Type ID: pass.test.event", "Pass Type ID with NFC: pass.test.event"]) {
    const named = await apple.signer({ subject: [[SUBJECT.commonName, name]] });
    expect(check(named)).toBeNull();
    expect(check({ ...named, passTypeId: "pass.test.other" })).toContain('"pass.test.event"');
  }
});

test("a certificate that names neither pass type nor team can be used, with a warning for each", async () => {
  const request = { subject: [[SUBJECT.commonName, "somebody"]] as const, ...validFor(30), purpose: "client" as const };
  const { certificatePem, privateKeyPem } = await issueCertificate(request, apple.wwdr);
  const nameless = { ...good, certificatePem, privateKeyPem };
  expect(check(nameless)).toBeNull();
  expect(warnings(nameless)).toEqual([
    expect.stringContaining("names no pass type"),
    expect.stringContaining("names no team"),
  ]);
});

test("an intermediate that did not issue the certificate is refused", async () => {
  const impostor = await issueCertificate(authority("Test Developer Relations"), null);
  for (const wwdrPem of [apple.root.certificatePem, impostor.certificatePem]) {
    expect(check({ ...good, wwdrPem })).toBe("the intermediate certificate is not the one that issued the certificate");
  }
});

test("the intermediate is found in a whole chain", () => {
  const chain = [apple.root, apple.wwdr].map(({ certificatePem }) => certificatePem).join("\n");
  expect(checkAppleSigner({ ...good, wwdrPem: chain }, Date.now())).toEqual({ problem: null, warnings: [] });
});

test("without an intermediate a certificate of an unknown issuer signs alone, and the log warns of it", async () => {
  const alone = { ...good, wwdrPem: null };
  expect(check(alone)).toBeNull();
  expect(warnings(alone)).toEqual([expect.stringContaining("issued by none of Apple's intermediates")]);
  const telemetry = new QuietTelemetry();
  const signers = new PassSigners({ telemetry, nowMs: () => Date.now() });
  const signer = usable(await signers.open(alone, "acme"));
  await signers.open(alone, "acme");
  expect(signer.tls.cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
  expect(usable(await signers.open(good, "acme")).tls.cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  expect(telemetry.lines).toEqual(["warn: no device of Apple's will accept what these credentials sign"]);
});

test("the metric of a certificate's end goes on with the time, and ends with the credentials", async () => {
  let nowMs = Date.now();
  const shown = new Map<string, readonly Series[]>();
  const gauges: SeriesGauges = { series: (name, values) => void shown.set(name, values) };
  const signers = new PassSigners({ telemetry: new QuietTelemetry(), nowMs: () => nowMs });
  await signers.open(good, "acme");
  const labels = { tenant: "acme", pass_type: PASS_TYPE };
  const toDays = (values: readonly Series[] = []) => values.map(([, left]) => Math.floor((left * 1000) / DAY_MS));
  for (const days of [364, 334]) {
    signers.measure(gauges, () => true);
    expect(shown.get("apple_certificate_expiry_days")).toEqual([[labels, days]]);
    expect(toDays(shown.get("credential_expiry_seconds"))).toEqual([days]);
    nowMs += 30 * DAY_MS;
  }
  signers.measure(gauges, () => false);
  expect([...shown.values()]).toEqual([[], []]);
  signers.measure(gauges, () => true);
  expect([...shown.values()]).toEqual([[], []]);
  await signers.open(good, PLATFORM);
  signers.measure(gauges, () => false);
  expect(shown.get("apple_certificate_expiry_days")).toHaveLength(1);
});

test("hostile PEM texts are refused, in a sentence that holds nothing of the key", () => {
  const body = good.certificatePem.replace(/-----[^-]+-----|\s/g, "");
  const wrapped = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
  const nested = Buffer.from(Array.from({ length: 5_000 }, () => [0x30, 0x80]).flat()).toString("base64");
  const texts = [
    "",
    "not a certificate",
    good.privateKeyPem,
    wrapped(""),
    wrapped("AAAA"),
    wrapped(body.slice(0, 400)),
    wrapped(body.replace(/^M/, "N")),
    wrapped(nested),
    wrapped(Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).toString("base64")),
    "-----BEGIN CERTIFICATE-----".repeat(10_000),
    "A".repeat(10_000_000),
  ];
  for (const text of texts) {
    expect(check({ ...good, certificatePem: text })).toMatch(/^the certificate cannot be read/);
    expect(check({ ...good, wwdrPem: text })).toMatch(/^the intermediate certificate cannot be read/);
    if (text !== good.privateKeyPem) {
      expect(check({ ...good, privateKeyPem: text })).toMatch(/^the private key cannot be read/);
    }
  }
});

test("what a certificate says of itself stays on one line of the sentence", async () => {
  const subject = [
    [SUBJECT.userId, PASS_TYPE],
    [SUBJECT.organizationalUnit, `evil\nUID=${PASS_TYPE}${"x".repeat(5_000)}`],
  ] as const;
  const sentence = check(await apple.signer({ subject }));
  expect(sentence).not.toContain("\n");
  expect(sentence?.length).toBeLessThan(250);
});

test("Apple's own intermediates are read, are of today, and come from Apple's root", async () => {
  const fingerprints: Record<string, string | null> = {};
  for (const name of ["G3", "G4", "G5", "G6"]) {
    const certificate = readCertificate(await Bun.file(`${WWDR_FOLDER}AppleWWDRCA${name}.pem`).text());
    expect(certificate?.notAfterMs).toBeGreaterThan(Date.now());
    if (certificate !== null) expect(isIssuedBy(certificate, certificate)).toBe(false);
    fingerprints[name] = certificate?.x509.fingerprint256.replaceAll(":", "").toLowerCase() ?? null;
  }
  // The fingerprints of the files as Apple publishes them.
  expect(fingerprints).toEqual({
    G3: "dcf21878c77f4198e4b4614f03d696d89c66c66008d4244e1b99161aac91601f",
    G4: "ea4757885538dd8cb59ff4556f676087d83c85e70902c122e42c0808b5bce14c",
    G5: "53fd008278e5a595fe1e908ae9c5e5675f26243264a5a6438c023e3ce2870760",
    G6: "bdd4ed6e74691f0c2bfd01be0296197af1379e0418e2d300efa9c3bef642ca30",
  });
});
