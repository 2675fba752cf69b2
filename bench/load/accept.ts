import { createTenants } from "../../test/support/load.ts";
import type { RedisServer } from "../../test/support/redis.ts";
import { startWaybill, temporaryHome } from "../../test/support/waybill.ts";
import { emptied, redisCpuMs, startBenchRedis, usedBytes } from "./bench-redis.ts";
import { SEND_BODY } from "./bench-world.ts";
import { readCpuMs, startChild } from "./child.ts";
import { drive, type LoadResult } from "./driver.ts";

const TENANTS = 50;

export interface AcceptRound extends LoadResult {
  /** CPU of the server process per request, in microseconds, without Redis and the driver. */
  readonly serverMicros: number;
  /** CPU of Redis per request, in microseconds. */
  readonly redisMicros: number;
  /** Growth of Redis's memory per waiting job; null for an empty queue. */
  readonly bytesPerJob: number | null;
}

export interface AcceptLoad {
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second, or null: as fast as they are answered. */
  readonly rate: number | null;
}

export interface AcceptTarget {
  readonly name: "waybill" | "lean" | "bullmq" | "plain";
  round(load: AcceptLoad): Promise<AcceptRound>;
}

/** The same request against four servers, each round in a fresh process on an empty, durable Redis. */
export async function acceptTargets(): Promise<{ targets: readonly AcceptTarget[]; stop(): Promise<void> }> {
  const redis = await startBenchRedis();
  const home = await temporaryHome();
  const keys = Array.from({ length: TENANTS }, (_, i) => `key-${i}`);
  const other = (name: "lean" | "bullmq" | "plain", args: readonly string[]): AcceptTarget => ({
    name,
    async round(load) {
      const folder = name === "lean" ? "load" : "baseline";
      const child = await startChild(`bench/${folder}/${name}-server.ts`, [...args, keys.join(",")]);
      const result = await measure({ redis, url: child.firstLine, pid: child.pid, keys, ...load });
      await child.stop();
      return name === "plain" ? { ...result, bytesPerJob: null } : result;
    },
  });
  const waybill: AcceptTarget = {
    name: "waybill",
    async round(load) {
      const server = await startWaybill(home.path, { ROLES: "api", REDIS_URL: redis.url });
      const tenants = tenantKeys ?? (await createTenants(server, TENANTS)).map((tenant) => tenant.apiKey);
      tenantKeys = tenants;
      const result = await measure({ redis, url: server.url, pid: server.pid, keys: tenants, ...load });
      await server.kill();
      return result;
    },
  };
  let tenantKeys: readonly string[] | null = null;
  return {
    targets: [waybill, other("lean", [redis.url]), other("bullmq", [redis.url]), other("plain", [])],
    async stop() {
      await redis.stop();
      await home.remove();
    },
  };
}

interface Measurement extends AcceptLoad {
  readonly redis: RedisServer;
  readonly url: string;
  readonly pid: number;
  readonly keys: readonly string[];
  /** The request to send; an e-mail if absent. */
  readonly request?: { readonly path: string; readonly body: string; readonly jobs: number };
}

const ONE_MAIL = { path: "/v1/send/email", body: SEND_BODY, jobs: 1 };

/** Figures are those of a job, however many a request has. */
export async function measure(measurement: Measurement): Promise<AcceptRound> {
  const { redis, url, pid, keys, connections, seconds, rate, request = ONE_MAIL } = measurement;
  const { path, body, jobs } = request;
  await emptied(redis.client);
  const { hostname, port } = new URL(url);
  const load = { host: hostname, port: Number(port), path, body, apiKeys: keys };
  const timing = { connections, seconds, rate, warmUpSeconds: Math.min(2, seconds) };
  // The first requests of a process measure compilation, so they do not count.
  await drive({ ...load, ...timing, seconds: 0.2, rate: null });
  await emptied(redis.client);
  const bytesBefore = await usedBytes(redis);
  const cpuBefore = await readCpuMs(pid);
  const redisBefore = await redisCpuMs(redis.client);
  const result = await drive({ ...load, ...timing });
  const serverMs = (await readCpuMs(pid)) - cpuBefore;
  const redisMs = (await redisCpuMs(redis.client)) - redisBefore;
  const queued = (jobs * result.accepted * (timing.seconds + timing.warmUpSeconds)) / timing.seconds;
  const bytesPerJob = Math.round(((await usedBytes(redis)) - bytesBefore) / queued);
  await emptied(redis.client);
  const micros = (ms: number) => Math.round((ms * 1000) / queued);
  const perSecond = result.perSecond * jobs;
  return { ...result, perSecond, serverMicros: micros(serverMs), redisMicros: micros(redisMs), bytesPerJob };
}
