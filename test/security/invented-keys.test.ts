import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHANNELS } from "../../src/app/channels.ts";
import { type OpenRegistry, openRegistry } from "../../src/app/open-registry.ts";
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { Vault } from "../../src/storage/vault.ts";
import { apiKeyHash, apiKeyPrefix, hasChecksum, isApiKey, newApiKey } from "../../src/tenants/api-key.ts";
import { keys } from "../../src/tenants/tables.ts";
import { openMadePglite } from "../support/made-home.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { deadFeed, machineRandom, SkippingClock } from "../tenants/machine.ts";

const clock = new SkippingClock();
const vault = new Vault([new Uint8Array(32).fill(7)], machineRandom);
let folder: string;
let database: OpenDatabase;
let registry: OpenRegistry;
/** Statements that read from the database. */
let reads = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-invented-keys-"));
  database = await openMadePglite(join(folder, "postgres"));
  const db = new Proxy(database.db, {
    get: (target, name) => {
      if (name === "select") reads += 1;
      return Reflect.get(target, name, target);
    },
  });
  const common = {
    senderDomain: "waybill.test",
    shards: 16,
    vault,
    clock,
    random: machineRandom,
    feed: deadFeed,
    telemetry: new QuietTelemetry(),
  };
  registry = await openRegistry({ channels: CHANNELS, ...common, db });
  await registry.registry.createTenant({ id: "acme", name: "Acme" });
}, 300_000);

afterAll(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(() => {
  // Cached entries are read again where it matters.
  clock.skip(60_000);
  reads = 0;
});

/** Keys in the right form, as a stranger makes them up. */
function invented(count: number): readonly string[] {
  const made: string[] = [];
  while (made.length < count) {
    const key = `wb_${newApiKey(machineRandom).slice(3, -4)}${newApiKey(machineRandom).slice(3, 7)}`;
    if (!hasChecksum(key)) made.push(key);
  }
  return made;
}

/** Keys as the former release made them. */
async function formerKey(): Promise<string> {
  const [apiKey = ""] = invented(1);
  const id = `key_${newApiKey(machineRandom).slice(3, 19)}`;
  const row = { id, tenantId: "acme", hash: apiKeyHash(apiKey), prefix: apiKeyPrefix(apiKey), createdAt: new Date() };
  await database.db.insert(keys).values(row);
  return apiKey;
}

test("a key has at least 160 random bits, and a checksum", () => {
  const key = newApiKey(machineRandom);
  expect(isApiKey(key) && hasChecksum(key)).toBe(true);
  const secret = key.slice("wb_".length, -4);
  expect(secret.length * Math.log2(58)).toBeGreaterThan(160);
  const changed = Array.from(secret, (char, at) => {
    const other = char === "1" ? "2" : "1";
    return `wb_${secret.slice(0, at)}${other}${secret.slice(at + 1)}${key.slice(-4)}`;
  });
  expect(changed.filter(hasChecksum)).toEqual([]);
});

test("a thousand invented keys cost at most one statement together", async () => {
  const attacks = invented(1_000);
  const answers = await Promise.all(attacks.map((key) => registry.directory.byApiKey(key)));
  expect(answers.filter((tenant) => tenant !== null)).toEqual([]);
  expect(reads).toBe(1);
});

test("a key without a checksum opens its tenant, even one that is made while the program runs", async () => {
  const before = await formerKey();
  expect((await registry.directory.byApiKey(before))?.tenant.tenantId).toBe("acme");
  await Promise.all(invented(100).map((key) => registry.directory.byApiKey(key)));
  const later = await formerKey();
  // Twenty times the duration of the reads, on a machine that may be slow.
  clock.skip(60_000);
  expect((await registry.directory.byApiKey(later))?.tenant.tenantId).toBe("acme");
  expect((await registry.directory.byApiKey(before))?.tenant.tenantId).toBe("acme");
});

test("a key without a checksum can be revoked", async () => {
  const former = await formerKey();
  expect((await registry.directory.byApiKey(former))?.tenant.tenantId).toBe("acme");
  const [row] = (await must(registry.registry.keys("acme"))).filter(({ prefix }) => prefix === apiKeyPrefix(former));
  await must(registry.registry.revokeKey("acme", row?.key_id ?? ""));
  expect(await registry.directory.byApiKey(former)).toBeNull();
});

test("a key made with the checksum opens its tenant, and costs its own look-up alone", async () => {
  const { api_key } = await must(registry.registry.createKey("acme"));
  expect((await registry.directory.byApiKey(api_key))?.tenant.tenantId).toBe("acme");
});
