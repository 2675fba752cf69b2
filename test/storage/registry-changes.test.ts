import { expect, test } from "bun:test";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { Database } from "../../src/storage/postgres/database.ts";
import { RegistryChanges } from "../../src/storage/registry-changes.ts";
import { eventually } from "../support/eventually.ts";
import { openRegistryDatabase } from "../support/registry-database.ts";
import { openTestRegistry } from "../tenants/open-test-registry.ts";

test("a change of all tenants is answered once this process has taken it up", async () => {
  const database = await openRegistryDatabase();
  const registry = await openTestRegistry(database);
  const events: string[] = [];
  const taken = Promise.withResolvers<void>();
  const changes = new RegistryChanges(new Database(database.db, systemClock), {
    onTenant: () => {},
    onPlans: async () => {
      events.push("announced");
      await taken.promise;
      events.push("taken up");
    },
    onOperators: async () => {},
  });
  const answered = changes
    .ofPlans(async () => {
      events.push("changed");
    })
    .then(() => events.push("answered"));
  await eventually("it is announced", () => events.includes("announced"));
  taken.resolve();
  await answered;
  expect(events).toEqual(["changed", "announced", "taken up", "answered"]);
  await registry.stop();
  await database.close();
}, 90_000);
