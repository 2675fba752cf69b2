import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { eq, sql } from "drizzle-orm";
import { CHANNELS } from "../../src/app/channels.ts";
import { joinTenantParts } from "../../src/app/of-channels.ts";
import type { OpenRegistry } from "../../src/app/open-registry.ts";
import { QUEUE_SHARE, type Tenant } from "../../src/domain/tenants/tenant.ts";
import { type AnyDb, Database } from "../../src/storage/postgres/database.ts";
import { tenants } from "../../src/storage/tables.ts";
import { Vault } from "../../src/storage/vault.ts";
import { credentials } from "../../src/tenants/tables.ts";
import { TenantSnapshots } from "../../src/tenants/tenant-snapshots.ts";
import { TenantSource } from "../../src/tenants/tenant-source.ts";
import { eventually } from "../support/eventually.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { deadFeed, machineRandom, SkippingClock, STALE_MS_MAX } from "./machine.ts";
import { MASTER_KEY, openTestRegistry } from "./open-test-registry.ts";
import type { TestDatabase } from "./registry-conformance.ts";
import { openTwoProcesses, type TwoProcesses } from "./two-processes.ts";

/** How tenants are loaded into memory, on every PostgreSQL. */
export function loadingConformance(name: string, create: () => Promise<TestDatabase>): void {
  describe(name, () => {
    let processes: TwoProcesses;
    let opened: OpenRegistry;
    let made = 0;

    beforeAll(async () => {
      processes = await openTwoProcesses(create);
      opened = processes.first;
      opened.start();
      processes.second.start();
    }, 300_000);
    afterAll(async () => {
      await processes?.close();
    });

    /** Ids of new tenants, each of which has a template. */
    async function newTenants(count: number): Promise<readonly string[]> {
      const ids = Array.from({ length: count }, () => `loaded-${(made += 1)}`);
      // A version that no poll would name: remembered entries stay.
      const values = ids.map((id) => sql`(${id}, ${id}, 'free', '{email}', '{}', '{}', 0, 1, 0, now())`);
      await processes.here.db.execute(
        sql`insert into tenants (id, name, plan, channels, permissions, allow_custom, tokens, shard, version, created_at) values ${sql.join(values, sql`, `)}`,
      );
      const bodies = ids.map((id) => sql`(${id}, 'hi', 'email', '{"subject":"s","html":"h","text":null}'::jsonb)`);
      await processes.here.db.execute(
        sql`insert into templates (tenant_id, slug, channel, body) values ${sql.join(bodies, sql`, `)}`,
      );
      return ids;
    }

    test("looking up hundreds of tenants at once takes a few statements, with turns of the event loop between them", async () => {
      const ids = await newTenants(500);
      const counted = countingSelects(processes.here.db);
      const registry = await openTestRegistry({ db: counted.db, close: async () => {} });
      const before = counted.selects;
      let [turns, isDone] = [0, false];
      const counting = (async () => {
        for (; !isDone; turns += 1) await turn();
      })();
      const found = await Promise.all(ids.map((id) => registry.directory.byId(id)));
      isDone = true;
      await counting;
      expect(found.map((tenant) => tenant?.tenantId)).toEqual([...ids]);
      for (const tenant of found)
        expect(tenant?.emailTemplates.get("hi")).toEqual({ subject: "s", html: "h", text: null });
      // One by one they would take five each.
      expect(counted.selects - before).toBeLessThanOrEqual(100);
      expect(turns).toBeGreaterThanOrEqual(10);
    }, 90_000);

    test("a look-up sees a change that was committed while the tenant was being loaded", async () => {
      const [id = ""] = await newTenants(1);
      const { snapshots, gate } = gatedSnapshots(processes.here.db);
      const loading = Promise.resolve(snapshots.byId(id));
      await gate.reached;
      await must(opened.registry.changeTenant(id, { name: "Changed" }));
      snapshots.drop(id);
      const asked = Promise.resolve(snapshots.byId(id));
      gate.open();
      expect((await loading)?.name).toBe("Changed");
      expect((await asked)?.name).toBe("Changed");
      expect((await snapshots.byId(id))?.name).toBe("Changed");
    });

    test("a change of one tenant does not disturb the loading of another", async () => {
      const [id = "", other = ""] = await newTenants(2);
      const { snapshots, gate } = gatedSnapshots(processes.here.db);
      const loading = Promise.resolve(snapshots.byId(id));
      await gate.reached;
      snapshots.drop(other);
      gate.open();
      await loading;
      expect(snapshots.byId(id)).not.toBeInstanceOf(Promise);
    });

    test.each([
      ["it", "tenants"],
      ["its owner", "ownersOfKeys"],
    ] as const)("a key that is revoked while %s is being looked up opens nothing afterwards", async (_what, gated) => {
      const [id = ""] = await newTenants(1);
      const { key_id, api_key } = await must(opened.registry.createKey(id));
      const { snapshots, gate } = gatedSnapshots(processes.here.db, gated);
      const loading = Promise.resolve(snapshots.byApiKey(api_key));
      // The key has been read; its tenant, or the key's owner, is being read.
      await gate.reached;
      await must(opened.registry.revokeKey(id, key_id));
      snapshots.drop(id);
      const asked = Promise.resolve(snapshots.byApiKey(api_key));
      gate.open();
      await loading;
      expect(await asked).toBeNull();
      expect(await snapshots.byApiKey(api_key)).toBeNull();
    });

    test("a change of a plan forgets no tenant: it is in force here at once, elsewhere within a second", async () => {
      const ids = await newTenants(120);
      const { first, second } = processes;
      const plan = { name: "free", requestsPerMinute: 100 + made, deliveriesPerSecond: 3, ...QUEUE_SHARE };
      for (const { directory } of [first, second]) await Promise.all(ids.map((id) => directory.byId(id)));
      await must(first.registry.putPlan(plan));
      for (const id of ids) expect(planNow(first, id)).toMatchObject(plan);
      await eventually(
        "elsewhere",
        () => ids.every((id) => planNow(second, id)?.deliveriesPerSecond === 3),
        STALE_MS_MAX,
      );
    });

    test("a plan that changes while a tenant is being loaded is in force once it is loaded", async () => {
      const [id = ""] = await newTenants(1);
      const { snapshots, gate } = gatedSnapshots(processes.here.db);
      const loading = Promise.resolve(snapshots.byId(id));
      await gate.reached;
      await must(
        opened.registry.putPlan({ name: "free", requestsPerMinute: 77, deliveriesPerSecond: null, ...QUEUE_SHARE }),
      );
      await snapshots.takeNewPlans();
      gate.open();
      await loading;
      expect((await snapshots.byId(id))?.plan.requestsPerMinute).toBe(77);
    });

    test("a tenant whose secrets do not open fails alone", async () => {
      const ids = await newTenants(3);
      const [broken = ""] = ids;
      const elsewhere = { tenantId: "another", kind: "email", field: "credentials" };
      const sealed = new Vault([MASTER_KEY], machineRandom).seal(elsewhere, "{}");
      await processes.here.db
        .update(tenants)
        .set({ allowCustom: ["email"] })
        .where(eq(tenants.id, broken));
      await processes.here.db.insert(credentials).values({ tenantId: broken, kind: "email", sealed });
      const registry = await openTestRegistry(processes.here);
      const [one, ...others] = await Promise.allSettled(ids.map((id) => registry.directory.byId(id)));
      expect(one).toMatchObject({ status: "rejected", reason: { name: "VaultError" } });
      expect(others.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
      await processes.here.db.delete(credentials).where(eq(credentials.tenantId, broken));
    });

    test("a tenant with more rows than fit into one statement is loaded whole", async () => {
      const [id = "", other = ""] = await newTenants(2);
      const html = "x".repeat(100_000);
      for (let n = 0; n < 7; n += 1) {
        // As random as a picture, or it would compress to a few bytes.
        const noise = Buffer.from(machineRandom.fill(new Uint8Array(75_000))).toString("base64");
        await must(
          opened.registry.putTemplate(id, {
            slug: `t${n}`,
            channel: "email",
            subject: "s",
            html: noise + html,
            text: null,
          }),
        );
      }
      const names = sql`select ${id}, 'alias-' || n, 'm', null, '{}' from generate_series(1, 1201) n`;
      await processes.here.db.execute(
        sql`insert into aliases (tenant_id, alias, meta_name, language_code, params) ${names}`,
      );
      const registry = await openTestRegistry(processes.here);
      const [tenant, neighbour] = await Promise.all([id, other].map((each) => registry.directory.byId(each)));
      expect(tenant?.emailTemplates.size).toBe(8);
      expect(tenant?.whatsapp.aliases.size).toBe(1201);
      expect([neighbour?.emailTemplates.size, neighbour?.whatsapp.aliases.size]).toEqual([1, 0]);
    });

    test("more changes than one poll names are all seen elsewhere within a second, and no other tenant is forgotten", async () => {
      const [untouched = "", ...ids] = await newTenants(1_501);
      const { first, second } = processes;
      await Promise.all(ids.map((id) => second.directory.byId(id)));
      await second.directory.byId(untouched);
      const remembered = second.directory.byId(untouched);
      await processes.here.db.execute(
        sql`with s as (update registry_state set version = version + 1500 returning version),
          n as (select id, row_number() over (order by id) as at from tenants where id in ${ids})
          update tenants set name = 'Changed', version = (select version from s) - 1500 + n.at from n where tenants.id = n.id`,
      );
      await eventually(
        "all of them",
        async () =>
          (await Promise.all(ids.map((id) => second.directory.byId(id)))).every((one) => one?.name === "Changed"),
        2 * STALE_MS_MAX,
      );
      expect(second.directory.byId(untouched) === remembered).toBe(true);
      expect(await first.directory.byId(untouched)).not.toBeNull();
    }, 90_000);
  });
}

/** The plan as remembered, without a call to the registry. */
function planNow({ directory }: OpenRegistry, id: string): Tenant["plan"] | null {
  const tenant = directory.byId(id);
  return tenant === null || tenant instanceof Promise ? null : tenant.plan;
}

function countingSelects(db: AnyDb) {
  const counted = {
    selects: 0,
    db: new Proxy(db, {
      get: (of, name) => {
        if (name === "select") counted.selects += 1;
        const member: unknown = Reflect.get(of, name);
        return typeof member === "function" ? member.bind(of) : member;
      },
    }),
  };
  return counted;
}

/** Snapshots that wait with the tenants or keys that they have read, until the gate opens. */
function gatedSnapshots(db: AnyDb, what: "tenants" | "ownersOfKeys" = "tenants") {
  const clock = new SkippingClock();
  const database = new Database(db, clock);
  const vault = new Vault([MASTER_KEY], machineRandom);
  const source = new TenantSource({ database, vault, clock, channels: joinTenantParts(CHANNELS) });
  const reached = Promise.withResolvers<void>();
  const opening = Promise.withResolvers<void>();
  const gated = new Proxy(source, {
    get: (of, name) => {
      if (name === what) {
        return async (names: readonly string[]) => {
          const found = await of[what](names);
          reached.resolve();
          await opening.promise;
          return found;
        };
      }
      const member: unknown = Reflect.get(of, name);
      return typeof member === "function" ? member.bind(of) : member;
    },
  });
  const telemetry = new QuietTelemetry();
  const snapshots = new TenantSnapshots({ source: gated, version: 1, feed: deadFeed, clock, telemetry });
  return { snapshots, gate: { reached: reached.promise, open: () => opening.resolve() } };
}
