import { afterAll, beforeAll, expect, test } from "bun:test";
import { AppleAuthority, PASS_TYPE } from "../channels/wallet/apple-authority.ts";
import { must } from "../support/must.ts";
import { openRegistryDatabase, type RegistryDatabase } from "../support/registry-database.ts";
import { openTestRegistry } from "./open-test-registry.ts";

const DAY_MS = 86_400_000;
let database: RegistryDatabase;
let stores: Awaited<ReturnType<typeof openTestRegistry>>;

beforeAll(async () => {
  database = await openRegistryDatabase();
  stores = await openTestRegistry(database);
});
afterAll(async () => {
  await stores.stop();
  await database.close();
});

const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);
const listed = async (days: number) =>
  (await stores.registry.expiring(inDays(days))).map(({ kind, tenantId, name }) => [kind, tenantId, name]);

test("keys and certificates that expire are listed soonest first, with those alone that are in use", async () => {
  const { registry } = stores;
  const before = await registry.tenantCount();
  await must(registry.createTenant({ id: "acme", name: "Acme", allow_custom: ["wallet"] }));
  await must(registry.createTenant({ id: "bare", name: "Bare" }));
  expect(await registry.tenantCount()).toBe(before + 2);
  for (const [name, days] of [
    ["late", 400],
    ["soon", 5],
    ["sooner", 2],
  ] as const) {
    await must(registry.createKey("acme", { name, expiresAt: inDays(days) }));
  }
  await must(registry.createKey("acme", { name: "forever" }));
  const signer = await (await AppleAuthority.make()).signer();
  for (const id of ["acme", "bare"]) await must(registry.putAppleCredentials(id, signer));
  await must(registry.putEmailCredentials("acme", { from_address: "a@b.test" }));

  const keys = [
    ["api_key", "acme", "sooner"],
    ["api_key", "acme", "soon"],
  ];
  expect(await listed(30)).toEqual(keys);
  const all = [...keys, ["apple_certificate", "acme", PASS_TYPE], ["api_key", "acme", "late"]];
  for (let round = 0; round < 2; round += 1) expect(await listed(401)).toEqual(all);

  // A changed value is read again.
  await must(registry.putAppleCredentials("acme", { ...signer, passTypeId: "pass.test.other" }));
  expect(await listed(401)).toContainEqual(["apple_certificate", "acme", "pass.test.other"]);
  await must(registry.changeTenant("acme", { allow_custom: [] }));
  expect((await listed(401)).map(([kind]) => kind)).not.toContain("apple_certificate");
  await must(registry.changeTenant("bare", { allow_custom: ["wallet"] }));
  expect(await listed(401)).toContainEqual(["apple_certificate", "bare", PASS_TYPE]);
  await must(registry.deleteCredentials("bare", "apple"));
  expect((await listed(401)).map(([kind]) => kind)).not.toContain("apple_certificate");
});

test("neither a tenant's many keys nor many tenants' keys push a certificate off the list", async () => {
  const { registry } = stores;
  await must(registry.createTenant({ id: "signing", name: "Signing", allow_custom: ["wallet"] }));
  await must(registry.putAppleCredentials("signing", await (await AppleAuthority.make()).signer()));
  const [first = "", ...others] = Array.from({ length: 101 }, (_, n) => `keyed-${n}`);
  for (const id of [first, ...others]) {
    await must(registry.createTenant({ id, name: id }));
    await must(registry.createKey(id, { name: "one", expiresAt: inDays(1) }));
  }
  for (const name of ["two", "three", "four"]) await must(registry.createKey(first, { name, expiresAt: inDays(0.5) }));
  const all = await listed(401);
  expect(all).toContainEqual(["apple_certificate", "signing", PASS_TYPE]);
  expect(all.filter(([kind]) => kind === "api_key")).toHaveLength(100);
  const ofFirst = all.filter(([, tenantId]) => tenantId === first).map(([, , name]) => name);
  expect(new Set(ofFirst)).toEqual(new Set(["two", "three", "four"]));
  expect(ofFirst).toHaveLength(3);
});
