import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import { type RedisAddress } from "../../../src/engine/queue/connection.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { PULL } from "./queue-pulls.ts";
import { RedisWire } from "./redis-wire.ts";

/** The longest delay that a half-open connection may cause. */
const RECOVERED_MS = 7_000;
/** In addition to the machine's own delays. */
const SLACK_MS = 2_000;

const jobIds = new JobIds(systemClock, systemRandom);
const ACME = { tenantId: "acme", shard: 0 } as const;
const redisOf = new Map<"url" | "cluster", { redis: RedisServer; wire: RedisWire; queue: RedisQueue }>();

async function open(kind: "url" | "cluster") {
  const wire = await RedisWire.start();
  const cluster = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
  const redis = await startRedis(kind === "url" ? [] : [...cluster, "--cluster-announce-port", String(wire.port)]);
  wire.redisPort = Number(new URL(redis.url).port);
  if (kind === "cluster") {
    await redis.client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await eventually("the cluster is whole", async () =>
      String(await redis.client.call("CLUSTER", "INFO")).includes("cluster_state:ok"),
    );
  }
  const url = `redis://127.0.0.1:${wire.port}`;
  const address: RedisAddress = kind === "url" ? { kind, url } : { kind, urls: [url] };
  const queue = new RedisQueue({
    channels: CHANNELS,
    address,
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  redisOf.set(kind, { redis, wire, queue });
  await queue.start();
}

beforeAll(async () => {
  await open("url");
  await open("cluster");
}, 90_000);

afterAll(async () => {
  for (const { redis, wire, queue } of redisOf.values()) {
    await queue.stop();
    wire.stop();
    await redis.stop();
  }
});

async function hearsRelease(queue: RedisQueue): Promise<boolean> {
  const lease = await queue.acquire(1, "recorder", "test", null);
  if (lease === null) return false;
  const heard = new Promise<boolean>((resolve) => {
    const stop = queue.onRelease(() => resolve(true));
    systemClock.setTimer(200, () => {
      stop();
      resolve(false);
    });
  });
  await queue.release(lease);
  return heard;
}

for (const kind of ["url", "cluster"] as const) {
  test(`connections whose other end vanished silently are replaced in time (${kind})`, async () => {
    const { wire, queue } = redisOf.get(kind) ?? { wire: null, queue: null };
    if (wire === null) throw new Error("not started");
    const newJob = () => {
      const jobId = jobIds.next();
      return { jobId, channel: "email", recipient: "ann@example.com", payload: "{}", idempotency: null } as const;
    };
    const lease = await queue.acquire(0, "dispatcher", "test", null);
    if (lease === null) throw new Error("the lease is taken");
    await queue.accept(ACME, 1_000, newJob());
    wire.silenceExisting();
    const since = Date.now();
    const within = async (what: string, call: () => Promise<boolean>) => {
      await eventually(what, () => call().catch(() => false), 20_000);
      expect(`${what} after ${Date.now() - since > RECOVERED_MS + SLACK_MS ? Date.now() - since : 0} ms`).toBe(
        `${what} after 0 ms`,
      );
    };
    await Promise.all([
      within("requests are accepted", async () => (await queue.accept(ACME, 1_000, newJob())).kind === "accepted"),
      within("the lease is renewed", () => queue.renew(lease)),
      within("jobs are pulled", async () => (await queue.pull(lease, PULL)) !== FENCED),
      within("outcomes are settled", async () => (await queue.settle(lease, [])) === "settled"),
    ]);
    await within("releases are heard", () => hearsRelease(queue));
  }, 90_000);
}

test("subscriptions come back after a connection that breaks before they are active", async () => {
  const { wire, queue } = redisOf.get("url") ?? { wire: null, queue: null };
  if (wire === null) throw new Error("not started");
  wire.breakNext("\r\nsubscribe\r\n", "request");
  wire.breakExisting();
  await eventually("a connection breaks as it subscribes", () => wire.hasBroken);
  await eventually("releases are heard", () => hearsRelease(queue).catch(() => false));
}, 90_000);

test("an idle connection is replaced, too: the first call finds a working one", async () => {
  const { wire, queue } = redisOf.get("url") ?? { wire: null, queue: null };
  if (wire === null) throw new Error("not started");
  wire.silenceExisting();
  const front: unknown = Reflect.get(queue, "front");
  if (!(front instanceof Object) || !("once" in front)) throw new Error("the queue has a connection of this name");
  const connection = front as { once(event: "ready", listener: () => void): void };
  await new Promise<void>((resolve) => connection.once("ready", resolve));
  const since = Date.now();
  await queue.probe.check();
  expect(Date.now() - since).toBeLessThan(SLACK_MS);
}, 90_000);
