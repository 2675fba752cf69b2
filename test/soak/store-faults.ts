import type { Dice } from "../simulation/dice.ts";
import type { FaultProxy } from "../support/fault-proxy.ts";
import { type FaultKind, LEASE_MS, lasting } from "./fault.ts";
import { fillRedis } from "./soak-stores.ts";
import type { SoakWorld } from "./soak-world.ts";

const NETWORK_KBPS = 200;
/** Less than the space that the event store leaves free on the soak's disk, and the time for its running writes. */
const NEARLY_FULL_MIB = 48;
const NEARLY_FULL_MS = 5_000;

/** Faults of Redis, PostgreSQL and the disk. */
export const storeFaults: readonly FaultKind[] = [
  { name: "kill-redis", weight: 5, group: "store", run: killRedis },
  { name: "redis-full", weight: 4, group: "store", run: redisFull },
  { name: "disk-full", weight: 3, group: "store", isPossible: ({ stores }) => stores.hasOwnDisk, run: diskFull },
  { name: "redis-network", weight: 8, group: "store", isPossible: hasServers, run: redisNetwork },
  { name: "postgres-network", weight: 5, group: "store", isPossible: hasServers, run: postgresNetwork },
  { name: "cut-off", weight: 4, group: "store", isPossible: hasServers, run: cutOff },
];

function hasServers({ stores }: SoakWorld): boolean {
  return stores.servers !== null;
}

/** Redis is durable (`appendfsync always`), so its death excuses no loss. */
async function killRedis(world: SoakWorld): Promise<void> {
  const { stores, service, faults } = world;
  const span = faults.begin("kill -9", "redis");
  if (stores.servers === null) {
    const pid = service.processes().get("redis");
    if (pid !== undefined) process.kill(pid, "SIGKILL");
  } else {
    await stores.servers.redis.kill();
    await Bun.sleep(1_000);
    await stores.servers.redis.restart();
  }
  faults.end(span);
}

async function redisFull(world: SoakWorld, dice: Dice): Promise<void> {
  const { stores, service } = world;
  const own = stores.servers === null ? service.redis() : null;
  const redis = own ?? stores.servers?.redis.client;
  if (redis === undefined) return;
  let end: (() => Promise<void>) | null = null;
  try {
    await lasting(world, {
      kind: "full Redis",
      target: "redis",
      ms: dice.between(2_000, 15_000),
      begin: async () => {
        end = await within(5_000, fillRedis(redis));
      },
      end: () => (end === null ? undefined : within(10_000, end())),
    });
  } finally {
    own?.disconnect();
  }
}

/**
 * The data folder's file system accepts no more bytes. It fills up in two steps: the event store stops by itself before
 * a disk is full (`src/storage/engine-config.ts`), provided that its running writes have the time to end.
 */
async function diskFull(world: SoakWorld, dice: Dice): Promise<void> {
  const { stores } = world;
  await lasting(world, {
    kind: "full disk",
    target: stores.servers === null ? "all stores" : "redis and event store",
    ms: dice.between(1_000, 8_000),
    begin: async () => {
      await stores.fillDisk(NEARLY_FULL_MIB);
      await Bun.sleep(NEARLY_FULL_MS);
      await stores.fillDisk(0);
    },
    end: async () => {
      stores.freeDisk();
      // With `appendfsync always` Redis ends itself; a service manager starts it again.
      if (stores.servers === null) return;
      const isUp = await within(3_000, stores.servers.redis.client.ping());
      if (isUp === null) await stores.servers.redis.restart();
    },
  });
}

/**
 * The connections to Redis, for both starts or for the main start alone, whose shards the second one takes over after a
 * lease.
 */
async function redisNetwork(world: SoakWorld, dice: Dice): Promise<void> {
  const { servers } = world.stores;
  if (servers === null) return;
  const way = dice.pick(["silent", "half-open", "refused", "thin"] as const);
  const ms = way === "thin" ? 10_000 : dice.between(1_000, 20_000);
  const isForAll = dice.chance(0.7);
  const proxies = isForAll ? [servers.redisProxy, servers.sideProxy] : [servers.redisProxy];
  await lasting(world, {
    kind: `Redis ${way}`,
    target: isForAll ? "network" : "network of the main start",
    ms,
    excuse: !isForAll && ms > LEASE_MS ? "cut_off" : null,
    begin: () => Promise.all(proxies.map((proxy) => disturb(proxy, way))),
    end: () => Promise.all(proxies.map(heal)),
  });
}

async function disturb(proxy: FaultProxy, way: "silent" | "half-open" | "refused" | "thin"): Promise<void> {
  if (way === "silent") proxy.silence();
  else if (way === "half-open") proxy.silenceExisting();
  else if (way === "thin") {
    proxy.bandwidth(NETWORK_KBPS * 1024);
    proxy.latency(20);
  } else await proxy.refuse();
}

async function heal(proxy: FaultProxy): Promise<void> {
  proxy.bandwidth(null);
  proxy.latency(0);
  await proxy.pass();
}

async function postgresNetwork(world: SoakWorld, dice: Dice): Promise<void> {
  const proxy = world.stores.servers?.postgresProxy;
  if (proxy === undefined) return;
  const way = dice.pick(["silent", "half-open", "refused"] as const);
  await lasting(world, {
    kind: `PostgreSQL ${way}`,
    target: "network",
    ms: dice.between(1_000, 15_000),
    begin: async () => {
      if (way === "silent") proxy.silence();
      else if (way === "half-open") proxy.silenceExisting();
      else await proxy.refuse();
    },
    end: () => proxy.pass(),
  });
}

/** The second start alone does not reach Redis, and loses its shards. */
async function cutOff(world: SoakWorld, dice: Dice): Promise<void> {
  const proxy = world.stores.servers?.sideProxy;
  if (proxy === undefined) return;
  await lasting(world, {
    kind: "cut off from Redis",
    target: "second start",
    ms: dice.between(5_000, 25_000),
    excuse: "cut_off",
    begin: () => proxy.silence(),
    end: () => proxy.pass(),
  });
}

/** Null: not within that time. */
function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  return Promise.race([work.catch(() => null), Bun.sleep(ms).then(() => null)]);
}
