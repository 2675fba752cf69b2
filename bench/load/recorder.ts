import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnavailableError } from "../../src/domain/errors.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { eventTimeMs } from "../../src/domain/jobs/event.ts";
import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import { FENCED, type Lease, type LeaseRole, type Queue, type Settlement } from "../../src/domain/jobs/queue.ts";
import { Recorder } from "../../src/engine/recorder/recorder.ts";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { openClickHouse } from "../../test/support/private-clickhouse.ts";
import { openBenchQueue } from "./bench-queue.ts";
import { redisCpuMs, startBenchRedis } from "./bench-redis.ts";
import { noTelemetry } from "./bench-world.ts";
import { type LatencySummary, round, summarise } from "./latency.ts";

const SHARDS = 16;
const TARGET = { database: "bench", cluster: null } as const;
/** No pull here is this large. */
const PULL_BYTES = 64 * 1024 * 1024;

export interface RecorderReport {
  readonly visibility: readonly VisibilityRow[];
  readonly catchUp: { readonly events: number; readonly perSecond: number; readonly redisMicros: number };
}

export interface VisibilityRow {
  readonly perSecond: number;
  readonly events: number;
  readonly ms: LatencySummary;
  readonly insertsPerSecond: number;
  /** CPU of recorder and engine, in cores; the cost of ending the same jobs without them is subtracted. */
  readonly cores: number;
}

/** The recorder of the embedded default, alone in its process, with jobs that end at a given rate. */
export async function measureRecorder(options: {
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly backlog: number;
}): Promise<RecorderReport> {
  const redis = await startBenchRedis();
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-recorder-"));
  const chdb = await openClickHouse(folder);
  const ports = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };
  const queue = await openBenchQueue(redis.url);
  const watched = new WatchedClickHouse({ client: chdb.writer, clock: systemClock, timeoutMs: 20_000 });
  await migrateEventStore(watched, TARGET);
  const writer = new ClickHouseEventWriter(watched, TARGET, systemClock);
  let isAway = false;
  const eventStore: Pick<ClickHouseEventWriter, "write"> = {
    async write(...batch) {
      if (isAway) throw new UnavailableError("away");
      return await writer.write(...batch);
    },
  };
  const recorder = new Recorder({ queue, eventStore, ...ports, owner: "bench", shards: SHARDS });
  const jobs = await EndingJobs.queue(queue);
  try {
    const eventsAt = (perSecond: number) => Math.max(20, perSecond * options.seconds);
    // The CPU of ending jobs alone, without a recorder.
    const alone = new Map<number, number>();
    for (const perSecond of options.rates) {
      alone.set(perSecond, (await used(chdb.pid, () => jobs.end(eventsAt(perSecond), perSecond))).cores);
    }
    recorder.start();
    const unrecorded = options.rates.reduce((sum, perSecond) => sum + eventsAt(perSecond), 0);
    await until(() => watched.latenciesMs.length >= unrecorded);
    const visibility: VisibilityRow[] = [];
    for (const perSecond of options.rates) {
      watched.latenciesMs.length = 0;
      watched.inserts = 0;
      const events = eventsAt(perSecond);
      const { cores, seconds } = await used(chdb.pid, () => jobs.end(events, perSecond));
      const insertsPerSecond = round(watched.inserts / seconds, 1);
      await until(() => watched.latenciesMs.length >= events);
      const ms = summarise(watched.latenciesMs);
      visibility.push({ perSecond, events, ms, insertsPerSecond, cores: round(cores - (alone.get(perSecond) ?? 0)) });
    }
    isAway = true;
    watched.latenciesMs.length = 0;
    await jobs.end(options.backlog, Number.POSITIVE_INFINITY);
    const redisBefore = await redisCpuMs(redis.client);
    isAway = false;
    const { seconds } = await used(chdb.pid, () => until(() => watched.latenciesMs.length >= options.backlog));
    const redisMicros = round((((await redisCpuMs(redis.client)) - redisBefore) * 1000) / options.backlog, 1);
    const perSecond = round(options.backlog / seconds, 0);
    return { visibility, catchUp: { events: options.backlog, perSecond, redisMicros } };
  } finally {
    await recorder.stop();
    await queue.stop();
    await redis.stop();
    await chdb.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Reports the age of each event when it becomes readable. */
class WatchedClickHouse extends ClickHouse {
  readonly latenciesMs: number[] = [];
  inserts = 0;

  override async insert(sql: string, body: string): Promise<void> {
    this.inserts += 1;
    await super.insert(sql, body);
    if (!sql.includes(".events ")) return;
    const nowMs = Date.now();
    for (const [, id] of body.matchAll(/^\["[^"]+",(\d+),/gm)) this.latenciesMs.push(nowMs - eventTimeMs(Number(id)));
  }
}

/** CPU of this process and of the engine's while `work` runs, in cores. */
async function used(
  engine: number,
  work: () => Promise<void>,
): Promise<{ readonly cores: number; readonly seconds: number }> {
  const begunMs = performance.now();
  const [before, engineBefore] = [process.cpuUsage(), await readCpuSeconds(engine)];
  await work();
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - begunMs) / 1000;
  return { cores: ((user + system) / 1_000_000 + (await readCpuSeconds(engine)) - engineBefore) / seconds, seconds };
}

/** Fields of proc(5)'s stat, in ticks of a hundredth of a second. */
async function readCpuSeconds(pid: number): Promise<number> {
  const stat = (await Bun.file(`/proc/${pid}/stat`).text()).replace(/^.*\) /, "").split(" ");
  return (Number(stat[11]) + Number(stat[12])) / 100;
}

/** Jobs of one tenant per shard that are handed out and end on demand. */
class EndingJobs {
  private readonly ids = new JobIds(systemClock, systemRandom);
  private turn = 0;

  private constructor(
    private readonly queue: Queue,
    private readonly leases: readonly Lease[],
  ) {}

  static async queue(queue: Queue): Promise<EndingJobs> {
    const role: LeaseRole = "dispatcher";
    const leases = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) => queue.acquire(shard, role, "bench", null)),
    );
    return new EndingJobs(
      queue,
      leases.flatMap((lease) => lease ?? []),
    );
  }

  /** Ends the given number of jobs, one shard after another, in steps of at least 20 ms. */
  async end(count: number, perSecond: number): Promise<void> {
    const step = Math.min(count, Math.max(1, Math.round(Math.min(perSecond, 25_000) / 50)));
    const begunMs = performance.now();
    for (let done = 0; done < count; done += step) {
      await this.endSome(Math.min(step, count - done));
      const dueMs = begunMs + ((done + step) * 1000) / perSecond;
      await Bun.sleep(Math.max(0, dueMs - performance.now()));
    }
  }

  private async endSome(count: number): Promise<void> {
    const lease = this.leases[this.turn % SHARDS];
    if (lease === undefined) throw new Error("a shard is taken");
    this.turn += 1;
    const tenant = { tenantId: `t${lease.shard}`, shard: lease.shard };
    const job = {
      channel: "email",
      recipient: "a@b.test",
      payload: "{}",
      template: "welcome",
      idempotency: null,
    } as const;
    await Promise.all(
      Array.from({ length: count }, () => this.queue.accept(tenant, null, { ...job, jobId: this.ids.next() })),
    );
    const tenantQueue = { tenantId: tenant.tenantId, channel: "email" } as const;
    const pulled = await this.queue.pull(lease, {
      tenantQueues: [{ tenantQueue, after: null, entriesMax: count, bytesMax: PULL_BYTES }],
      survey: false,
      bytesMax: PULL_BYTES,
      shardTimeMs: null,
      confirmedSkewMs: null,
    });
    if (pulled === FENCED) throw new Error("the shard is lost");
    await this.queue.settle(lease, (pulled.tenantQueues[0]?.jobs ?? []).map(sent), null);
  }
}

function sent(job: QueuedJob): Settlement {
  return { kind: "final", job, status: "success", result: {}, event: { type: "sent", result: {} } };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5);
}
