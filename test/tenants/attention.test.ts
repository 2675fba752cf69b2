import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { OpenRegistry } from "../../src/app/open-registry.ts";
import type { Series } from "../../src/domain/telemetry.ts";
import { RegistryMetrics } from "../../src/operators/metrics/registry-metrics.ts";
import { keys } from "../../src/tenants/tables.ts";
import { must } from "../support/must.ts";
import { openRegistryDatabase, type RegistryDatabase } from "../support/registry-database.ts";
import { SkippingClock } from "./machine.ts";
import { openTestRegistry } from "./open-test-registry.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const CHANNELS = ["email", "whatsapp", "wallet"];

let database: RegistryDatabase;
let stores: OpenRegistry;
beforeAll(async () => {
  database = await openRegistryDatabase();
  stores = await openTestRegistry(database);
  for (const id of ["acme", "globex"]) await must(stores.registry.createTenant({ id, name: id }));
});
afterAll(async () => {
  await stores.stop();
  await database.close();
});

function shown() {
  const gauges = new Map<string, readonly Series[]>();
  const clock = new SkippingClock();
  const telemetry = { series: (name: string, values: readonly Series[]) => void gauges.set(name, values), log() {} };
  return {
    gauges,
    clock,
    metrics: new RegistryMetrics({ ...stores, channels: CHANNELS, clock, telemetry }),
  };
}

async function key(name: string, expiresInDays: number, usedDaysAgo: number | null, tenantId = "acme"): Promise<void> {
  const expiresAt = new Date(Date.now() + expiresInDays * DAY_MS);
  const { key_id } = await must(stores.registry.createKey(tenantId, { name, expiresAt }));
  const lastUsedAt = usedDaysAgo === null ? null : new Date(Date.now() - usedDaysAgo * DAY_MS);
  await database.db.update(keys).set({ lastUsedAt }).where(eq(keys.id, key_id));
}

test("operators see how many tenants they paused or put on hold, and which keys in use expire soon", async () => {
  await must(stores.registry.steerTenant("acme", "pause", ["email", "wallet"]));
  await must(stores.registry.steerTenant("globex", "pause", ["email"]));
  await must(stores.registry.steerTenant("globex", "hold", ["whatsapp"]));
  await key("later", 20, 1);
  await key("soon", 2, 1);
  await key("not yet", 60, 1);
  await key("over", -1, 2);
  await key("given up", 2, 30);
  await key("never used", 2, null);
  const { gauges, metrics } = shown();
  await metrics.refresh();
  const byChannel = (name: string) => gauges.get(name)?.map(([{ channel }, tenants]) => [channel, tenants]);
  expect(byChannel("tenants_paused")).toEqual([
    ["email", 2],
    ["whatsapp", 0],
    ["wallet", 1],
  ]);
  expect(byChannel("tenants_on_hold")).toEqual([
    ["email", 0],
    ["whatsapp", 1],
    ["wallet", 0],
  ]);
  const expiring = gauges.get("api_key_expiry_seconds") ?? [];
  expect(expiring.map(([labels]) => labels)).toEqual([
    { tenant: "acme", name: "soon" },
    { tenant: "acme", name: "later" },
  ]);
  expect(Math.abs((expiring[0]?.[1] ?? 0) - (2 * DAY_MS) / 1000)).toBeLessThan(60);
});

test("a tenant with many keys that expire hides nobody else's: its first three are shown", async () => {
  await must(stores.registry.createTenant({ id: "initech", name: "Initech" }));
  for (let n = 0; n < 50; n += 1) await key(`many-${n}`, 1 + n / 100, 1, "initech");
  await key("only", 3, 1, "globex");
  const { gauges, metrics } = shown();
  await metrics.refresh();
  const labels = (gauges.get("api_key_expiry_seconds") ?? []).map(([of]) => of);
  expect(labels).toContainEqual({ tenant: "globex", name: "only" });
  const many = labels.filter(({ tenant }) => tenant === "initech").map(({ name }) => name);
  expect(many).toEqual(["many-0", "many-1", "many-2"]);
});

test("the registry is asked once a minute at most, and without an answer nothing is shown", async () => {
  const { gauges, clock, metrics } = shown();
  await metrics.refresh();
  database.isAway = true;
  await metrics.refresh();
  expect(gauges.get("tenants_paused")).toHaveLength(3);
  clock.skip(61_000);
  await metrics.refresh();
  expect([gauges.get("tenants_paused"), gauges.get("api_key_expiry_seconds")]).toEqual([[], []]);
  database.isAway = false;
});
