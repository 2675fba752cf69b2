import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import type { LoadTenant } from "../support/load.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type RelayManners, ScriptedRelay } from "../support/scripted-relay.ts";
import { SEED_MASTER_KEY, type SeedTenant, seedTenants } from "../support/seed-tenants.ts";
import { Undo } from "../support/undo.ts";
import { type StartOptions, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/** The operations of fault tests on whole processes. Everything that is started here ends with `undo.run()`. */
export class FaultWorld {
  readonly undo = new Undo();

  async redis(extra: readonly string[] = []): Promise<RedisServer> {
    return this.undo.add(await startRedis(extra), (redis) => redis.stop());
  }

  async relay(manners: Partial<RelayManners> = {}): Promise<ScriptedRelay> {
    return this.undo.add(await ScriptedRelay.start(manners), (relay) => relay.stop());
  }

  async home(): Promise<string> {
    return this.undo.add(await temporaryHome(), (home) => home.remove()).path;
  }

  /** A home whose registry holds the tenants. */
  async seededHome(
    wanted: readonly SeedTenant[],
  ): Promise<{ readonly home: string; readonly tenants: readonly LoadTenant[] }> {
    const home = await this.home();
    return { home, tenants: await seedTenants({ home }, wanted) };
  }

  async start(home: string, environment: Readonly<Record<string, string>>, options?: StartOptions): Promise<Waybill> {
    const common = { MASTER_KEY: SEED_MASTER_KEY, OPERATOR_TOKEN: "operator-token-of-the-test" };
    const waybill = await startWaybill(home, { ...common, ...environment }, options);
    return this.undo.add(waybill, (running) => running.kill());
  }
}

/** Tenants' own mail servers are used, and may be on this machine. */
export const OWN_RELAYS = { PROVIDERS: "live", OUTBOUND_ALLOW: "127.0.0.0/8" } as const;

/** The loopback address that stands for a tenant's relay. */
export function formatHost(index: number): string {
  return `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`;
}

/**
 * The time limit of a test on a very busy machine. On a quiet one each takes half a minute; its waits have bounds of
 * their own.
 */
export const TEST_LIMIT_MS = 240_000;

export const MAIL = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };

/** Sends until `count` are accepted or refused, `parallel` at a time. Returns the ids of the accepted ones. */
export async function sendMany(
  waybill: Waybill,
  count: number,
  mail: (index: number) => { readonly tenant: LoadTenant; readonly body: unknown },
  parallel = 16,
): Promise<readonly { readonly tenant: LoadTenant; readonly jobId: string }[]> {
  const accepted: { tenant: LoadTenant; jobId: string }[] = [];
  let next = 0;
  const sendOn = async () => {
    while (next < count) {
      const { tenant, body } = mail(next++);
      const answer = await waybill.request(tenant.apiKey, "POST", "/v1/send/email", body);
      if (answer.status === 202) accepted.push({ tenant, jobId: answer.body.job_id });
    }
  };
  await Promise.all(Array.from({ length: parallel }, sendOn));
  return accepted;
}

const FINAL = new Set(["success", "failed", "suppressed"]);

/** Waits until all jobs have ended or the time is over; returns the statuses of ended jobs, by id. */
export async function waitForEnds(
  waybill: Waybill,
  jobs: readonly { readonly tenant: LoadTenant; readonly jobId: string }[],
  withinMs: number,
): Promise<ReadonlyMap<string, string>> {
  const ends = new Map<string, string>();
  const giveUpAtMs = performance.now() + withinMs;
  let left = [...jobs];
  while (left.length > 0 && performance.now() < giveUpAtMs) {
    const asked = left.slice(0, 32);
    await Promise.all(
      asked.map(async ({ tenant, jobId }) => {
        const answer = await waybill.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}`).catch(() => null);
        if (answer !== null && FINAL.has(answer.body.status)) ends.set(jobId, answer.body.status);
      }),
    );
    const waiting = left.filter(({ jobId }) => !ends.has(jobId));
    if (waiting.length === left.length) await Bun.sleep(100);
    // Jobs that were just polled go behind the others.
    left = [...waiting.slice(asked.length), ...waiting.slice(0, asked.length)];
  }
  return ends;
}

/** Waits until the dispatcher owns every shard: from then on only mail is in flight. */
export async function untilOwned(redis: RedisServer, shards = 16, withinMs = 60_000): Promise<void> {
  await eventually("every shard has an owner", async () => !(await readOwners(redis, shards)).includes(null), withinMs);
}

/** Reads the owner of each shard's deliveries; null where a shard has none. */
export function readOwners(redis: RedisServer, shards: number): Promise<readonly (string | null)[]> {
  const keys = Array.from({ length: shards }, (_, shard) => `wb:{s${String(shard).padStart(2, "0")}}:lease:dispatcher`);
  return Promise.all(keys.map((key) => redis.client.hget(key, "owner")));
}

/** Polls `/health` until stopped, and returns the longest time that an answer took. */
export function watchHealth(waybill: Waybill, everyMs = 50): { stop(): Promise<number> } {
  let longestMs = 0;
  let isOver = false;
  const watch = (async () => {
    while (!isOver) {
      const startedMs = performance.now();
      await fetch(`${waybill.url}/health`).then(
        (response) => response.bytes(),
        () => undefined,
      );
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      await Bun.sleep(everyMs);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await watch;
      return longestMs;
    },
  };
}

/** Memory of the process that is really in use, in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await Bun.file(join("/proc", String(pid), "status")).text();
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024;
}

export function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/**
 * A bound for a time beside a fault: generous for a quiet machine, and on a busy one four times what it took without
 * the fault. The delays that it guards against are ten times as long.
 */
export function boundMs(usualMs: number, aloneMs: number): number {
  return Math.max(usualMs, 4 * aloneMs);
}

/** A size of the test that the environment can raise. */
export function readSize(name: string, usual: number): number {
  return Number(process.env[name] ?? usual);
}
