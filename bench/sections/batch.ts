import { createTenants } from "../../test/support/load.ts";
import { startWaybill, temporaryHome } from "../../test/support/waybill.ts";
import { type AcceptRound, measure } from "../load/accept.ts";
import { startBenchRedis } from "../load/bench-redis.ts";
import { SEND_BODY } from "../load/bench-world.ts";
import { describeLatency } from "../load/driver.ts";
import { median } from "../load/latency.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

const TENANTS = 50;
const SINGLE = "one a request, 64 connections";

interface Kind {
  readonly connections: number;
  readonly tenants: number;
  readonly request: { readonly path: string; readonly body: string; readonly jobs: number };
}

/** The same e-mails, one a request and many, accepted by the same server with the same durability. */
const KINDS: Readonly<Record<string, Kind>> = {
  [SINGLE]: { connections: 64, tenants: TENANTS, request: { path: "/v1/send/email", body: SEND_BODY, jobs: 1 } },
  "one a request, 256 connections": {
    connections: 256,
    tenants: TENANTS,
    request: { path: "/v1/send/email", body: SEND_BODY, jobs: 1 },
  },
  "100 a batch": { connections: 16, tenants: TENANTS, request: buildBatch(100) },
  "1,000 a batch": { connections: 4, tenants: TENANTS, request: buildBatch(1_000) },
  "1,000 a batch, one tenant": { connections: 3, tenants: 1, request: buildBatch(1_000) },
};

function buildBatch(jobs: number) {
  const messages = Array.from({ length: jobs }, () => SEND_BODY).join(",");
  return { path: "/v1/send/email/batch", body: `{"messages":[${messages}]}`, jobs };
}

export async function batch({ rounds, seconds }: SectionOptions): Promise<unknown> {
  const redis = await startBenchRedis();
  const home = await temporaryHome();
  let keys: readonly string[] | null = null;
  const runs = new Map(Object.keys(KINDS).map((name) => [name, [] as AcceptRound[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const [name, { connections, tenants, request }] of Object.entries(KINDS)) {
      const server = await startWaybill(home.path, { ROLES: "api", REDIS_URL: redis.url });
      keys ??= (await createTenants(server, TENANTS)).map(({ apiKey }) => apiKey);
      const load = { connections, seconds, rate: null, request };
      const { url, pid } = server;
      runs.get(name)?.push(await measure({ redis, url, pid, keys: keys.slice(0, tenants), ...load }));
      await server.kill();
    }
  }
  await redis.stop();
  await home.remove();

  console.log(`\nBatch: e-mails accepted, ${rounds} rounds of ${seconds} s\n`);
  console.table([...runs].map(([name, all]) => buildRow(name, all)));
  const ratios = Object.fromEntries(
    [...runs].map(([name, all]) => [name, computeRatios(all, runs.get(SINGLE) ?? [], ({ perSecond }) => perSecond)]),
  );
  for (const [name, all] of Object.entries(ratios)) {
    if (name !== SINGLE) console.log(`${name} / ${SINGLE}: ${describeRatios(all)}`);
  }
  return { rounds: Object.fromEntries(runs), ratios };
}

function buildRow(name: string, all: readonly AcceptRound[]): Record<string, string | number> {
  const of = (valueOf: (one: AcceptRound) => number) => median(all.map(valueOf));
  const latency = { p50: of(({ latencyMs }) => latencyMs.p50), p99: of(({ latencyMs }) => latencyMs.p99) };
  return {
    requests: name,
    "jobs/s": of(({ perSecond }) => perSecond),
    "p50 / p99 of a request": describeLatency(latency),
    "server CPU µs a job": of(({ serverMicros }) => serverMicros),
    "Redis CPU µs a job": of(({ redisMicros }) => redisMicros),
    "Redis bytes a job": of(({ bytesPerJob }) => bytesPerJob ?? Number.NaN),
    refused: all.reduce((sum, { refused }) => sum + refused, 0),
  };
}
