import { Command } from "ioredis";
import { assert } from "../../../src/domain/errors.ts";
import { type Keyspace, type Reply, Status } from "../../support/memory-redis/keyspace.ts";
import { MemoryConnection } from "../../support/memory-redis/memory-connection.ts";
import type { RedisServer } from "../../support/redis.ts";

/** A command that a Redis in memory got, the time by its clock, keys that had expired by then, and its reply. */
export interface Recorded {
  readonly nowMs: number;
  readonly expired: readonly string[];
  readonly name: string;
  readonly args: readonly string[];
  readonly reply: Comparable;
}

/** A reply, or the first word of an error. */
export type Comparable = number | string | null | { readonly error: string } | readonly Comparable[];

/** All commands that connections to Redis in memory carry while `run` runs. */
export async function recordedWhile(run: () => unknown): Promise<readonly Recorded[]> {
  const log: Recorded[] = [];
  const execute = MemoryConnection.prototype["execute"];
  MemoryConnection.prototype["execute"] = async function (name, args) {
    const { keys } = this["server"];
    const call = { nowMs: keys.nowMs(), expired: keys.expire(), name, args };
    const reply = execute.call(this, name, args);
    await reply.then(
      (value) => log.push({ ...call, reply: comparable(value) }),
      (error: unknown) => log.push({ ...call, reply: toComparableError(error) }),
    );
    // Which scripts it knows does not matter: it gets the text then.
    if (Bun.deepEquals(log.at(-1)?.reply, { error: "NOSCRIPT" })) log.pop();
    return reply;
  };
  try {
    await run();
  } finally {
    MemoryConnection.prototype["execute"] = execute;
  }
  return log;
}

export function comparable(reply: Reply): Comparable {
  if (reply instanceof Status) return reply.text;
  if (typeof reply === "object" && reply !== null) return reply.map(comparable);
  return reply;
}

export function toComparableError(error: unknown): Comparable {
  assert(error instanceof Error && error.name === "ReplyError", String(error));
  return { error: /^[A-Z]+/.exec(error.message)?.[0] ?? "" };
}

/** Where the scripts find the time. */
const NOW_KEY = "test:now";

/** A real Redis that is asked what one in memory was asked, at the times of that one. */
export class RealRedis {
  private nowMs = Number.NaN;
  /** By the digest of the script that was asked for. */
  private readonly scripts = new Map<string, string>();

  constructor(private readonly server: RedisServer) {}

  async reset(): Promise<void> {
    this.nowMs = Number.NaN;
    await this.server.client.flushall();
  }

  /** Its answer; undefined if the call is not sent to it. */
  async replay({ nowMs, expired, name, args }: Recorded): Promise<Comparable | undefined> {
    const [script = "", ...rest] = args;
    if (expired.length > 0) await this.ask("del", expired);
    if (name === "subscribe" || name === "publish" || name === "info") return undefined;
    if (name !== "eval" && name !== "evalsha") return this.ask(name, args);
    if (name === "eval") {
      const digest = new Bun.CryptoHasher("sha1").update(Buffer.from(script, "latin1")).digest("hex");
      const loaded = await this.ask("script", ["load", withTestTime(script)]);
      this.scripts.set(digest, String(loaded));
      return this.run(nowMs, String(loaded), rest);
    }
    const digest = this.scripts.get(script);
    return digest === undefined ? undefined : this.run(nowMs, digest, rest);
  }

  private async run(nowMs: number, digest: string, rest: readonly string[]): Promise<Comparable> {
    if (nowMs !== this.nowMs) {
      const [s, us] = [Math.floor(nowMs / 1000), (nowMs % 1000) * 1000];
      await this.server.client.hset(NOW_KEY, { s, us, ms: nowMs });
      this.nowMs = nowMs;
    }
    return this.ask("evalsha", [digest, ...rest]);
  }

  ask(name: string, args: readonly string[]): Promise<Comparable> {
    const bytes = args.map((arg) => Buffer.from(arg, "latin1"));
    // In capitals, ioredis leaves the reply as it is.
    const command = new Command(name.toUpperCase(), bytes);
    void this.server.client.sendCommand(command);
    return command.promise.then(fromBuffers, toComparableError);
  }

  /** Everything that it keeps: each key's type, content, and whether it expires. */
  async dump(): Promise<Record<string, unknown>> {
    // The script answers in this form.
    const keys = (await this.ask("eval", [DUMP, "0"])) as [string, string, Comparable, number][];
    return Object.fromEntries(keys.map(([key, type, value, life]) => [key, [type, inOrder(type, value), life >= 0]]));
  }
}

/** The same of one in memory. */
export function dumpKeys(keys: Keyspace): Record<string, unknown> {
  const dumped = keys.names().map((key) => {
    const entry = keys.entry(key);
    assert(entry !== undefined, "it is named");
    return [key, [entry.type, inOrder(entry.type, readContent(keys, key)), entry.expiresMs !== null]] as const;
  });
  return Object.fromEntries(dumped);
}

function readContent(keys: Keyspace, key: string): Comparable {
  switch (keys.entry(key)?.type) {
    case "string":
      return keys.read(key, "string")?.text ?? "";
    case "hash":
      return [...(keys.read(key, "hash") ?? [])].flat();
    case "set":
      return [...(keys.read(key, "set") ?? [])];
    case "list":
      return keys.read(key, "list") ?? [];
    case "zset":
      return [...(keys.read(key, "zset")?.scores ?? [])].flatMap(([member, score]) => [member, String(score)]);
    default:
      return (keys.read(key, "stream")?.entries ?? []).map(({ ms, sequence, fields }) => [`${ms}-${sequence}`, fields]);
  }
}

/** Hashes and sets have no order of their own; scores are numbers. */
function inOrder(type: string, value: Comparable): unknown {
  if (!Array.isArray(value) || type === "list" || type === "stream") return value;
  if (type === "set") return value.map(String).toSorted((one, other) => (one < other ? -1 : 1));
  const pairs: [string, string | number][] = [];
  for (let at = 0; at + 1 < value.length; at += 2) {
    const held = String(value[at + 1]);
    pairs.push([String(value[at]), type === "zset" ? Number(held) : held]);
  }
  return Object.fromEntries(pairs);
}

function fromBuffers(reply: unknown): Comparable {
  if (reply instanceof Buffer) return reply.toString("latin1");
  if (Array.isArray(reply)) return reply.map(fromBuffers);
  return reply as number | string | null;
}

/** Answers key, type, content, and its life (-1 for ever) of all. */
const DUMP = `
local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type, life, value = redis.call('TYPE', key).ok, redis.call('PTTL', key)
  if type == 'string' then value = redis.call('GET', key)
  elseif type == 'hash' then value = redis.call('HGETALL', key)
  elseif type == 'set' then value = redis.call('SMEMBERS', key)
  elseif type == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif type == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else value = redis.call('XRANGE', key, '-', '+') end
  if key ~= '${NOW_KEY}' then out[#out + 1] = { key, type, value, life } end
end
return out`;

function withTestTime(script: string): string {
  const timed = script.replaceAll("redis.call('TIME')", `redis.call('HMGET', '${NOW_KEY}', 's', 'us')`);
  assert(!/["']TIME["']/i.test(timed), "all scripts that ask for the time do it in one way");
  return timed.replaceAll(/redis\.call\('XADD', ([^,]+), '\*'/g, "redis.call('XADD', $1, next_id($1)").replace(
    // Behind the line that names its flags.
    /\n/,
    `\n${NEXT_ID}\n`,
  );
}

/** The id that "*" stands for at the test's time: behind the last one where the clock was set back. */
const NEXT_ID = `local function next_id(key)
  local now, last = redis.call('HGET', '${NOW_KEY}', 'ms'), '0-0'
  if redis.call('EXISTS', key) == 1 then
    local told = redis.call('XINFO', 'STREAM', key)
    for i = 1, #told, 2 do if told[i] == 'last-generated-id' then last = told[i + 1] end end
  end
  return (tonumber(last:match('^%d+')) >= tonumber(now) and last:match('^%d+') or now) .. '-*'
end`;
