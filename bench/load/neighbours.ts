import { formatHost, OWN_RELAYS, readOwners } from "../../test/faults/fault-world.ts";
import { eventually } from "../../test/support/eventually.ts";
import { type Flood, type FloodRate, startFlood } from "../../test/support/flood.ts";
import type { LoadTenant } from "../../test/support/load.ts";
import { createPostgres, postgresMissing } from "../../test/support/postgres.ts";
import type { RedisServer } from "../../test/support/redis.ts";
import { ScriptedRelay } from "../../test/support/scripted-relay.ts";
import { SEED_MASTER_KEY, type SeedTenant, seedTenants } from "../../test/support/seed-tenants.ts";
import { SteadySender, sendSteadily } from "../../test/support/steady-sender.ts";
import { Undo } from "../../test/support/undo.ts";
import { startWaybill, temporaryHome, type Waybill } from "../../test/support/waybill.ts";
import { startBenchRedis } from "./bench-redis.ts";
import type { LatencySummary } from "./latency.ts";

export interface NeighbourLoad {
  /** The healthy tenant's messages per second, and the duration of each half: alone and with neighbours. */
  readonly perSecond: number;
  readonly seconds: number;
  /** Messages that one tenant queues at once. */
  readonly queued: number;
  /** Tenants with one message each. */
  readonly tenants: number;
  /** Tenants whose relay hangs, in the larger of the two cases. */
  readonly hanging: number;
}

export interface NeighbourRun {
  /** From the time a message was due until the relay had it. */
  readonly alone: LatencySummary;
  readonly beside: LatencySummary;
  /** The healthy tenant's messages that had not been handed over when the measurement gave up. */
  readonly missing: number;
  readonly note: string;
}

/** The figures, or why they cannot be measured here. */
export type NeighbourResult = NeighbourRun | { readonly missing: string };

export interface Situation {
  readonly name: string;
  /** Whether smoke runs include it: most of their time goes to starting processes. */
  readonly inSmoke: boolean;
  measure(load: NeighbourLoad): Promise<NeighbourResult>;
}

/** Longest wait for messages of the healthy tenant that are still not handed over. */
const PATIENCE_MS = 30_000;
const MEBIBYTE = 1024 * 1024;
const SHARDS = 8;
const SLOW_MS = 10_000;

/** The effect of other tenants' trouble on a healthy tenant that sends at its own rate. */
export const SITUATIONS: readonly Situation[] = [
  { name: "60 tenants whose relay hangs", inSmoke: false, measure: (load) => besideHanging({ ...load, hanging: 60 }) },
  { name: "many tenants whose relay hangs", inSmoke: true, measure: besideHanging },
  { name: "one tenant with all this queued", inSmoke: false, measure: besideQueue },
  { name: "a limited tenant's flood of 8 MiB bodies", inSmoke: false, measure: besideFlood },
  { name: "so many tenants with a message each", inSmoke: false, measure: besideManyTenants },
  { name: "a relay that refuses everything", inSmoke: true, measure: besideRefusals },
  { name: "a process joins and one leaves", inSmoke: false, measure: besideMoves },
];

interface Place {
  readonly waybill: Waybill;
  readonly relay: ScriptedRelay;
  readonly healthy: LoadTenant;
  readonly others: readonly LoadTenant[];
  readonly undo: Undo;
}

/** Starts one process on an empty, durable Redis, measures alone, disturbs it, and measures again. */
async function beside(
  load: NeighbourLoad,
  others: (relay: ScriptedRelay) => readonly SeedTenant[],
  disturb: (place: Place) => Promise<() => Promise<string>>,
): Promise<NeighbourRun> {
  const undo = new Undo();
  try {
    const redis = undo.add(await startBenchRedis(), (one) => one.stop());
    const relay = undo.add(await ScriptedRelay.start(), (one) => one.stop());
    const home = undo.add(await temporaryHome(), (one) => one.remove()).path;
    const [healthy, ...rest] = await seedTenants({ home }, [{ id: "healthy" }, ...others(relay)]);
    if (healthy === undefined) throw new Error("a healthy tenant was seeded");
    const urls = { REDIS_URL: redis.url, SMTP_URL: relay.url() };
    const waybill = undo.add(await startWaybill(home, { ...OWN_RELAYS, ...urls, MASTER_KEY: SEED_MASTER_KEY }), (one) =>
      one.kill(),
    );
    await untilOwned(redis, 16);
    const steady = { tenants: [healthy], perSecond: load.perSecond, seconds: load.seconds, patienceMs: PATIENCE_MS };
    // The first messages of a process measure compilation, so they do not count.
    await sendSteadily(waybill, relay, { ...steady, name: "warm-up", seconds: 1 });
    const alone = await sendSteadily(waybill, relay, { ...steady, name: "alone" });
    const end = await disturb({ waybill, relay, healthy, others: rest, undo });
    const run = await sendSteadily(waybill, relay, { ...steady, name: "beside" });
    const note = await end();
    return { alone: alone.handOverMs, beside: run.handOverMs, missing: run.missing, note };
  } finally {
    await undo.run();
  }
}

async function untilOwned(redis: RedisServer, shards: number): Promise<void> {
  const isOwned = async () => !(await readOwners(redis, shards)).includes(null);
  await eventually("every shard has an owner", isOwned, 30_000);
}

const named = (count: number): readonly SeedTenant[] => Array.from({ length: count }, (_, i) => ({ id: `other-${i}` }));

const withRelays = (count: number, relay: ScriptedRelay): readonly SeedTenant[] =>
  Array.from({ length: count }, (_, i) => ({ id: `other-${i}`, smtpUrl: relay.url(formatHost(i)) }));

async function flood(
  { waybill, undo }: Place,
  tenants: readonly LoadTenant[],
  options: Partial<Flood> & { readonly rate: FloodRate },
) {
  const apiKeys = tenants.map(({ apiKey }) => apiKey);
  const common = { url: `${waybill.url}/v1/send/email`, apiKeys, content: "mail", bytes: 0 } as const;
  return undo.add(await startFlood({ ...common, ...options }), (one) => one.stop());
}

const FAST: FloodRate = { connections: 32, pauseMs: 0 };

/** Their relays accept a message and then stay silent. */
function besideHanging(load: NeighbourLoad): Promise<NeighbourRun> {
  return beside(
    load,
    (relay) => withRelays(load.hanging, relay),
    async (place) => {
      place.others.forEach((_, i) => place.relay.behave({ silentAt: "message" }, formatHost(i)));
      const sent = await flood(place, place.others, { total: 3 * load.hanging, rate: FAST });
      await sent.done;
      return async () => `${load.hanging} tenants, ${describe(await sent.stop())}`;
    },
  );
}

function besideQueue(load: NeighbourLoad): Promise<NeighbourRun> {
  return beside(
    load,
    () => named(1),
    async (place) => {
      const sent = await flood(place, place.others, { total: load.queued, rate: FAST });
      await sent.done;
      return async () => `${load.queued} queued, ${describe(await sent.stop())}`;
    },
  );
}

function besideFlood(load: NeighbourLoad): Promise<NeighbourRun> {
  return beside(
    load,
    () => [{ id: "limited", plan: "limited" }],
    async (place) => {
      const rate = { connections: 50, pauseMs: 200 };
      const sent = await flood(place, place.others, { content: "text", bytes: 8 * MEBIBYTE, rate });
      return async () => describe(await sent.stop());
    },
  );
}

function besideManyTenants(load: NeighbourLoad): Promise<NeighbourRun> {
  return beside(
    load,
    () => named(load.tenants),
    async (place) => {
      const sent = await flood(place, place.others, { total: load.tenants, rate: FAST });
      return async () => {
        await sent.done;
        return `${load.tenants} tenants, ${describe(await sent.stop())}`;
      };
    },
  );
}

function besideRefusals(load: NeighbourLoad): Promise<NeighbourRun> {
  return beside(
    load,
    (relay) => withRelays(1, relay),
    async (place) => {
      place.relay.behave({ verdict: "554 5.7.1 Message rejected due to policy" }, formatHost(0));
      const sent = await flood(place, place.others, { rate: { connections: 8, pauseMs: 5 } });
      return async () => `${place.relay.refused} refused, ${describe(await sent.stop())}`;
    },
  );
}

/** Several dispatchers on real servers; deliveries of ten seconds are in flight at each move. */
async function besideMoves(load: NeighbourLoad): Promise<NeighbourResult> {
  const why = postgresMissing();
  if (why !== null) return { missing: why };
  const undo = new Undo();
  try {
    const postgres = undo.add(await createPostgres(), (one) => one.remove());
    const redis = undo.add(await startBenchRedis(), (one) => one.stop());
    const relay = undo.add(await ScriptedRelay.start(), (one) => one.stop());
    const wanted = [
      ...Array.from({ length: SHARDS }, (_, i) => ({ id: `healthy-${i}` })),
      ...withRelays(SHARDS, relay),
    ];
    for (let i = 0; i < SHARDS; i += 1) relay.behave({ answerMs: SLOW_MS }, formatHost(i));
    const seeded = await seedTenants({ databaseUrl: postgres.url, shards: SHARDS }, wanted);
    const [healthy, slow] = [seeded.slice(0, SHARDS), seeded.slice(SHARDS)];
    const urls = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, SMTP_URL: relay.url() };
    const secrets = { MASTER_KEY: SEED_MASTER_KEY, OPERATOR_TOKEN: "operator-token-of-the-bench" };
    const environment = { ...OWN_RELAYS, ...urls, ...secrets, SHARDS: String(SHARDS) };
    const start = async (roles: string) => {
      const home = undo.add(await temporaryHome(), (one) => one.remove()).path;
      return undo.add(await startWaybill(home, { ...environment, ROLES: roles }), (one) => one.kill());
    };
    const front = await start("api,recorder");
    await start("dispatcher");
    await untilOwned(redis, SHARDS);
    const steady = { tenants: healthy, perSecond: load.perSecond, patienceMs: PATIENCE_MS };
    await sendSteadily(front, relay, { ...steady, name: "warm-up", seconds: 1 });
    const alone = await sendSteadily(front, relay, { ...steady, name: "alone", seconds: load.seconds });
    const sender = new SteadySender(front, relay, { ...steady, name: "beside", seconds: 300 });
    const running = sender.run();
    await sendSlow(front, relay, slow);
    const joining = await start("dispatcher");
    await untilOwners(redis, 2);
    await sendSlow(front, relay, slow);
    const stopped = joining.stop();
    await untilOwners(redis, 1);
    await stopped;
    sender.stop();
    const run = await running;
    const note = `${SHARDS} deliveries of ${SLOW_MS / 1000} s in flight at each move, ${relay.repeats} sent twice`;
    return { alone: alone.handOverMs, beside: run.handOverMs, missing: run.missing, note };
  } finally {
    await undo.run();
  }
}

/** Returns once all of them are in flight. */
async function sendSlow(front: Waybill, relay: ScriptedRelay, tenants: readonly LoadTenant[]): Promise<void> {
  const before = relay.arrivals.filter(({ recipient }) => recipient.startsWith("slow")).length;
  const mail = { to_address: "slow@example.com", subject: "Hello", html: "<p>Hello</p>" };
  await Promise.all(tenants.map(({ apiKey }) => front.request(apiKey, "POST", "/v1/send/email", mail)));
  const areTaken = () =>
    relay.arrivals.filter(({ recipient }) => recipient.startsWith("slow")).length >= before + tenants.length;
  await eventually("the slow deliveries are in flight", areTaken, 4 * SLOW_MS);
}

async function untilOwners(redis: RedisServer, count: number): Promise<void> {
  const isSo = async () => {
    const owners = await readOwners(redis, SHARDS);
    return !owners.includes(null) && new Set(owners).size === count;
  };
  await eventually(`${count} processes own the shards`, isSo, 60_000);
}

function describe(statuses: Readonly<Record<string, number>>): string {
  return `answers ${Object.entries(statuses)
    .map(([status, count]) => `${status}: ${count}`)
    .join(", ")}`;
}
