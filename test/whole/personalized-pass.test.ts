import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { eventually } from "../support/eventually.ts";
import { verifiedPasses } from "../support/verified-passes.ts";
import { type DevicePass, openPass, WalletDevice } from "../support/wallet-device.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";
import { eventsIn, Receiver } from "../webhooks/receiver.ts";

setDefaultTimeout(90_000);

const ANN = {
  fullName: "Ann Lee",
  emailAddress: "ann@example.com",
  phoneNumber: "+5491122334455",
  later: { by: "Apple" },
};
const TOKEN = "b0f3c2a19d7e4f5a8c6b1e2d3f4a5b6c";
const PNG = Buffer.concat([
  Buffer.from("89504e470d0a1a0a0000000d49484452000001c200000078", "hex"),
  crypto.getRandomValues(new Uint8Array(64)),
  Buffer.from("0000000049454e44ae426082", "hex"),
]).toString("base64");
const FORM = {
  required_personalization_fields: ["PKPassPersonalizationFieldName", "PKPassPersonalizationFieldEmailAddress"],
  description: "Join, and get a coffee",
  terms_and_conditions: "Be kind.",
};

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
const receiver = new Receiver();
let folder: string;
let apiKey = "";

beforeAll(async () => {
  home = await temporaryHome();
  folder = await mkdtemp(join(tmpdir(), "waybill-personalized-"));
  waybill = await startWaybill(home.path);
  await waybill.operator("POST", "/tenants", { id: "cafe", name: "Cafe", channels: ["wallet"], tokens: 10 });
  apiKey = (await waybill.operator("POST", "/tenants/cafe/keys")).body.api_key;
});

afterAll(async () => {
  await waybill?.stop();
  await receiver.stop();
  await home?.remove();
  await rm(folder, { recursive: true, force: true });
}, 90_000);

/** The root of the sandbox's certificates. */
const root = () => join(home.path, "apple-sandbox.pem");
const call = (method: string, path: string, body?: unknown) => waybill.request(apiKey, method, path, body);

async function aCard(serial_number: string): Promise<DevicePass & { readonly passId: string }> {
  const key = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey;
  const encryptionPublicKey = key.export({ type: "spki", format: "der" }).toString("base64");
  const pass_data = {
    serial_number,
    organization_name: "Cafe",
    description: "Card",
    style: "storeCard",
    nfc: { message: serial_number, encryptionPublicKey },
    personalization: FORM,
    personalization_logo_2x_base64: PNG,
    primary_fields: [{ key: "holder", label: "Holder", value: "-", changeMessage: "Welcome, %@" }],
  };
  const accepted = await call("POST", "/v1/passes/create", { pass_type: "apple", pass_data });
  expect([accepted.status, accepted.body.error]).toEqual([202, undefined]);
  const { result } = await finalJob(waybill, apiKey, accepted.body.job_id);
  return { passId: result.pass_id, ...openPass(new Uint8Array(Buffer.from(result.pkpass_base64, "base64"))) };
}

const unzipFiles = (bytes: Uint8Array | null) => unzipSync(bytes ?? new Uint8Array());
const jsonIn = (bytes: Uint8Array | null, name: string) =>
  JSON.parse(new TextDecoder().decode(unzipFiles(bytes)[name]));
const ofForm = (bytes: Uint8Array | null) =>
  Object.keys(unzipFiles(bytes)).filter((name) => name.startsWith("personalization"));

/** Verifies as Wallet does, but from the test's root. */
async function isSigned(content: string, signature: Uint8Array): Promise<string> {
  await Bun.write(join(folder, "content"), content);
  await Bun.write(join(folder, "signature"), signature);
  const { stderr } =
    await Bun.$`openssl cms -verify -binary -inform DER -in signature -content content -CAfile ${root()} -purpose any -out /dev/null`
      .cwd(folder)
      .nothrow()
      .quiet();
  return stderr.toString();
}
const SIGNED = "CMS Verification successful\n";

test("a card asks its holder to sign up; what is entered reaches the tenant once, and the card asks no longer", async () => {
  const card = await aCard("CARD-1");
  expect(jsonIn(card.bytes, "personalization.json")).toEqual({
    requiredPersonalizationFields: FORM.required_personalization_fields,
    description: FORM.description,
    termsAndConditions: FORM.terms_and_conditions,
  });
  expect(ofForm(card.bytes)).toEqual(["personalization.json", "personalizationLogo@2x.png"]);
  const [files] = await verifiedPasses(card.bytes, root());
  expect(files).toContain("personalization.json");

  // While the webhook is not called, no data is stored: the holder can try again later.
  const phone = new WalletDevice("phone-1", "00ff".repeat(16));
  expect((await phone.personalize(card, TOKEN, ANN)).status).toBe(409);
  await call("POST", "/v1/webhooks", { url: receiver.url, event_types: ["pass.personalized"] });
  const answer = await phone.personalize(card, TOKEN, ANN);
  expect(answer.status).toBe(200);
  expect(await isSigned(TOKEN, answer.bytes)).toBe(SIGNED);
  expect(await isSigned(`${TOKEN}x`, answer.bytes)).not.toBe(SIGNED);
  expect(ofForm(phone.getBytes(card))).toEqual([]);
  expect(jsonIn(phone.getBytes(card), "pass.json")).toEqual(jsonIn(card.bytes, "pass.json"));

  // A request whose answer was lost is repeated, and others' entries are not accepted.
  const repeated = await phone.personalize(card, "another-token", ANN);
  expect([repeated.status, await isSigned("another-token", repeated.bytes)]).toEqual([200, SIGNED]);
  expect((await phone.personalize(card, TOKEN, { fullName: "Eve" })).status).toBe(409);
  await eventually("the webhook", () => receiver.calls.length > 0);

  // The tenant's update is like any other.
  expect(await phone.add({ ...card, bytes: phone.getBytes(card) ?? card.bytes })).toBe(201);
  const pass_data = { primary_fields: [{ key: "holder", value: "Ann Lee" }] };
  const updated = await call("PUT", `/v1/passes/${card.passId}`, { pass_data });
  expect(updated.status).toBe(202);
  await finalJob(waybill, apiKey, updated.body.job_id);
  phone.push(card.passTypeId);
  await phone.idle();
  expect(JSON.stringify(jsonIn(phone.getBytes(card), "pass.json"))).toContain('"value":"Ann Lee"');
  expect(ofForm(phone.getBytes(card))).toEqual([]);
  expect(phone.complaints).toEqual([]);

  // Until it asks again.
  const asked = await call("PUT", `/v1/passes/${card.passId}`, { pass_data: { personalization: FORM } });
  await finalJob(waybill, apiKey, asked.body.job_id);
  expect((await phone.personalize(card, TOKEN, ANN)).status).toBe(200);
  await eventually("both", () => receiver.calls.length > 1);
  const told: readonly unknown[] = receiver.calls.flatMap(eventsIn);
  const data = { channel: "wallet", pass_id: card.passId, serial_number: "CARD-1", entered: ANN };
  expect(told).toEqual([1, 2].map(() => ({ type: "pass.personalized", timestamp: expect.any(String), data })));
});

test("nothing is signed for a stranger that could be taken for a pass, nor of a pass that asks for nothing", async () => {
  const card = await aCard("CARD-2");
  const { serviceUrl, passTypeId, serial, authenticationToken } = card;
  const personalize = async (body: unknown, headers: Record<string, string> = {}, name = serial) => {
    const address = `${serviceUrl}/v1/passes/${passTypeId}/${name}/personalize`;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(address, { method: "POST", headers, body: text });
    const said: unknown = await answer.json();
    return [answer.status, said] as const;
  };
  const manifest = new TextDecoder().decode(unzipFiles(card.bytes)["manifest.json"]);
  const plist = "<plist><dict><key>pass.json</key><string>00</string></dict></plist>";
  for (const personalizationToken of [manifest, plist, "{ a = b; }", "", "a\u0000b", "x".repeat(2_049), 7, null]) {
    const [status, body] = await personalize({ personalizationToken, requiredPersonalizationInfo: ANN });
    const error = expect.stringContaining("personalizationToken must be a text of");
    expect([status, body]).toEqual([400, { error }]);
  }
  for (const requiredPersonalizationInfo of [undefined, null, "x", [1]]) {
    const [status, body] = await personalize({ personalizationToken: TOKEN, requiredPersonalizationInfo });
    expect([status, body]).toEqual([400, { error: "requiredPersonalizationInfo must be an object" }]);
  }
  expect((await personalize("{"))[0]).toBe(400);
  const given = { personalizationToken: TOKEN, requiredPersonalizationInfo: ANN };
  expect((await personalize({ ...given, more: "x".repeat(16_384) }))[0]).toBe(413);
  expect((await personalize(given, { authorization: `ApplePass ${authenticationToken}x` }))[0]).toBe(401);
  expect((await personalize(given, {}, "CARD-9"))[0]).toBe(401);

  const taken = await call("PUT", `/v1/passes/${card.passId}`, { pass_data: { personalization: null } });
  await finalJob(waybill, apiKey, taken.body.job_id);
  expect((await personalize(given))[0]).toBe(401);
  expect(await personalize(given, { authorization: `ApplePass ${authenticationToken}` })).toEqual([
    404,
    { error: "the pass asks its holder for nothing" },
  ]);
});
