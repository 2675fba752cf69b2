import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { OpenRegistry } from "../../../../src/app/open-registry.ts";
import type { NewDomain } from "../../../../src/domain/channels/domain.ts";
import type { OpenDatabase } from "../../../../src/storage/postgres/database.ts";
import { eventually } from "../../../support/eventually.ts";
import { must } from "../../../support/must.ts";
import { STALE_MS_MAX } from "../../../tenants/machine.ts";
import { openTestRegistry } from "../../../tenants/open-test-registry.ts";
import type { TestDatabase } from "../../../tenants/registry-conformance.ts";
import { openTwoProcesses, type TwoProcesses } from "../../../tenants/two-processes.ts";

const PASSED = { check: "dkim", result: "passed", why: null } as const;

/** The guarantees of the registry for domains, on every PostgreSQL. */
export function domainConformance(name: string, create: () => Promise<TestDatabase>): void {
  describe(name, () => {
    let processes: TwoProcesses;
    let here: OpenDatabase;
    let first: OpenRegistry;
    /** Another process on the same database, which receives no notifications. */
    let second: OpenRegistry;

    beforeAll(async () => {
      processes = await openTwoProcesses(create);
      ({ here, first, second } = processes);
      second.start();
      for (const id of ["acme", "globex"]) await must(first.registry.createTenant({ id, name: id }));
    }, 300_000);

    afterAll(async () => {
      await processes?.close();
    });

    const aDomain = (domain: string, tenantId = "acme"): NewDomain => ({
      tenantId,
      domain,
      relayEnabled: true,
      smtpEnabled: false,
      selector: "wb1",
      publicKey: "MIIpublic",
      privateKeyPem: `-----BEGIN PRIVATE KEY----- of ${domain}`,
      returnPathHost: `bounce.${domain}`,
    });
    const verdict = { relayStatus: "verified", smtpStatus: "pending", findings: [PASSED], checkedAtMs: 5_000 } as const;

    test("a domain is given back as it was registered and judged, without its key", async () => {
      const { privateKeyPem: _, ...shown } = aDomain("a.test");
      const created = await must(first.domains.create(aDomain("a.test")));
      expect(created).toMatchObject({ ...shown, relayStatus: "pending", smtpStatus: "pending", findings: [] });
      expect(created.checkedAtMs).toBeNull();
      expect(JSON.stringify(created)).not.toContain("PRIVATE");
      const judged = await must(first.domains.judge(created, verdict));
      expect(judged).toEqual({ ...created, ...verdict });
      expect(await must(second.domains.one("acme", "a.test"))).toEqual(judged);
      expect(await must(second.domains.all("acme"))).toEqual([judged]);
    });

    test("of two who register one domain at once, one gets it", async () => {
      const both = [first.domains.create(aDomain("race.test")), second.domains.create(aDomain("race.test", "globex"))];
      const refused = (await Promise.all(both)).filter(({ kind }) => kind !== "done");
      expect(refused).toEqual([{ kind: "taken", domain: "race.test" }]);
    });

    test("another tenant neither sees, judges nor deletes it", async () => {
      const mine = await must(first.domains.create(aDomain("mine.test")));
      const missing = { kind: "missing", what: "domain" } as const;
      expect((await must(first.domains.all("globex"))).map(({ domain }) => domain)).not.toContain("mine.test");
      expect(await first.domains.one("globex", "mine.test")).toEqual(missing);
      expect(await first.domains.delete("globex", "mine.test")).toEqual(missing);
      expect(await first.domains.judge({ ...mine, tenantId: "globex" }, verdict)).toEqual(missing);
      expect(await first.domains.judge({ ...mine, selector: "former" }, verdict)).toEqual(missing);
      expect(await first.domains.create(aDomain("x.test", "nobody"))).toEqual({ kind: "missing", what: "tenant" });
    });

    test("every process knows within a second what may be sent from, and with which key", async () => {
      const shown = async () => (await second.directory.byId("acme"))?.domains.get("shown.test");
      expect(await shown()).toBeUndefined();
      const domain = await must(first.domains.create(aDomain("shown.test")));
      await must(first.domains.judge(domain, verdict));
      await eventually("it is verified", async () => (await shown()) !== undefined, STALE_MS_MAX);
      expect(await shown()).toEqual({
        domain: "shown.test",
        relay: {
          selector: "wb1",
          privateKeyPem: aDomain("shown.test").privateKeyPem,
          returnPathHost: "bounce.shown.test",
        },
        smtp: false,
      });
      await must(first.domains.judge(domain, { ...verdict, relayStatus: "failed" }));
      await eventually("it is no more", async () => (await shown()) === undefined, STALE_MS_MAX);
      await must(first.domains.judge(domain, verdict));
      await eventually("it is again", async () => (await shown()) !== undefined, STALE_MS_MAX);
      await must(first.domains.delete("acme", "shown.test"));
      await eventually("it is gone", async () => (await shown()) === undefined, STALE_MS_MAX);
    });

    test("a key that the master keys do not open is named at the start", async () => {
      const other = openTestRegistry(here, { masterKeys: [new Uint8Array(32).fill(9)] });
      await expect(other).rejects.toMatchObject({
        name: "ConfigurationError",
        message: expect.stringContaining("master key"),
      });
    });
  });
}
