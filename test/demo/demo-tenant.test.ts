import { afterAll, beforeAll, expect, test } from "bun:test";
import { loadConfig } from "../../src/config/config.ts";
import { openDemoTenant } from "../../src/demo/demo-tenant.ts";
import { done } from "../../src/domain/store-result.ts";
import type { Registry } from "../../src/storage/registry.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { openRegistryDatabase, type RegistryDatabase } from "../support/registry-database.ts";
import { temporaryHome } from "../support/waybill.ts";
import { openTestRegistry } from "../tenants/open-test-registry.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let database: RegistryDatabase;
let stores: Awaited<ReturnType<typeof openTestRegistry>>;

beforeAll(async () => {
  home = await temporaryHome({ hasPostgres: false });
  database = await openRegistryDatabase();
  stores = await openTestRegistry(database);
});
afterAll(async () => {
  await stores.stop();
  await database.close();
  await home.remove();
});

const open = (registry: Registry) =>
  openDemoTenant(loadConfig({ WAYBILL_HOME: home.path }), registry, new QuietTelemetry());

test("the demo tenant's key is known once; who makes or deletes the tenant in the meantime stops no start", async () => {
  const { registry } = stores;
  expect(await open(registry)).toEqual({ exists: true, apiKey: expect.stringMatching(/^wb_/) });
  expect(await open(registry)).toEqual({ exists: true, apiKey: null });
  // The state at the start, before a request created the tenant.
  const before = { ...registry, tenants: async () => done({ items: [], nextCursor: null }) };
  expect(await open(before)).toEqual({ exists: true, apiKey: null });
  await must(registry.deleteTenant("demo"));
  expect(await open(registry)).toEqual({ exists: false, apiKey: null });
});
