import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { Page } from "../../src/domain/page.ts";
import type { Suppression, SuppressionRecord } from "../../src/domain/tenants/suppressions.ts";
import type { AnyDb } from "../../src/storage/postgres/database.ts";
import type { Registry } from "../../src/storage/registry.ts";
import { ownLimits } from "../../src/tenants/limits.ts";
import { tenantShard } from "../../src/tenants/tenant-shard.ts";
import { must } from "../support/must.ts";
import { SHARDS } from "./open-test-registry.ts";

interface Ports {
  registry(): Registry;
  db(): AnyDb;
  /** Returns the id of a new tenant. */
  newTenant(): Promise<string>;
}

/** The guarantees of the suppression list. */
export function suppressionConformance({ registry: createRegistry, db, newTenant }: Ports): void {
  test("a suppression is kept once per address, with its newest reason, for its tenant alone", async () => {
    const registry = createRegistry();
    const [id, otherId] = [await newTenant(), await newTenant()];
    const first = await must(registry.putSuppression(id, "ann@example.com", "bounced"));
    expect(first).toMatchObject({ address: "ann@example.com", reason: "bounced" });
    const again = await must(registry.putSuppression(id, "ann@example.com", "complained"));
    expect(again).toEqual({ ...first, reason: "complained" });
    expect(await registry.suppressionReason(id, "ann@example.com")).toBe("complained");
    expect(await registry.suppressionReason(otherId, "ann@example.com")).toBeNull();
    expect((await must(registry.suppressions(id, null, 10))).items).toEqual([again]);
    expect(await must(registry.deleteSuppression(otherId, "ann@example.com"))).toBe(false);
    expect(await must(registry.deleteSuppression(id, "ann@example.com"))).toBe(true);
    expect(await must(registry.deleteSuppression(id, "ann@example.com"))).toBe(false);
    expect(await registry.suppressionReason(id, "ann@example.com")).toBeNull();
  });

  test("a tenant adds addresses within its share, and whoever else adds one takes none of it", async () => {
    const registry = createRegistry();
    const [id, otherId] = [await newTenant(), await newTenant()];
    const putOwn = async (name: string) => (await registry.putOwnSuppression(id, `${name}@x.example`, "manual")).kind;
    await db().execute(sql`update tenants set own_suppressions = ${ownLimits.suppressionsMax - 2} where id = ${id}`);
    for (const name of ["a", "b", "c"]) await must(registry.putSuppression(id, `${name}@x.example`, "bounced"));
    // An address that is already on the list takes no further space.
    expect([await putOwn("a"), await putOwn("d"), await putOwn("d")]).toEqual(["done", "done", "done"]);
    expect(await registry.suppressionReason(id, "a@x.example")).toBe("manual");
    const together = await Promise.all(["e", "e", "e", "f", "f"].map(putOwn));
    expect(new Set(together)).toEqual(new Set(["done", "full"]));
    const items = (await must(registry.suppressions(id, null, 10))).items.map(({ address }) => address[0]);
    expect([items.slice(0, 4), items.length]).toEqual([["a", "b", "c", "d"], 5]);
    expect(await putOwn("g")).toBe("full");
    await must(registry.putSuppression(id, "g@x.example", "complained"));
    expect(await putOwn("g")).toBe("done");
    expect(await must(registry.deleteSuppression(id, "c@x.example"))).toBe(true);
    expect([await putOwn("h"), await putOwn("i")]).toEqual(["done", "full"]);
    await must(registry.putOwnSuppression(otherId, "a@x.example", "manual"));
    expect(await registry.putOwnSuppression("nobody", "a@x.example", "manual")).toMatchObject({ kind: "missing" });
  });

  test("an erased address stays on the list without being stored, and is not stored again", async () => {
    const registry = createRegistry();
    const [id, otherId] = [await newTenant(), await newTenant()];
    const first = await must(registry.putSuppression(id, "ann@example.com", "bounced"));
    await must(registry.putSuppression(otherId, "ann@example.com", "manual"));
    expect(await must(registry.eraseSuppression(id, "ann@example.com", false))).toMatchObject({ rows: 1 });
    expect(await must(registry.eraseSuppression(id, "ann@example.com", false))).toEqual({
      rows: 0,
      names: ["ann@example.com"],
    });
    expect(await must(registry.eraseSuppression(id, "eve@example.com", false))).toEqual({ rows: 0, names: [] });
    const [erased] = (await must(registry.suppressions(id, null, 10))).items;
    expect(erased).toEqual({ ...first, address: expect.stringMatching(/^sha:[0-9a-f]{40}$/) });
    expect(await must(registry.putSuppression(id, "ann@example.com", "complained"))).toMatchObject({
      address: erased?.address,
      reason: "complained",
    });
    await must(registry.eraseSuppression(id, "ann@example.com", true));
    expect((await must(registry.suppressions(id, null, 10))).items).toHaveLength(1);
    expect(await registry.suppressionReason(otherId, "ann@example.com")).toBe("manual");
    await must(registry.eraseSuppression(otherId, "ann@example.com", false));
    expect((await must(registry.suppressions(otherId, null, 10))).items[0]?.address).not.toBe(erased?.address);
    expect(await must(registry.deleteSuppression(id, "ann@example.com"))).toBe(true);
    expect((await must(registry.suppressions(id, null, 10))).items).toEqual([]);
    await must(registry.eraseSuppression(id, "new@example.com", true));
    expect((await must(registry.suppressions(id, null, 10))).items).toMatchObject([{ reason: "manual" }]);
    expect(await registry.eraseSuppression("nobody", "a@x.example", true)).toEqual({ kind: "missing", what: "tenant" });
  });

  test("a suppression for a topic stands beside the one for all messages, and each goes by itself", async () => {
    const registry = createRegistry();
    const id = await newTenant();
    const listed = async (address?: string) =>
      (await must(registry.suppressions(id, null, 10, address))).items.map(({ address, topic, reason }) => [
        address,
        topic,
        reason,
      ]);
    for (const name of ["ann@x.example\tnews", "ann@x.example", "ann@x.example.org", "ann@x.example\tweekly offers"]) {
      await must(registry.putSuppression(id, name, "unsubscribed"));
    }
    const ofAnn = [
      ["ann@x.example", undefined, "unsubscribed"],
      ["ann@x.example", "news", "unsubscribed"],
      ["ann@x.example", "weekly offers", "unsubscribed"],
    ];
    expect(await listed()).toEqual([...ofAnn, ["ann@x.example.org", undefined, "unsubscribed"]]);
    expect(await listed("ann@x.example")).toEqual(ofAnn);
    const first = await must(registry.suppressions(id, null, 2));
    const second = await must(registry.suppressions(id, first.nextCursor, 2));
    expect(second.items.map(({ topic }) => topic)).toEqual(["weekly offers", undefined]);
    expect(await must(registry.deleteSuppression(id, "ann@x.example\tnews", "manual"))).toBe(false);
    expect(await must(registry.deleteSuppression(id, "ann@x.example\tnews", "unsubscribed"))).toBe(true);
    expect(await must(registry.deleteSuppression(id, "ann@x.example"))).toBe(true);
    expect(await listed("ann@x.example")).toEqual(ofAnn.slice(2));
  });

  test("an erased recipient is on the list without the address for each topic, also for later ones", async () => {
    const registry = createRegistry();
    const id = await newTenant();
    await must(registry.putSuppression(id, "ann@x.example\tnews", "unsubscribed"));
    await must(registry.putSuppression(id, "ann@x.example.org", "manual"));
    const names = ["ann@x.example", "ann@x.example\tnews"];
    expect(await must(registry.eraseSuppression(id, "ann@x.example", true))).toEqual({ rows: 1, names });
    await must(registry.putSuppression(id, "ann@x.example\toffers", "unsubscribed"));
    const all = (await must(registry.suppressions(id, null, 10))).items;
    expect(all.map(({ topic, reason }) => [topic, reason])).toEqual([
      [undefined, "manual"],
      [undefined, "manual"],
      ["news", "unsubscribed"],
      ["offers", "unsubscribed"],
    ]);
    expect(JSON.stringify(all)).not.toMatch(/ann@x\.example"/);
    expect((await must(registry.suppressions(id, null, 10, "ann@x.example"))).items).toHaveLength(3);
    expect(await must(registry.deleteSuppression(id, "ann@x.example\tnews"))).toBe(true);
  });

  test("a list is paged in the order of addresses, each once, and an invalid cursor is refused", async () => {
    const registry = createRegistry();
    const id = await newTenant();
    const addresses = ["a+b@x.example", '"q q"@x.example', "m@x.example", "z@x.example", "b@x.example"];
    for (const address of addresses) await must(registry.putSuppression(id, address, "manual"));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<SuppressionRecord> = await must(registry.suppressions(id, cursor, 2));
      seen.push(...page.items.map(({ address }) => address));
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(seen).toEqual(addresses.toSorted());
    const refused = registry.suppressions(id, "not a cursor", 2);
    expect(await refused).toEqual({ kind: "invalid_cursor" });
  });

  test("a shard's list holds its tenants' suppressions and no others', page by page", async () => {
    const registry = createRegistry();
    const ids = await Promise.all(Array.from({ length: 6 }, newTenant));
    const [first = ""] = ids;
    const { shard } = await must(registry.tenant(first));
    for (const id of ids) await must(registry.putSuppression(id, `${id}@x.example`, "unsubscribed"));
    const later = await must(registry.createTenant({ id: nextOfShard(first, shard), name: "Later" }));
    // On the second page, although its address sorts before all of them.
    await must(registry.putSuppression(later.id, "a@x.example", "manual"));
    await db().execute(
      sql`insert into suppressions (tenant_id, address, reason, created_at)
        select ${first}, 'u' || n || '@x.example', 'bounced', now() from generate_series(1, 510) n`,
    );
    const seen: Suppression[] = [];
    let page: readonly Suppression[];
    do {
      page = await registry.suppressionsOfShard(shard, seen.at(-1) ?? null);
      seen.push(...page);
    } while (page.length > 0);
    expect(seen.filter(({ tenantId }) => tenantId === first)).toHaveLength(511);
    expect(new Set(seen.map(({ tenantId, address }) => `${tenantId} ${address}`)).size).toBe(seen.length);
    for (const id of [...ids, later.id]) {
      const isHere = (await must(registry.tenant(id))).shard === shard;
      expect([id, seen.some(({ tenantId }) => tenantId === id)]).toEqual([id, isHere]);
    }
  }, 90_000);

  test("an unknown tenant has no list", async () => {
    const registry = createRegistry();
    const calls = [
      () => registry.putSuppression("nobody", "a@x.example", "manual"),
      () => registry.deleteSuppression("nobody", "a@x.example"),
      () => registry.suppressions("nobody", null, 10),
    ];
    for (const call of calls) expect(await call()).toEqual({ kind: "missing", what: "tenant" });
  });
}

/** An id of the shard that sorts right after this one. */
function nextOfShard(id: string, shard: number): string {
  for (let at = 0; ; at += 1) if (tenantShard(`${id}-${at}`, SHARDS) === shard) return `${id}-${at}`;
}
