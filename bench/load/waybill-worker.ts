/**
 * The dispatcher on a channel that discards its jobs: `bun bench/load/waybill-worker.ts <redis url> <jobs> <tenants>`
 * prints the milliseconds from its start to the last settlement. Leases, scheduling, status and events are as in
 * production.
 */

import type { Settlement } from "../../src/domain/jobs/queue.ts";
import { Dispatcher } from "../../src/engine/dispatch/dispatcher.ts";
import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { NO_HISTORIES } from "../../test/support/no-histories.ts";
import { benchQueueOptions } from "./bench-queue.ts";
import { benchTenants, noTelemetry, QUEUE_SHARDS } from "./bench-world.ts";

const [, , redisUrl = "", jobs = "0", tenantCount = "50"] = process.argv;
const tenants = new Map(benchTenants(Number(tenantCount)).map((tenant) => [tenant.tenantId, tenant]));
const { promise, resolve } = Promise.withResolvers<void>();
let settled = 0;

class CountingQueue extends RedisQueue {
  override async settle(lease: Parameters<RedisQueue["settle"]>[0], settlements: readonly Settlement[]) {
    const answer = await super.settle(lease, settlements);
    settled += settlements.length;
    if (settled >= Number(jobs)) resolve();
    return answer;
  }
}

const startedMs = performance.now();
const queue = new CountingQueue(benchQueueOptions(redisUrl));
await queue.start();
const dispatcher = new Dispatcher({
  queue,
  directory: { byApiKey: () => null, byId: (id) => tenants.get(id) ?? null },
  channels: [{ name: "email", slots: 512, deliver: async () => ({ kind: "delivered", result: {} }) }],
  histories: NO_HISTORIES,
  suppressions: { fill: async () => true },
  owner: "bench",
  shards: QUEUE_SHARDS,
  clock: systemClock,
  random: systemRandom,
  telemetry: noTelemetry,
});
dispatcher.start();
await promise;
console.log(performance.now() - startedMs);
process.exit(0);
