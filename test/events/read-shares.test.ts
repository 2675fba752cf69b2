import { afterAll, beforeAll, expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { eventLimits } from "../../src/events/limits.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { type Answer, Front } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";

const ids = new JobIds(systemClock, systemRandom);
let front: Front;
let beta: Readonly<Record<string, string>>;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
  beta = { "X-API-Key": await front.addTenant("beta", "pro") };
});
afterAll(() => front.stop(), 90_000);

/** Blocks every read of acme until it is released, and counts them. */
function hold() {
  const gate = Promise.withResolvers<void>();
  const held = { now: 0, most: 0, letGo: gate.resolve };
  const read = async (tenantId: string) => {
    if (tenantId !== "acme") return;
    held.now += 1;
    held.most = Math.max(held.most, held.now);
    await gate.promise;
    held.now -= 1;
  };
  return { held, read };
}

const listStatuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);

test("however many jobs a tenant looks up at once, few reach the event store, and a neighbour's reads get through", async () => {
  const { held, read } = hold();
  front.eventStore.job = async (tenantId) => {
    await read(tenantId);
    return null;
  };
  const asked = Array.from({ length: 50 }, (_, n) =>
    front.request(
      n % 5 === 0 ? "POST" : "GET",
      `/v1/jobs/${ids.next()}${["/cancel", "", "/events", "/explain", ""][n % 5]}`,
    ),
  );
  await eventually("acme's reads have begun", () => held.now > 0);
  expect((await front.request("GET", `/v1/jobs/${ids.next()}`, beta)).status).toBe(404);
  expect((await front.request("GET", "/v1/events?from=2026-11-20&to=2026-11-21", beta)).status).toBe(200);
  // An operator's read does not wait behind the tenant's.
  const look = front.operate("GET", `/tenants/acme/jobs/${ids.next()}`);
  await eventually("the operator's read has begun", () => held.now === eventLimits.historyReads.each + 1);
  held.letGo();
  expect(new Set(listStatuses(await Promise.all(asked)))).toEqual(new Set([404]));
  expect((await look).status).toBe(404);
  expect(held.most).toBe(eventLimits.historyReads.each + 1);
});

test("a tenant's jobs are listed one list at a time, of which few wait, and a neighbour's is not held up", async () => {
  const { held, read } = hold();
  const waitingJobs = front.queue.waitingJobs.bind(front.queue);
  front.queue.waitingJobs = async (tenant) => {
    await read(tenant.tenantId);
    return waitingJobs(tenant);
  };
  const { waitingMax } = eventLimits.jobLists;
  const asked = Array.from({ length: waitingMax + 3 }, () => front.request("GET", "/v1/jobs"));
  const first = await Promise.race(asked);
  expect([first.status, first.headers.get("retry-after")]).toEqual([429, "2"]);
  expect((await front.request("GET", "/v1/jobs", beta)).status).toBe(200);
  held.letGo();
  const statuses = listStatuses(await Promise.all(asked)).toSorted((a, b) => a - b);
  expect(statuses).toEqual([...Array.from({ length: waitingMax + 1 }, () => 200), 429, 429]);
  expect(held.most).toBe(1);
});
