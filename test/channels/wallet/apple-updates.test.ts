import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { SUBJECT } from "../../../src/runtime/certificates/certificate-authority.ts";
import { PLATFORM, WalletFront } from "../../http/support/wallet-front.ts";
import { AppleAuthority, PASS_TYPE } from "./apple-authority.ts";

setDefaultTimeout(60_000);

const NFC_SUBJECT = [[SUBJECT.commonName, `Pass Type ID with NFC: ${PASS_TYPE}`]] as const;

/** The tests replace its signer. */
const platform = { ...PLATFORM };
let world: WalletFront;
let serials = 0;

beforeAll(async () => {
  world = await WalletFront.start(platform);
});
afterAll(() => world?.stop());

const aPass = (data: object = {}) => {
  serials += 1;
  const required = { serial_number: `s-${serials}`, organization_name: "Acme", description: "A pass" };
  return { pass_type: "apple", pass_data: { ...required, ...data } };
};
const create = (body: unknown, path = "/v1/passes/create") => world.front.post(path, body);
/** `passData` may be serialized JSON. */
const put = (passId: string, passData: object | string) =>
  world.front.fetch(`/v1/passes/${passId}`, {
    method: "PUT",
    headers: { "X-API-Key": world.front.apiKey, "Content-Type": "application/json" },
    body: `{"pass_data":${typeof passData === "string" ? passData : JSON.stringify(passData)}}`,
  });

test("nfc is refused where the certificate may not sign it, before a token is charged", async () => {
  const authority = await AppleAuthority.make();
  const signers = { plain: await authority.signer(), nfc: await authority.signer({ subject: NFC_SUBJECT }) };
  platform.apple = signers.plain;
  const before = await world.balance();
  const spki = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ type: "spki", format: "der" });
  const nfc = { message: "4711", encryptionPublicKey: spki.toString("base64") };
  const why = `nfc needs a certificate that Apple issued for NFC, and the one for ${PASS_TYPE} is not`;
  for (const path of ["/v1/passes/create", "/v1/send/wallet"]) {
    const refused = await create(aPass({ nfc }), path);
    expect([refused.status, refused.body["error"]]).toEqual([400, `pass_data.${why}`]);
  }
  expect(await world.balance()).toBe(before);
  expect((await create(aPass())).status).toBe(202);
  const { passId } = await world.deliverLast();
  expect((await put(passId, { nfc })).body["error"]).toBe(`pass_data.${why}`);
  platform.apple = signers.nfc;
  expect((await put(passId, { nfc })).status).toBe(202);
  expect((await create(aPass({ nfc }))).status).toBe(202);
  // A certificate that was renewed without NFC does not block an update of other members.
  platform.apple = signers.plain;
  expect((await put(passId, { logo_text: "New" })).status).toBe(202);
});

test("an update that changes nothing keeps the version, is told so, and its job tells nobody", async () => {
  await create(aPass({ back_fields: [{ key: "a", value: "1" }], logo_text: "Same" }));
  const { passId } = await world.deliverLast();
  await world.registry.passes.putBundle(passId, 1, new Uint8Array([1]));
  const same = { backFields: [{ value: "1", key: "a" }], logo_text: "Same", label_color: "#FFF" };
  const answer = await put(passId, same);
  expect([answer.status, answer.body]).toEqual([
    202,
    { pass_id: passId, job_id: world.lastJob.jobId, status: "updating", unchanged: true },
  ]);
  expect(JSON.parse(world.lastJob.payload)).toEqual({ action: "update", passId, version: 1, isCurrent: true });
  expect((await world.lastPass()).version).toBe(1);
  // A version that has not been announced to the devices is not current: repeating the update announces it.
  await put(passId, { logo_text: "New" });
  const repeated = await put(passId, { logo_text: "New" });
  expect(repeated.body).toMatchObject({ status: "updating", unchanged: true });
  expect(JSON.parse(world.lastJob.payload)).toEqual({ action: "update", passId, version: 2 });
});

test("digits beyond a double's are kept in extra, and tell one value from another", async () => {
  await create(aPass());
  const { passId } = await world.deliverLast();
  for (const [id, version] of [
    ["1193287364518273124", 2],
    ["1193287364518273124", 2],
    ["1193287364518273125", 3],
  ] as const) {
    expect((await put(passId, `{"extra":{"id":${id}}}`)).status).toBe(202);
    const pass = await world.lastPass();
    expect([pass.version, JSON.stringify(pass.content)]).toEqual([version, expect.stringContaining(`"id":${id}`)]);
  }
});
