import type { RedisServer } from "../../test/support/redis.ts";
import { SEED_MASTER_KEY, seedTenants } from "../../test/support/seed-tenants.ts";
import { Undo } from "../../test/support/undo.ts";
import { startWaybill, temporaryHome } from "../../test/support/waybill.ts";
import { startBenchRedis, usedBytes } from "./bench-redis.ts";
import { benchTenants, SEND_BODY } from "./bench-world.ts";
import { DISPATCH_TENANTS, drainWaybill, fillWaybill } from "./dispatch.ts";
import { drive } from "./driver.ts";
import type { LatencySummary } from "./latency.ts";

export interface BacklogRound {
  readonly queued: number;
  readonly acceptedPerSecond: number;
  readonly acceptMs: LatencySummary;
  readonly dispatchedPerSecond: number;
  readonly redisMicros: number;
}

export interface BacklogReport {
  readonly rounds: ReadonlyMap<number, readonly BacklogRound[]>;
  /** Redis memory per queued job. */
  readonly bytesPerJob: number;
}

export interface BacklogLoad {
  readonly queued: number;
  readonly rounds: number;
  readonly seconds: number;
}

/**
 * Accepting and delivering on an empty queue and on one with the given number of jobs, alternately. Each round delivers
 * as many jobs as it accepted, so the backlog stays as it is.
 */
export async function measureBacklog({ queued, rounds, seconds }: BacklogLoad): Promise<BacklogReport> {
  const undo = new Undo();
  try {
    const empty = undo.add(await startBenchRedis(), (one) => one.stop());
    const full = undo.add(await startBenchRedis(), (one) => one.stop());
    const home = undo.add(await temporaryHome(), (one) => one.remove()).path;
    const wanted = benchTenants(DISPATCH_TENANTS).map(({ tenantId }) => ({ id: tenantId }));
    const apiKeys = (await seedTenants({ home }, wanted)).map(({ apiKey }) => apiKey);
    const startApi = (redis: RedisServer) =>
      startWaybill(home, { ROLES: "api", REDIS_URL: redis.url, MASTER_KEY: SEED_MASTER_KEY });
    // A process refuses a queue with jobs that no process has marked as its own.
    await (await startApi(full)).kill();
    const bytesBefore = await usedBytes(full);
    await fillWaybill(full, queued);
    const bytesPerJob = Math.round(((await usedBytes(full)) - bytesBefore) / queued);
    const accept = async (redis: RedisServer) => {
      const server = await startApi(redis);
      const { hostname, port } = new URL(server.url);
      const target = { host: hostname, port: Number(port), path: "/v1/send/email", body: SEND_BODY, apiKeys };
      const timing = { connections: 64, seconds, rate: null, warmUpSeconds: Math.min(1, seconds) };
      const before = await waitingIn(redis);
      const result = await drive({ ...target, ...timing });
      await server.kill();
      return { result, accepted: (await waitingIn(redis)) - before };
    };
    const byQueue = new Map<number, BacklogRound[]>([
      [0, []],
      [queued, []],
    ]);
    for (let i = 0; i < rounds; i += 1) {
      for (const [redis, size] of [[empty, 0] as const, [full, queued] as const]) {
        const { result, accepted } = await accept(redis);
        const { perSecond, redisMicros } = await drainWaybill(redis, accepted);
        byQueue.get(size)?.push({
          queued: size,
          acceptedPerSecond: result.perSecond,
          acceptMs: result.latencyMs,
          dispatchedPerSecond: perSecond,
          redisMicros,
        });
      }
    }
    return { rounds: byQueue, bytesPerJob };
  } finally {
    await undo.run();
  }
}

/** Unfinished jobs, by the loads of all tenants. */
async function waitingIn({ client }: RedisServer): Promise<number> {
  const keys = await client.keys("wb:{s*}:tenants");
  const loads = (await Promise.all(keys.map((key) => client.hvals(key)))).flat();
  return loads.reduce((sum, text) => sum + Number(/^(\d+) \d+ /.exec(text)?.[1] ?? 0), 0);
}
