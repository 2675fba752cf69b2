import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { Redis } from "ioredis";
import { makeDkimKey } from "../../src/channels/email/domains/dkim-key.ts";
import { availableCores } from "../../src/processes/available-cores.ts";
import { PROCESSES_MAX_DEFAULT } from "../../src/processes/process-plan.ts";
import { createPostgres, type PostgresServer } from "../../test/support/postgres.ts";
import { SEED_MASTER_KEY, type SeedTenant, seedTenants } from "../../test/support/seed-tenants.ts";
import { startWaybill, temporaryHome } from "../../test/support/waybill.ts";
import type { PeerOptions } from "../baseline/mail-peer.ts";
import { startBenchRedis } from "./bench-redis.ts";
import { MAIL_TEMPLATE } from "./bench-world.ts";
import { startChild } from "./child.ts";
import type { SmtpSink } from "./smtp-sink.ts";

/** Waybill or the baseline: started anew for each round, on empty stores. */
export interface Side {
  readonly name: string;
  /** Starts a process without jobs. */
  start(): Promise<RunningSide>;
  /** Starts a process with an untouched backlog: `fill` queues the jobs through its API. */
  startWithBacklog(fill: (side: RunningSide) => Promise<void>): Promise<RunningSide>;
  /** Removes what all rounds share. */
  end(): Promise<void>;
}

export interface RunningSide {
  readonly url: string;
  readonly apiKeys: readonly string[];
  /** The roots of the side's process trees, stores included. */
  readonly pids: readonly number[];
  readonly redis: Redis;
  /** Accepted jobs that are not reported as success (or failed) yet. */
  unfinished(): Promise<number>;
  /** Batches of history that the event store does not have yet. */
  unrecorded(): Promise<number>;
  stop(): Promise<void>;
}

const WAYBILL_SHARDS = 16;

interface WaybillRun extends RunningSide {
  readonly home: string;
  /** Ends the processes and keeps the data folder. */
  halt(): Promise<void>;
}

export interface WaybillSideOptions {
  readonly sink: SmtpSink;
  readonly tenants: number;
  readonly isSigned: boolean;
}

/** Settings to try in addition to the usual ones: `WAYBILL_SETTINGS="PROCESSES=1 SHARDS=4"`. */
function settingsToTry(): Readonly<Record<string, string>> {
  const pairs = (process.env["WAYBILL_SETTINGS"] ?? "").split(" ").filter((pair) => pair.includes("="));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}

/**
 * Waybill as `npm start` starts it: its own Redis, PostgreSQL and ClickHouse in a data folder, all roles, history on.
 * Mail goes to the sink by `SMTP_URL`. The folder with the tenants is created once; each round gets a copy.
 */
export async function waybillSide({ sink, tenants, isSigned }: WaybillSideOptions): Promise<Side> {
  const seed = await temporaryHome();
  const settings = settingsToTry();
  const dkimKeyPem = isSigned ? (await makeDkimKey()).privateKeyPem : undefined;
  const wanted = Array.from({ length: tenants }, (_, i): SeedTenant => {
    const signing = dkimKeyPem === undefined ? {} : { dkimKeyPem };
    return { id: `load-${i}`, template: MAIL_TEMPLATE, ...signing };
  });
  const shards = Number(settings["SHARDS"] ?? WAYBILL_SHARDS);
  const apiKeys = (await seedTenants({ home: seed.path, shards }, wanted)).map(({ apiKey }) => apiKey);
  // As many processes as `npm start` would use here.
  const processes = { PROCESSES: String(Math.min(availableCores(), PROCESSES_MAX_DEFAULT)) };
  const env = { ...processes, SMTP_URL: sink.url, MASTER_KEY: SEED_MASTER_KEY, LOG_LEVEL: "info", ...settings };
  let filled: string | null = null;

  const run = async (from: string, roles: Readonly<Record<string, string>>): Promise<WaybillRun> => {
    const home = await mkdtemp(join(tmpdir(), "waybill-home-"));
    await cp(from, home, { recursive: true });
    const server = await startWaybill(home, { ...env, ...roles });
    const redis = new Redis({ path: join(home, "redis/redis.sock"), maxRetriesPerRequest: null });
    const halt = async () => {
      redis.disconnect();
      await server.stop();
    };
    const sumOverShards = async (key: string, read: (text: string) => number, command: "hvals" | "xlen") => {
      const keys = Array.from({ length: shards }, (_, shard) => `wb:{s${String(shard).padStart(2, "0")}}:${key}`);
      const replies = await Promise.all(keys.map((each) => redis[command](each)));
      return replies.flat().reduce<number>((sum, reply) => sum + (typeof reply === "number" ? reply : read(reply)), 0);
    };
    return {
      home,
      url: server.url,
      apiKeys,
      pids: [server.pid],
      redis,
      // "<jobs> <bytes>" per tenant; the shard's counter is a plain number.
      unfinished: () => sumOverShards("tenants", (text) => Number(/^(\d+) \d+ /.exec(text)?.[1] ?? 0), "hvals"),
      unrecorded: () => sumOverShards("outbox", Number, "xlen"),
      halt,
      async stop() {
        await halt();
        await rm(home, { recursive: true, force: true });
      },
    };
  };
  return {
    name: "waybill",
    start: () => run(seed.path, {}),
    async startWithBacklog(fill) {
      if (filled === null) {
        const api = await run(seed.path, { ROLES: "api" });
        await fill(api);
        await api.halt();
        filled = api.home;
      }
      return run(filled, {});
    },
    async end() {
      await seed.remove();
      if (filled !== null) await rm(filled, { recursive: true, force: true });
    },
  };
}

export interface PeerSideOptions {
  readonly sink: SmtpSink;
  readonly tenants: number;
  readonly isSigned: boolean;
  /** One insert per job into PostgreSQL. */
  readonly withHistory: boolean;
}

/** As many connections as Waybill opens to one mail server; the fastest concurrency of those tried. */
const PEER_CONNECTIONS = 48;
const PEER_CONCURRENCY = Number(process.env["PEER_CONCURRENCY"] ?? 100);

/** Elysia, BullMQ on the same durable Redis, and nodemailer's pool, in one process. */
export async function peerSide({ sink, tenants, isSigned, withHistory }: PeerSideOptions): Promise<Side> {
  const redisServer = await startBenchRedis();
  const redisPid = Number(/process_id:(\d+)/.exec(await redisServer.client.info("server"))?.[1]);
  const history = withHistory ? await historyTable() : null;
  const dkim = isSigned ? { domain: "shop.example.test", privateKeyPem: (await makeDkimKey()).privateKeyPem } : null;
  const keys = Array.from({ length: tenants }, (_, i) => `key-${i}`);
  const { client } = redisServer;
  const options: PeerOptions = {
    redisPath: redisServer.path,
    smtpUrl: sink.url,
    keys,
    template: MAIL_TEMPLATE,
    roles: "all",
    historyUrl: history?.server.url ?? null,
    dkim,
    concurrency: PEER_CONCURRENCY,
    connections: PEER_CONNECTIONS,
  };
  const run = async (roles: PeerOptions["roles"]): Promise<RunningSide> => {
    const child = await startChild("bench/baseline/mail-peer.ts", [JSON.stringify({ ...options, roles })]);
    return {
      url: child.firstLine,
      apiKeys: keys,
      pids: [child.pid, redisPid, ...(history === null ? [] : [history.pid])],
      redis: client,
      async unfinished() {
        const lengths = await Promise.all([
          client.llen("bull:email:wait"),
          client.llen("bull:email:active"),
          client.zcard("bull:email:delayed"),
        ]);
        return lengths.reduce((sum, length) => sum + length, 0);
      },
      // The row is written before the job is completed.
      unrecorded: () => Promise.resolve(0),
      stop: () => child.stop(),
    };
  };
  return {
    name: withHistory ? "bullmq + nodemailer + postgres" : "bullmq + nodemailer",
    async start() {
      await client.flushall();
      return run("all");
    },
    async startWithBacklog(fill) {
      await client.flushall();
      const api = await run("api");
      await fill(api);
      await api.stop();
      return run("all");
    },
    async end() {
      await redisServer.stop();
      await history?.server.remove();
    },
  };
}

/** A server that answers an insert when it is on disk, as Waybill's event store does. */
async function historyTable(): Promise<{ readonly server: PostgresServer; readonly pid: number }> {
  const server = await createPostgres({ isDurable: true });
  const sql = new SQL(server.url, { max: 1 });
  await sql`CREATE TABLE events (id bigserial PRIMARY KEY, tenant_id text NOT NULL, job_id uuid NOT NULL,
    type text NOT NULL, result jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now())`;
  await sql`CREATE INDEX events_by_tenant ON events (tenant_id, id)`;
  const [{ pid }] = await sql`SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int AS pid`;
  await sql.end();
  return { server, pid: Number(pid) };
}
