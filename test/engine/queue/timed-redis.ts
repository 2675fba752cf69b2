import { Redis } from "ioredis";
import { CHANNELS } from "../../../src/app/channels.ts";
import { type Clock, type Timer } from "../../../src/domain/clock.ts";
import { assert } from "../../../src/domain/errors.ts";
import type { Random } from "../../../src/domain/random.ts";
import { ChannelLetters } from "../../../src/engine/queue/codec.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { Acceptor } from "../../../src/engine/queue/verbs/accept.ts";
import { Retrier } from "../../../src/engine/queue/verbs/retry.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

/** A key's content in its type's order (sets sorted), and when it expires on the test's clock. */
export interface DumpedKey {
  readonly value: unknown;
  readonly expiresMs: number | null;
}

/** The key from which the scripts read the time. */
const NOW_KEY = "test:now";
/** All lifetimes that the queue, and the test, give to keys: real time that passes in between is rounded away. */
const LIFETIMES_MS = [45_000, 60_000, 62_000, 900_000, 3_600_000, 21_600_000, 86_400_000, 93_600_000, 172_800_000];

/**
 * The queue on a real Redis, at a time of the test's choosing: scripts read TIME from a key, stream entries get their
 * ids from it, and keys expire when that time has passed, not before.
 */
export class TimedRedis {
  private readonly expiries = new Map<string, number>();
  private readonly heard = new Set<number>();
  private readonly released: string[] = [];

  private constructor(
    private readonly server: RedisServer,
    readonly queue: RedisQueue,
    private readonly lossy: LossyConnection,
    private readonly time: { nowMs: number },
  ) {
    queue.onJobs((shard) => this.heard.add(shard));
    queue.onRelease((role, shard) => this.released.push(`${role} ${shard}`));
  }

  static async start(random: Random): Promise<TimedRedis> {
    // The compared state does not depend on the disk.
    const server = await startRedis(["--appendonly", "no"]);
    const address = { kind: "socket", path: server.path } as const;
    const time = { nowMs: 0 };
    // References are kept by the hour of the process that wrote them.
    const clock = { ...systemClock, nowMs: () => time.nowMs };
    const queue = new RedisQueue({ channels: CHANNELS, address, clock, random, telemetry: new QuietTelemetry() });
    for (const name of ["front", "leaseLine", "bulk", "owner"]) {
      // Its own connections, so that all but the time is as in production.
      const connection: unknown = Reflect.get(queue, name);
      assert(connection instanceof Redis, "the queue has a connection of this name");
      sendTimed(connection, (call) => call());
    }
    await queue.start();
    return new TimedRedis(server, queue, new LossyConnection(server.path), time);
  }

  async stop(): Promise<void> {
    this.lossy.redis.disconnect();
    await this.queue.stop();
    await this.server.stop();
  }

  async reset(nowMs: number): Promise<void> {
    await this.server.client.flushall();
    // The commands before a failed list.
    await this.mailHeard();
    this.released.length = 0;
    this.expiries.clear();
    await this.setTime(nowMs);
  }

  async setTime(nowMs: number): Promise<void> {
    await this.dump();
    this.time.nowMs = nowMs;
    const [s, us] = [Math.floor(nowMs / 1000), (nowMs % 1000) * 1000];
    await this.server.client.hset(NOW_KEY, { s, us, ms: nowMs });
  }

  /** Removes expired keys; Redis keeps a key through the very millisecond that it expires in. */
  async expire(): Promise<void> {
    const gone = [...this.expiries].filter(([, expiresMs]) => expiresMs < this.time.nowMs).map(([key]) => key);
    for (const key of gone) this.expiries.delete(key);
    if (gone.length > 0) await this.server.client.del(gone);
  }

  /** A front door whose next call is lost, on its way there or back; it then repeats it. */
  acceptorThatLoses(way: "there" | "back"): Acceptor {
    this.lossy.loses = way;
    const clock = { ...impatientClock, nowMs: () => this.time.nowMs };
    return new Acceptor(this.lossy.redis, clock, "all", { letters: new ChannelLetters(CHANNELS) });
  }

  /** The same for an operator's retries. */
  retrierThatLoses(way: "there" | "back"): Retrier {
    this.lossy.loses = way;
    return new Retrier(this.lossy.redis, impatientClock, new ChannelLetters(CHANNELS));
  }

  /** The shards with announced mail since the last call. */
  async mailHeard(): Promise<readonly number[]> {
    // Received on the same connection, and so after all earlier messages.
    await new Promise<void>((resolve) => {
      const stop = this.queue.onChange(() => {
        stop();
        resolve();
      });
      this.queue.announce(null);
    });
    const heard = [...this.heard].toSorted((a, b) => a - b);
    this.heard.clear();
    return heard;
  }

  /** The leases whose release was announced since the last call; call `mailHeard` first. */
  async releasesHeard(): Promise<readonly string[]> {
    return this.released.splice(0);
  }

  /** Everything that the queue keeps. */
  async dump(): Promise<Map<string, DumpedKey>> {
    // The script answers in this form.
    const keys = (await this.server.client.eval(DUMP, 0)) as [string, string, string[] | string, number][];
    const dumped = new Map<string, DumpedKey>();
    for (const [key, type, value, lifeMs] of keys) {
      this.noteExpiry(key, lifeMs);
      const sorted = type === "set" && Array.isArray(value) ? value.toSorted() : value;
      dumped.set(key, {
        value: type === "hash" ? toPairs(sorted) : sorted,
        expiresMs: this.expiries.get(key) ?? null,
      });
    }
    return dumped;
  }

  private noteExpiry(key: string, lifeMs: number): void {
    if (lifeMs === NEVER) this.expiries.delete(key);
    if (lifeMs < 0) return;
    const given = LIFETIMES_MS.find((ms) => lifeMs <= ms && lifeMs > ms - 15_000);
    assert(given !== undefined, `the life of ${key} is one of those that are known`);
    this.expiries.set(key, this.time.nowMs + given);
  }
}

const NEVER = -1;

/**
 * Returns key, type, content, and lifetime (-1 for ever, -2 as before) of all keys; a key with a reported lifetime
 * lives on for years.
 */
const DUMP = `
local out, far = {}, 1000000000000
for _, key in ipairs(redis.call('KEYS', 'wb:*')) do
  local type, life, value = redis.call('TYPE', key).ok, redis.call('PTTL', key)
  if type == 'string' then value = redis.call('GET', key)
  elseif type == 'hash' then value = redis.call('HGETALL', key)
  elseif type == 'set' then value = redis.call('SMEMBERS', key)
  elseif type == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif type == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else value = redis.call('XRANGE', key, '-', '+') end
  if life > far / 2 then life = -2 elseif life >= 0 then redis.call('PEXPIRE', key, life + far) end
  out[#out + 1] = { key, type, value, life }
end
return out`;

function toPairs(flat: string[] | string): Record<string, string> {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([flat[at] ?? "", flat[at + 1] ?? ""]);
  return Object.fromEntries(pairs);
}

/** Loses a call on request. */
class LossyConnection {
  readonly redis: Redis;
  loses: "there" | "back" | null = null;

  constructor(path: string) {
    this.redis = new Redis({ path });
    sendTimed(this.redis, async (call) => {
      const lost = this.loses;
      this.loses = null;
      if (lost === "there") throw new Error("the connection broke");
      const answer = await call();
      if (lost === "back") throw new Error("the connection broke");
      return answer;
    });
  }
}

/** From now on the connection sends all scripts with the test's time in them, each through `pass`. */
function sendTimed(connection: Redis, pass: (call: () => Promise<unknown>) => Promise<unknown>): void {
  const send = connection.eval.bind(connection);
  Object.assign(connection, {
    evalsha: () => Promise.reject(new Error("NOSCRIPT the text is sent instead")),
    eval: (text: string, keys: number, ...args: (string | number)[]) =>
      pass(async () => send(withTestTime(text), keys, ...args)),
  });
}

function withTestTime(script: string): string {
  const timed = script.replaceAll("redis.call('TIME')", `redis.call('HMGET', '${NOW_KEY}', 's', 'us')`);
  assert(!/["']TIME["']/i.test(timed), "all scripts that ask for the time do it in one way");
  return timed.replaceAll("'*'", NEXT_OUTBOX_ID);
}

/** The id that "*" stands for at the test's time: behind the last one where the clock was set back. */
const NEXT_OUTBOX_ID = `(function()
  local now, key, last = redis.call('HGET', '${NOW_KEY}', 'ms'), prefix .. ':outbox', '0-0'
  if redis.call('EXISTS', key) == 1 then
    local told = redis.call('XINFO', 'STREAM', key)
    for i = 1, #told, 2 do if told[i] == 'last-generated-id' then last = told[i + 1] end end
  end
  return (tonumber(last:match('^%d+')) >= tonumber(now) and last:match('^%d+') or now) .. '-*'
end)()`;

const impatientClock: Clock = {
  nowMs: () => 0,
  monotonicMs: () => 0,
  setTimer(_delayMs, run): Timer {
    queueMicrotask(run);
    return { cancel: () => {} };
  },
};
