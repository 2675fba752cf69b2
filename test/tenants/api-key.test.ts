import { expect, test } from "bun:test";
import { apiKeyHash, apiKeyPrefix, isApiKey, newApiKey } from "../../src/tenants/api-key.ts";
import { RecentMisses } from "../../src/tenants/recent-misses.ts";
import { tenantShard } from "../../src/tenants/tenant-shard.ts";
import { machineRandom } from "./machine.ts";

test("new keys have the form of a key, differ, and use every character of the alphabet alike", () => {
  const keys = Array.from({ length: 2_000 }, () => newApiKey(machineRandom));
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.every(isApiKey)).toBe(true);
  const counts = new Map<string, number>();
  for (const char of keys.join("").replaceAll("wb_", "")) counts.set(char, (counts.get(char) ?? 0) + 1);
  expect(counts.size).toBe(58);
  // 64,000 characters: 1,103 of each, with a standard deviation of 33.
  for (const count of counts.values()) expect(count).toBeWithin(1_103 - 8 * 33, 1_103 + 8 * 33);
});

test("a key's hash is its SHA-256, and its prefix leaves at least 128 bits unsaid", () => {
  expect(apiKeyHash("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const key = newApiKey(machineRandom);
  const checksumChars = 4;
  const unsaid = key.length - apiKeyPrefix(key).length - checksumChars;
  expect(unsaid * Math.log2(58)).toBeGreaterThan(128);
});

test("a tenant's shard is FNV-1a of its id, and tenants spread over all shards", () => {
  // 0xbf9cf968, published with the algorithm.
  expect(tenantShard("foobar", 2 ** 32)).toBe(0xbf9cf968);
  const shards = Array.from({ length: 1_600 }, (_, n) => tenantShard(`tenant-${n}`, 16));
  for (let shard = 0; shard < 16; shard += 1) {
    expect(shards.filter((one) => one === shard).length).toBeWithin(50, 200);
  }
});

test("misses expire, and the oldest are forgotten first when there are too many", () => {
  const misses = new RecentMisses(1_000, 2);
  for (const name of ["a", "b", "c"]) misses.add(name, 0);
  expect(["a", "b", "c"].map((name) => misses.has(name, 999))).toEqual([false, true, true]);
  expect(misses.has("c", 1_000)).toBe(false);
  misses.add("d", 500);
  misses.delete("d");
  expect(misses.has("d", 501)).toBe(false);
});
