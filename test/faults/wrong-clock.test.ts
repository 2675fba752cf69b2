import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { createPostgres, postgresMissing } from "../support/postgres.ts";
import { recordProof } from "../support/proof.ts";
import { seedTenants } from "../support/seed-tenants.ts";
import { FaultWorld, sendMany, untilOwned, waitForEnds } from "./fault-world.ts";

const SHARDS = 4;
const MAILS = 10;
const HOUR_MS = 60 * 60_000;
const CLOCK = join(import.meta.dir, "../support/shifted-clock.ts");

let world = new FaultWorld();

afterEach(async () => {
  await world.undo.run();
  world = new FaultWorld();
}, 90_000);

const missing = postgresMissing();

describe.skipIf(missing !== null)(`a process whose clock is wrong${missing ? ` (${missing})` : ""}`, () => {
  test.each([
    ["ahead", HOUR_MS],
    ["behind", -HOUR_MS],
  ] as const)(
    "an hour %s in the process that accepts changes no job and no history",
    async (direction, shiftMs) => {
      const postgres = world.undo.add(await createPostgres(), (server) => server.remove());
      const redis = await world.redis();
      const tenants = await seedTenants({ databaseUrl: postgres.url, shards: SHARDS }, [{ id: "acme" }]);
      const urls = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, SHARDS: String(SHARDS) };
      // The sandbox's mail server, part of the dispatcher, reports its deliveries.
      await world.start(await world.home(), { ...urls, ROLES: "dispatcher" });
      const environment = { ...urls, ROLES: "api,recorder", SHIFT_CLOCK_MS: String(shiftMs) };
      const front = await world.start(await world.home(), environment, { preload: [CLOCK] });
      await untilOwned(redis, SHARDS);
      const [tenant] = tenants;
      if (tenant === undefined) throw new Error("a tenant");
      const mail = (index: number) => ({
        tenant,
        body: { to_address: `u${index}@example.com`, subject: "Hello", html: "<p>Hello</p>" },
      });
      const jobs = await sendMany(front, MAILS, mail);
      const ends = await waitForEnds(front, jobs, 15_000);
      const fetchHistory = async (jobId: string): Promise<readonly string[]> => {
        const { body } = await front.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}/events`);
        return (body.events ?? []).map((event: { event_type: string }) => event.event_type);
      };
      const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
      const [from, to] = [day(Date.now() - 2 * HOUR_MS), day(Date.now() + 2 * HOUR_MS)];
      const listedEvents = async (): Promise<readonly string[]> => {
        const { body } = await front.request(tenant.apiKey, "GET", `/v1/events?from=${from}&to=${to}&limit=500`);
        return body.events.map(
          (event: { job_id: string; event_type: string }) => `${event.job_id} ${event.event_type}`,
        );
      };
      const isListed = async () => (await listedEvents()).length >= 2 * MAILS;
      await eventually("every event is in the event store", isListed, 10_000).catch(() => undefined);
      const listed = await listedEvents();
      // Jobs leave Redis a quarter of an hour after their end. From then on the event store alone knows them.
      await redis.client.unlink((await redis.client.keys("*")).filter((name) => name !== "wb:{meta}"));
      const readAll = () => Promise.all(jobs.map(({ jobId }) => fetchHistory(jobId)));
      // An insert is visible in the events a moment before it is in the derived tables.
      const isWhole = async () => (await readAll()).every((types) => types.length >= 2);
      await eventually("every history is whole", isWhole, 10_000).catch(() => undefined);
      const read = await readAll();
      recordProof({
        fault: `the accepting process's clock is an hour ${direction}`,
        accepted: jobs.length,
        lost: jobs.length - ends.size,
        note: `${read.filter((types) => types.length === 2).length} of ${MAILS} histories whole, ${listed.length - new Set(listed).size} events twice`,
      });
      expect([...ends.values()]).toEqual(jobs.map(() => "success"));
      expect(read).toEqual(jobs.map(() => ["sent", "delivered"]));
      expect(new Set(listed).size).toBe(listed.length);
      expect(listed).toHaveLength(2 * MAILS);
    },
    300_000,
  );
});
