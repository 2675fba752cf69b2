/**
 * Signs one pass repeatedly: `bun bench/load/sign-worker.ts <waybill|passkit-generator> <seconds>` prints its result as
 * JSON. Content, images, certificates and the number of passes in flight are the same for both.
 */
import { createHash, randomBytes } from "node:crypto";
import { PKPass } from "passkit-generator";
import { PassSigners } from "../../src/channels/wallet/apple/pass-signers.ts";
import { signedBundle } from "../../src/channels/wallet/apple/signed-bundle.ts";
import { makeAppleIdentity, readAppleIdentity } from "../../src/channels/wallet/sandbox/apple-identity.ts";
import { round, summarise } from "./latency.ts";
import type { SignRun } from "./sign.ts";

const [, , variant = "", seconds = "5"] = process.argv;
const UNDER_WAY = 4;
const TICK_MS = 2;

const identity = readAppleIdentity(await makeAppleIdentity(Date.now()));
if (identity === null) throw new Error("the identity that was made cannot be read");
const { signer: credentials } = identity;
const telemetry = { count() {}, gauge() {}, time() {}, log() {} };
const signer = await new PassSigners({ telemetry, nowMs: Date.now }).open(credentials, "-");
if ("why" in signer) throw new Error(signer.why);

const field = (key: string) => ({ key, label: key.toUpperCase(), value: `value of ${key}`, changeMessage: "now %@" });
const pass = {
  organizationName: "Acme",
  description: "A ticket",
  backgroundColor: "rgb(11, 31, 58)",
  barcodes: [{ message: "4711", format: "PKBarcodeFormatQR", messageEncoding: "iso-8859-1" }],
  eventTicket: {
    headerFields: [field("gate")],
    primaryFields: [field("who")],
    secondaryFields: ["where", "when"].map(field),
    auxiliaryFields: ["row", "seat"].map(field),
    backFields: [field("terms")],
  },
} as const;
// An icon, a logo and a strip of usual sizes.
const images = Object.entries({
  "icon.png": 3_000,
  "icon@2x.png": 8_000,
  "logo@2x.png": 15_000,
  "strip@2x.png": 80_000,
});
const files = images.map(([name, bytes]) => ({ name, bytes: new Uint8Array(randomBytes(bytes)) }));
const hashed = files.map((file) => ({ ...file, hash: createHash("sha256").update(file.bytes).digest("hex") }));
const own = {
  serial: "serial-1",
  authenticationToken: "0123456789abcdef0123456789abcdef",
  webServiceUrl: "https://send.example.test/wallet",
};
const parts = {
  ...own,
  content: {
    type: "apple",
    style: "eventTicket",
    pass,
    images: Object.fromEntries(hashed.map(({ name, hash }) => [name, hash])),
  },
  images: new Map(hashed.map(({ hash, bytes }) => [hash, bytes])),
} as const;

const passJson = {
  ...pass,
  formatVersion: 1,
  passTypeIdentifier: credentials.passTypeId,
  teamIdentifier: credentials.teamId,
  serialNumber: own.serial,
  webServiceURL: own.webServiceUrl,
  authenticationToken: own.authenticationToken,
};
const certificates = {
  wwdr: credentials.wwdrPem ?? "",
  signerCert: credentials.certificatePem,
  signerKey: credentials.privateKeyPem,
};

/** Both return the file's bytes. */
const VARIANTS: Readonly<Record<string, () => Promise<Uint8Array | null>>> = {
  waybill: () => signedBundle(parts, signer, Date.now()),
  "passkit-generator": async () => {
    // The loop never pauses on its own, so other tasks would never run.
    await new Promise((resolve) => setImmediate(resolve));
    const buffers = Object.fromEntries(files.map(({ name, bytes }) => [name, Buffer.from(bytes)]));
    return new PKPass({ ...buffers, "pass.json": Buffer.from(JSON.stringify(passJson)) }, certificates).getAsBuffer();
  },
};
const sign = VARIANTS[variant] ?? (() => Promise.reject(new Error(`there is no variant ${variant}`)));

async function signFor(ms: number): Promise<number> {
  const endAt = performance.now() + ms;
  let signed = 0;
  const one = async () => {
    while (performance.now() < endAt) {
      if ((await sign()) === null) throw new Error("nothing was signed");
      signed += 1;
    }
  };
  await Promise.all(Array.from({ length: UNDER_WAY }, one));
  return signed;
}

await signFor(500);
const delaysMs: number[] = [];
let expectedAt = performance.now() + TICK_MS;
const tick = () => {
  const now = performance.now();
  delaysMs.push(Math.max(0, now - expectedAt));
  expectedAt = now + TICK_MS;
  timer = setTimeout(tick, TICK_MS);
};
let timer = setTimeout(tick, TICK_MS);
const startedAt = performance.now();
const cpu = process.cpuUsage();
const signed = await signFor(Number(seconds) * 1000);
const { user, system } = process.cpuUsage(cpu);
clearTimeout(timer);
const result: SignRun = {
  perSecond: round((signed * 1000) / (performance.now() - startedAt)),
  cpuMs: round((user + system) / 1000 / signed),
  delayMs: summarise(delaysMs),
};
console.log(JSON.stringify(result));
