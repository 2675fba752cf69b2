import { expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import type { Labels } from "../../../src/domain/telemetry.ts";
import { DeliveryReports } from "../../../src/engine/reports/delivery-reports.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";
import { accept, jobIds, queue, useQueueWorld, world } from "../queue/queue-world.ts";

useQueueWorld();

class CountingTelemetry extends QuietTelemetry {
  readonly results: string[] = [];
  override count(_name?: string, { result = "" }: Labels = {}): void {
    this.results.push(result);
  }
}

/** Takes a report about each of three jobs, while the first look-ups of their tenant fail. Returns the log. */
async function linesWhile(failedLookUps: number, error: Error): Promise<readonly string[]> {
  const { tenant } = await world();
  const telemetry = new CountingTelemetry();
  const known = createDirectory([aTenant({ shard: tenant.shard })]);
  let left = failedLookUps;
  const byId = async (tenantId: string) => {
    left -= 1;
    if (left >= 0) throw error;
    return known.byId(tenantId);
  };
  const reports = new DeliveryReports({
    queue,
    directory: { ...known, byId },
    eventStore: { job: async () => null },
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  const jobIds = [await accept(tenant), await accept(tenant), await accept(tenant)];
  const report = { tenantId: tenant.tenantId, type: "delivered", result: {}, suppressRecipient: null } as const;
  await Promise.all(jobIds.map((jobId) => reports.take({ ...report, jobId })));
  // Each waits for the end of its job.
  expect(telemetry.results).toEqual(["kept", "kept", "kept"]);
  await reports.stop();
  return telemetry.lines;
}

test("an outage is told once and its end once, however many reports wait and however often they are tried", async () => {
  expect(await linesWhile(9, new TransportError("the registry is away"))).toEqual([
    "warn: a report could not be recorded and is repeated",
    "info: reports are recorded again",
  ]);
});

test("what is no outage is told for each report, not for each try", async () => {
  expect(await linesWhile(9, new Error("a bug"))).toEqual([
    ...Array.from({ length: 3 }, () => "error: a report could not be recorded and is repeated"),
    "info: reports are recorded again",
  ]);
});

test("a report whose sender was told to send it again is tried no more", async () => {
  const { tenant } = await world();
  const known = createDirectory([aTenant({ shard: tenant.shard })]);
  const telemetry = new CountingTelemetry();
  const givenUp = new AbortController();
  let tries = 0;
  const byId = async () => {
    tries += 1;
    if (tries === 3) givenUp.abort();
    throw new TransportError("the registry is away");
  };
  const reports = new DeliveryReports({
    queue,
    directory: { ...known, byId },
    eventStore: { job: async () => null },
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  const report = { tenantId: tenant.tenantId, jobId: await accept(tenant), type: "bounced", result: {} } as const;
  await reports.take({ ...report, suppressRecipient: null }, "email", givenUp.signal);
  expect([tries, telemetry.results]).toEqual([3, ["given up"]]);
});

test("jobs that have left the queue are looked up few at a time, a tenant's own never all of them, and none once it stops", async () => {
  const [acme, globex] = [(await world()).tenant, (await world("globex")).tenant];
  const asked: string[] = [];
  const ends: (() => void)[] = [];
  const reports = new DeliveryReports({
    queue,
    directory: createDirectory([aTenant({ shard: acme.shard }), aTenant({ tenantId: "globex", shard: globex.shard })]),
    eventStore: {
      job(tenantId) {
        asked.push(tenantId);
        return new Promise((resolve) => ends.push(() => resolve(null)));
      },
    },
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  const open = (tenantId: string) =>
    reports.take({ tenantId, jobId: jobIds.next(), type: "opened", result: {}, suppressRecipient: null });
  const all = Array.from({ length: 20 }, () => open("acme"));
  await eventually("as many as may are looked up", () => asked.length === 2);
  all.push(open("globex"));
  await eventually("the other tenant's is, too", () => asked.length === 3);
  expect(asked).toEqual(["acme", "acme", "globex"]);
  for (const end of ends.splice(0, 2)) end();
  // The tenant's next look-up follows, beside the other tenant's.
  await eventually("the next one follows", () => asked.length === 4);
  const stopped = reports.stop();
  for (const end of ends) end();
  await stopped;
  await Promise.all(all);
  expect(asked).toEqual(["acme", "acme", "globex", "acme"]);
});
