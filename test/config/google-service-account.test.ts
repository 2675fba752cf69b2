import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";

const pem = (type: "rsa" | "ec"): string => {
  const { privateKey } =
    type === "rsa"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
};
const account = (members: object = {}) =>
  JSON.stringify({ client_email: "passes@acme.iam.gserviceaccount.com", private_key: RSA, ...members });

const RSA = pem("rsa");
let home = "";
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "waybill-config-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

function load(serviceAccount: string, issuerId = "3388000000012345678") {
  const set = { GOOGLE_SERVICE_ACCOUNT: serviceAccount, GOOGLE_ISSUER_ID: issuerId };
  return loadConfig({ WAYBILL_HOME: home, ...set });
}

test("a service account is read from its JSON key, from the key's file, and with line breaks that were escaped", () => {
  const file = join(home, "key.json");
  writeFileSync(file, account());
  const expected = { clientEmail: "passes@acme.iam.gserviceaccount.com", privateKeyPem: RSA };
  for (const text of [account(), file, account({ private_key: RSA.replaceAll("\n", "\\n") })]) {
    expect(load(text).googleServiceAccount).toEqual(expected);
  }
});

test("an account that cannot sign for Google is refused at the start, and no key is shown", () => {
  const wrong = [
    join(home, "nothing.json"),
    "{",
    account({ client_email: 7 }),
    account({ private_key: pem("ec") }),
    account({ private_key: "secret" }),
    account({ private_key: RSA.slice(0, 300) }),
  ];
  for (const text of wrong) {
    let message = "";
    try {
      load(text);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain("GOOGLE_SERVICE_ACCOUNT is set; it should be");
    expect(message).not.toContain("BEGIN");
    expect(message).not.toContain("gserviceaccount");
  }
});

test("an account without its issuer, or an issuer without its account, is named", () => {
  expect(() => load(account(), "")).toThrow("GOOGLE_ISSUER_ID is unset");
  expect(() => load("")).toThrow("GOOGLE_SERVICE_ACCOUNT is unset");
});
