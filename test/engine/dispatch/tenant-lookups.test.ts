import { expect, test } from "bun:test";
import type { Tenant, TenantDirectory } from "../../../src/domain/tenants/tenant.ts";
import { TenantLookups } from "../../../src/engine/dispatch/tenant-lookups.ts";
import { aTenant } from "../../support/tenants.ts";

/** A directory whose loads end when the test says so. */
class SlowDirectory implements TenantDirectory {
  readonly loads: {
    readonly tenantId: string;
    readonly end: (tenant: Tenant | null) => void;
    readonly fail: () => void;
  }[] = [];
  readonly known = new Map<string, Tenant>();

  byApiKey() {
    return null;
  }
  byId(tenantId: string): Tenant | Promise<Tenant | null> {
    const known = this.known.get(tenantId);
    if (known !== undefined) return known;
    return new Promise((resolve, reject) => {
      this.loads.push({ tenantId, end: resolve, fail: () => reject(new Error("away")) });
    });
  }
  byIdNow(tenantId: string) {
    return this.known.get(tenantId);
  }
}

class Asking {
  heard: Tenant | null | "away" | undefined = undefined;
  tenantLoaded(tenant: Tenant | null) {
    this.heard = tenant;
  }
  tenantAway() {
    this.heard = "away";
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("thousands of simultaneous look-ups load a few at a time, each once, and all get their answer", async () => {
  const directory = new SlowDirectory();
  const lookups = new TenantLookups(directory);
  const askers = Array.from({ length: 3_000 }, (_, i) => ({ tenantId: `t-${i}`, asking: new Asking() }));
  for (const { tenantId, asking } of askers) expect(lookups.find(tenantId, asking)).toBeUndefined();
  let most = 0;
  let loads = 0;
  while (directory.loads.length > 0) {
    most = Math.max(most, directory.loads.length);
    const { tenantId, end, fail } = directory.loads.shift() ?? { tenantId: "", end: () => {}, fail: () => {} };
    loads += 1;
    if (loads % 7 === 0) fail();
    else end(aTenant({ tenantId }));
    await settled();
  }
  expect(most).toBeLessThanOrEqual(256);
  expect(loads).toBe(3_000);
  expect(askers.filter(({ asking }) => asking.heard === undefined)).toEqual([]);
});

test("look-ups in memory do not wait behind loads, and a caller that left triggers no load", async () => {
  const directory = new SlowDirectory();
  const lookups = new TenantLookups(directory);
  for (let i = 0; i < 256; i += 1) lookups.find(`t-${i}`, new Asking());
  const tenant = aTenant({ tenantId: "known" });
  directory.known.set("known", tenant);
  expect(lookups.find("known", new Asking())).toBe(tenant);
  const gone = new Asking();
  lookups.find("gone", gone);
  lookups.forget(gone);
  const last = new Asking();
  lookups.find("last", last);
  directory.loads[0]?.end(null);
  await settled();
  expect(directory.loads.map(({ tenantId }) => tenantId)).toContain("last");
  expect(directory.loads.map(({ tenantId }) => tenantId)).not.toContain("gone");
});

test("a caller that asks again while its answer is on its way loads once, and hears nothing once it has left", async () => {
  const directory = new SlowDirectory();
  const lookups = new TenantLookups(directory);
  const [asking, gone] = [new Asking(), new Asking()];
  for (const each of [asking, asking, gone]) expect(lookups.find("t", each)).toBeUndefined();
  expect(directory.loads.length).toBe(2);
  lookups.forget(gone);
  for (const { fail } of directory.loads.splice(0)) fail();
  await settled();
  expect([asking.heard, gone.heard]).toEqual(["away", undefined]);
  expect(lookups.find("t", asking)).toBeUndefined();
  expect(directory.loads.length).toBe(1);
});
