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

  // What changes is read again.
  await must(registry.putAppleCredentials("acme", { ...signer, passTypeId: "pass.test.other" }));
  expect(await listed(401)).toContainEqual(["apple_certificate", "acme", "pass.test.other"]);
  await must(registry.changeTenant("acme", { allow_custom: [] }));
  expect((await listed(401)).map(([kind]) => kind)).not.toContain("apple_certificate");
  await must(registry.changeTenant("bare", { allow_custom: ["wallet"] }));
  expect(await listed(401)).toContainEqual(["apple_certificate", "bare", PASS_TYPE]);
  await must(registry.deleteCredentials("bare", "apple"));
  expect((await listed(401)).map(([kind]) => kind)).not.toContain("apple_certificate");
});
