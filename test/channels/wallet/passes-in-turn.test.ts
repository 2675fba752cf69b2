import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { AppleContent } from "../../../src/domain/channels/wallet.ts";
import { connectPostgres } from "../../../src/storage/postgres/connect-postgres.ts";
import { must } from "../../support/must.ts";
import { createPostgres, postgresMissing } from "../../support/postgres.ts";
import { openTwoProcesses, type TwoProcesses } from "../../tenants/two-processes.ts";

const missing = postgresMissing();
const TIME_MS = 90_000;
/** Many times what a process has connections to the registry. */
const BURST = 200;
const content: AppleContent = { type: "apple", style: "generic", pass: {}, images: {} };
const APPLE = { content, passTypeId: "pass.test.acme", authenticationToken: "an-authentication-token-of-32-ch" };

const aPass = (tenantId: string, passId: string) => ({
  ...APPLE,
  passId,
  tenantId,
  serial: `serial of ${passId}`,
  jobId: `job of ${passId}`,
  images: new Map(),
});
const anUpdate = (passId: string, i: number) => ({
  passId,
  jobId: `update ${i}`,
  notificationKind: null,
  notifyMessage: null,
  images: new Map(),
  change: () => content,
});

if (missing === null) {
  let processes: TwoProcesses;
  beforeAll(async () => {
    const server = await createPostgres();
    processes = await openTwoProcesses(async () => ({
      connect: () => connectPostgres(server.url),
      remove: () => server.remove(),
    }));
    for (const id of ["acme", "globex"]) {
      await must(processes.first.registry.createTenant({ id, name: id, tokens: 2 * BURST }));
    }
  }, TIME_MS);
  afterAll(() => processes?.close(), TIME_MS);

  /** Runs the work while another transaction holds the lock of a row. */
  async function whileLocked(row: ReturnType<typeof sql>, work: () => Promise<void>): Promise<void> {
    await processes.there.db.transaction(async (transaction) => {
      await transaction.execute(row);
      await work();
    });
  }

  test(
    "a tenant whose updates all wait for one pass leaves connections to its own reads and to others' passes",
    async () => {
      const { passes } = processes.first;
      await passes.create(aPass("acme", "wanted"));
      let updates: Promise<unknown>[] = [];
      await whileLocked(sql`select 1 from passes where id = 'wanted' for update`, async () => {
        updates = Array.from({ length: BURST }, (_, i) => passes.update("acme", anUpdate("wanted", i)));
        expect(await passes.create(aPass("globex", "of another"))).toBe("created");
        expect(await passes.find("acme", "wanted")).toMatchObject({ version: 1 });
      });
      await Promise.all(updates);
      expect(await passes.find("acme", "wanted")).toMatchObject({ version: 1 + BURST });
    },
    TIME_MS,
  );

  test(
    "a tenant whose new passes all wait for its tokens leaves connections to others' passes",
    async () => {
      const { passes } = processes.first;
      let created: Promise<unknown>[] = [];
      await whileLocked(sql`select 1 from tenants where id = 'acme' for update`, async () => {
        created = Array.from({ length: BURST }, (_, i) => passes.create(aPass("acme", `burst-${i}`)));
        expect(await passes.create(aPass("globex", "another of another"))).toBe("created");
      });
      expect(await Promise.all(created)).toEqual(created.map(() => "created"));
    },
    TIME_MS,
  );
} else {
  test.skip(`passes of tenants that take turns: ${missing}`, () => undefined);
}
