import { afterEach, expect, test } from "bun:test";
import { createServer } from "node:net";
import { Redis } from "ioredis";
import { CHANNELS } from "../../../src/app/channels.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import type { RedisAddress } from "../../../src/engine/queue/connection.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { Undo } from "../../support/undo.ts";
import { PULL, ROOM } from "./queue-pulls.ts";
import { RedisWire } from "./redis-wire.ts";

const undo = new Undo();
afterEach(() => undo.run(), 90_000);

const jobIds = new JobIds(systemClock, systemRandom);
const ACME = { tenantId: "acme", shard: 0 } as const;

async function redisBehind(wire: RedisWire, ...settings: readonly string[]): Promise<RedisServer> {
  const redis = undo.add(await startRedis(settings), (one) => one.stop());
  wire.redisPort = Number(new URL(redis.url).port);
  return redis;
}

async function newWire(): Promise<RedisWire> {
  return undo.add(await RedisWire.start(), (one) => one.stop());
}

async function openQueue(address: RedisAddress): Promise<RedisQueue> {
  const telemetry = new QuietTelemetry();
  const options = { channels: CHANNELS, address, clock: systemClock, random: systemRandom, telemetry };
  const queue = undo.add(new RedisQueue(options), (one) => one.stop());
  await queue.start();
  return queue;
}

/** A cluster of two masters behind a wire each. The first has the slots below 8192. */
async function clusterOfTwo(): Promise<readonly [RedisWire, RedisWire]> {
  const wires = [await newWire(), await newWire()] as const;
  const ranges = [
    [0, 8191],
    [8192, 16383],
  ] as const;
  const nodes: RedisServer[] = [];
  for (const [i, wire] of wires.entries()) {
    const cluster = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
    const redis = await redisBehind(wire, ...cluster, "--cluster-announce-port", String(wire.port));
    await redis.client.call("CLUSTER", "ADDSLOTSRANGE", ...(ranges[i] ?? []));
    await redis.client.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
    nodes.push(redis);
  }
  const [one, two] = nodes;
  if (one === undefined || two === undefined) throw new Error("two nodes");
  const [, busPort] = (await two.client.config("GET", "cluster-port")) as [string, string];
  await one.client.call("CLUSTER", "MEET", "127.0.0.1", new URL(two.url).port, busPort);
  for (const { client } of nodes) {
    await eventually("the cluster is whole", async () => {
      const info = String(await client.call("CLUSTER", "INFO"));
      return info.includes("cluster_state:ok") && info.includes("cluster_known_nodes:2");
    });
  }
  return wires;
}

/** Every slot of the first node begins to move to the second. */
async function startMoving(wires: readonly [RedisWire, RedisWire]): Promise<void> {
  const [from, to] = wires.map(({ redisPort }) => undo.add(new Redis(redisPort), (one) => one.disconnect()));
  if (from === undefined || to === undefined) throw new Error("two nodes");
  const [fromId, toId] = [await from.call("CLUSTER", "MYID"), await to.call("CLUSTER", "MYID")];
  const [sending, taking] = [from.pipeline(), to.pipeline()];
  for (let slot = 0; slot < 8192; slot += 1) {
    sending.call("CLUSTER", "SETSLOT", String(slot), "MIGRATING", String(toId));
    taking.call("CLUSTER", "SETSLOT", String(slot), "IMPORTING", String(fromId));
  }
  await Promise.all([sending.exec(), taking.exec()]);
}

function newJob(payload = "{}") {
  const jobId = jobIds.next();
  return { jobId, channel: "email", recipient: "ann@example.com", payload, idempotency: null } as const;
}

test("in a cluster, a job whose reply is lost with its connection is queued once", async () => {
  const wires = await clusterOfTwo();
  const queue = await openQueue({ kind: "cluster", urls: wires.map(({ port }) => `redis://127.0.0.1:${port}`) });
  const lease = await queue.acquire(0, "dispatcher", "test", null);
  if (lease === null) throw new Error("the lease is taken");
  await queue.accept(ACME, 1_000, newJob());
  const job = newJob('{"name":"the marked one"}');
  for (const wire of wires) wire.breakNext("the marked one", "reply");

  expect(await queue.accept(ACME, 1_000, job)).toMatchObject({ kind: "accepted", jobId: job.jobId });
  expect(wires.some(({ hasBroken }) => hasBroken)).toBe(true);
  const tenantQueue = {
    tenantQueue: { tenantId: "acme", channel: "email" },
    after: null,
    entriesMax: 64,
    bytesMax: ROOM,
  };
  const pulled = await queue.pull(lease, { ...PULL, tenantQueues: [tenantQueue] });
  const jobs = pulled === FENCED ? [] : (pulled.tenantQueues[0]?.jobs ?? []);
  expect(jobs.filter(({ jobId }) => jobId === job.jobId).length).toBe(1);
}, 90_000);

test("in a cluster, a slot on its way to a node that is gone costs its calls, and no rejection goes unhandled", async () => {
  const wires = await clusterOfTwo();
  const queue = await openQueue({ kind: "cluster", urls: wires.map(({ port }) => `redis://127.0.0.1:${port}`) });
  await startMoving(wires);
  wires[1].stop();
  // An unhandled rejection fails the test by itself.
  const accepting = Array.from({ length: 8 }, (_, shard) => queue.accept({ tenantId: "acme", shard }, 1_000, newJob()));
  for (const { status } of await Promise.allSettled(accepting)) expect(status).toBe("rejected");
}, 90_000);

test("a server that has become a replica is left for the one that the address leads to now", async () => {
  const wire = await newWire();
  const former = await redisBehind(wire);
  const queue = await openQueue({ kind: "url", url: `redis://127.0.0.1:${wire.port}` });
  expect((await queue.accept(ACME, 1_000, newJob())).kind).toBe("accepted");
  const next = await redisBehind(wire);
  await former.client.call("REPLICAOF", "127.0.0.1", new URL(next.url).port);
  await eventually("jobs are accepted by the new master", async () => {
    const answer = await queue.accept(ACME, 1_000, newJob()).catch(() => null);
    return answer?.kind === "accepted";
  });
}, 90_000);

test("in a cluster, a start beside a node that answers nothing ends, well or not", async () => {
  const [wire, mute] = await clusterOfTwo();
  mute.breakExisting();
  mute.isMute = true;
  const urls = [mute, wire].map(({ port }) => `redis://127.0.0.1:${port}`);
  const ends = await Promise.all(
    // Which nodes a process asks is partly chance.
    [1, 2, 3].map(() =>
      openQueue({ kind: "cluster", urls }).then(
        () => null,
        (error: unknown) => error,
      ),
    ),
  );
  for (const end of ends) if (end !== null) expect(end).toBeInstanceOf(UnavailableError);
}, 90_000);

test("while no node of a cluster is there, processes try to hear one no faster than anything else", async () => {
  const wires = await clusterOfTwo();
  const ports = wires.map(({ port }) => port);
  await openQueue({ kind: "cluster", urls: ports.map((port) => `redis://127.0.0.1:${port}`) });
  // Connections to the ports of the nodes are closed at once from here on.
  let tries = 0;
  for (const wire of wires) {
    wire.stop();
    const refusing = undo.add(createServer(), (server) => server.close());
    refusing.on("connection", (socket) => {
      tries += 1;
      socket.on("error", () => {}).destroy();
    });
    await eventually(
      "the port is free",
      () =>
        new Promise<boolean>((resolve) => {
          refusing.once("error", () => resolve(false)).listen(wire.port, "127.0.0.1", () => resolve(true));
        }),
    );
  }
  // Enough time for thousands of tries without a pause between them.
  await Bun.sleep(3_000);
  // Five connections, each at most every 50 ms and soon every half second.
  expect(tries).toBeLessThan(300);
}, 90_000);
