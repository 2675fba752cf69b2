import { type Keyspace, type Reply, ReplyError, Status, type StreamEntry } from "./keyspace.ts";
import { numberText } from "./lua-values.ts";

type Command = (keys: Keyspace, ...args: string[]) => Reply;

const OK = new Status("OK");
const TYPES_WITHOUT_EMPTY: ReadonlySet<string> = new Set(["hash", "set", "zset", "list"]);

/** The commands that the scripts and their callers use, with the options that they use; others are refused. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  ping: () => new Status("PONG"),
  time: (keys) => {
    const ms = Math.floor(keys.nowMs());
    return [String(Math.floor(ms / 1000)), String((ms % 1000) * 1000)];
  },
  info: () => "used_memory:1000000\r\nmaxmemory:0\r\n",
  wait: () => 0,
  del: (keys, ...names) => count(names, (name) => keys.delete(name)),
  unlink: (keys, ...names) => count(names, (name) => keys.delete(name)),
  exists: (keys, ...names) => count(names, (name) => keys.entry(name) !== undefined),
  pexpire: (keys, key = "", ms) => {
    const entry = keys.entry(key);
    if (entry === undefined) return 0;
    entry.expiresMs = keys.nowMs() + integer(ms);
    return 1;
  },
  persist: (keys, key = "") => {
    const entry = keys.entry(key);
    if (entry === undefined || entry.expiresMs === null) return 0;
    entry.expiresMs = null;
    return 1;
  },

  get: (keys, key = "") => keys.read(key, "string")?.text ?? null,
  mget: (keys, ...names) =>
    names.map((key) => (keys.entry(key)?.type === "string" ? (keys.read(key, "string")?.text ?? null) : null)),
  set: (keys, key = "", text = "", ...options) => {
    const expiresMs = options.length === 0 ? null : keys.nowMs() + integer(readOption(options, "PX"));
    keys.put(key, { type: "string", value: { text }, expiresMs });
    return OK;
  },
  append: (keys, key = "", text = "") => {
    const value = keys.make(key, "string");
    value.text += text;
    return value.text.length;
  },
  incr: (keys, key = "") => increase(keys, key, "1"),
  incrby: (keys, key = "", by = "") => increase(keys, key, by),

  hget: (keys, key = "", field = "") => keys.read(key, "hash")?.get(field) ?? null,
  hmget: (keys, key = "", ...fields) => {
    const hash = keys.read(key, "hash");
    return fields.map((field) => hash?.get(field) ?? null);
  },
  hgetall: (keys, key = "") => [...(keys.read(key, "hash") ?? [])].flat(),
  hkeys: (keys, key = "") => [...(keys.read(key, "hash")?.keys() ?? [])],
  hexists: (keys, key = "", field = "") => Number(keys.read(key, "hash")?.has(field) ?? false),
  hset: (keys, key = "", ...pairs) => {
    if (pairs.length === 0 || pairs.length % 2 === 1)
      throw new ReplyError("ERR wrong number of arguments for 'hset' command");
    const hash = keys.make(key, "hash");
    const before = hash.size;
    for (let at = 0; at < pairs.length; at += 2) hash.set(pairs[at] ?? "", pairs[at + 1] ?? "");
    return hash.size - before;
  },
  hsetnx: (keys, key = "", field = "", value = "") => {
    const hash = keys.make(key, "hash");
    if (hash.has(field)) return 0;
    hash.set(field, value);
    return 1;
  },
  hincrby: (keys, key = "", field = "", by) => {
    const sum = integer(keys.read(key, "hash")?.get(field) ?? "0") + integer(by);
    keys.make(key, "hash").set(field, String(sum));
    return sum;
  },
  hdel: (keys, key = "", ...fields) => {
    const hash = keys.read(key, "hash");
    return shrunk(
      keys,
      key,
      count(fields, (field) => hash?.delete(field) ?? false),
    );
  },
  hscan: (keys, key = "", _cursor, ...options) => {
    const pairs = [...(keys.read(key, "hash") ?? [])];
    return ["0", pairs.filter(([field]) => isLike(field, options)).flat()];
  },

  scard: (keys, key = "") => keys.read(key, "set")?.size ?? 0,
  sadd: (keys, key = "", ...members) => {
    const set = keys.make(key, "set");
    const before = set.size;
    for (const member of members) set.add(member);
    return set.size - before;
  },
  srem: (keys, key = "", ...members) => {
    const set = keys.read(key, "set");
    return shrunk(
      keys,
      key,
      count(members, (member) => set?.delete(member) ?? false),
    );
  },
  /** By chance; here, the first. */
  spop: (keys, key = "", most) => {
    const set = keys.read(key, "set") ?? new Set();
    const popped = [...set].slice(0, integer(most));
    for (const member of popped) set.delete(member);
    return shrunk(keys, key, popped);
  },
  srandmember: (keys, key = "", most) => [...(keys.read(key, "set") ?? [])].slice(0, integer(most)),
  sunionstore: (keys, to = "", ...from) => {
    const members = from.flatMap((key) => [...(keys.read(key, "set") ?? [])]);
    keys.delete(to);
    if (members.length === 0) return 0;
    keys.put(to, { type: "set", value: new Set(members), expiresMs: null });
    return new Set(members).size;
  },
  sscan: (keys, key = "", _cursor, ...options) => {
    return ["0", [...(keys.read(key, "set") ?? [])].filter((member) => isLike(member, options))];
  },

  zcard: (keys, key = "") => keys.read(key, "zset")?.scores.size ?? 0,
  zscore: (keys, key = "", member = "") => scoreText(keys.read(key, "zset")?.scores.get(member)),
  zmscore: (keys, key = "", ...members) => {
    const scores = keys.read(key, "zset")?.scores;
    return members.map((member) => scoreText(scores?.get(member)));
  },
  zadd,
  zrem: (keys, key = "", ...members) => {
    const zset = keys.read(key, "zset");
    if (zset !== undefined) zset.sorted = null;
    return shrunk(
      keys,
      key,
      count(members, (member) => zset?.scores.delete(member) ?? false),
    );
  },
  zrange: (keys, key = "", from, to, ...options) => {
    return scored(slice(sorted(keys, key), integer(from), integer(to)), options.includes("WITHSCORES"));
  },
  zrangebyscore: (keys, key = "", from = "", to = "", ...options) => {
    return scored(limited(between(sorted(keys, key), from, to), options), false);
  },
  zrevrangebyscore: (keys, key = "", to = "", from = "", ...options) => {
    return scored(limited(between(sorted(keys, key), from, to).toReversed(), options), false);
  },
  zremrangebyscore: (keys, key = "", from = "", to = "") => {
    const members = between(sorted(keys, key), from, to).map(([member]) => member);
    return members.length === 0 ? 0 : (COMMANDS["zrem"]?.(keys, key, ...members) ?? 0);
  },
  zscan: (keys, key = "") => ["0", scored(sorted(keys, key), true)],

  lpush: (keys, key = "", ...values) => keys.make(key, "list").unshift(...values.toReversed()),
  rpush: (keys, key = "", ...values) => keys.make(key, "list").push(...values),
  llen: (keys, key = "") => keys.read(key, "list")?.length ?? 0,
  lrange: (keys, key = "", from, to) => slice(keys.read(key, "list") ?? [], integer(from), integer(to)),
  ltrim: (keys, key = "", from, to) => {
    const list = keys.read(key, "list") ?? [];
    list.splice(0, list.length, ...slice(list, integer(from), integer(to)));
    return shrunk(keys, key, OK);
  },

  xlen: (keys, key = "") => keys.read(key, "stream")?.entries.length ?? 0,
  xadd,
  xrange: (keys, key = "", from = "", to = "", ...options) => {
    return listed(entriesBetween(keys, key, from, to).slice(0, readCount(options)));
  },
  xrevrange: (keys, key = "", to = "", from = "", ...options) => {
    return listed(entriesBetween(keys, key, from, to).toReversed().slice(0, readCount(options)));
  },
  xdel: (keys, key = "", ...ids) => {
    const stream = keys.read(key, "stream");
    if (stream === undefined) return 0;
    const gone = ids.map((id) => findEntry(stream.entries, id)).filter((at) => at !== -1);
    for (const at of new Set(gone.toSorted((one, other) => other - one))) stream.entries.splice(at, 1);
    return new Set(gone).size;
  },
  xtrim: (keys, key = "", by, sign, id = "") => {
    if (by !== "MINID" || sign !== "=") throw new ReplyError("ERR syntax error");
    const stream = keys.read(key, "stream");
    if (stream === undefined) return 0;
    return stream.entries.splice(0, firstAt(stream.entries, ...parseEntryId(id, 0))).length;
  },

  scan: (keys, _cursor, ...options) => ["0", keys.names().filter((name) => isLike(name, options))],
};

function integer(text = ""): number {
  if (!/^-?\d+$/.test(text)) throw new ReplyError("ERR value is not an integer or out of range");
  return Number(text);
}

function readOption(options: readonly string[], name: string): string {
  const at = options.indexOf(name);
  if (at === -1) throw new ReplyError("ERR syntax error");
  return options[at + 1] ?? "";
}

function readCount(options: readonly string[]): number {
  return options.length === 0 ? Number.POSITIVE_INFINITY : integer(readOption(options, "COUNT"));
}

/** Of patterns, only `*` and `?`. */
function isLike(name: string, options: readonly string[]): boolean {
  if (!options.includes("MATCH")) return true;
  const source = readOption(options, "MATCH").replace(/[^\w*?]/g, "\\$&");
  return new RegExp(`^${source.replaceAll("*", "[^]*").replaceAll("?", "[^]")}$`).test(name);
}

function count(names: readonly string[], changes: (name: string) => boolean): number {
  return names.filter(changes).length;
}

/** Redis has no empty values but streams. */
function shrunk(keys: Keyspace, key: string, reply: Reply): Reply {
  const entry = keys.entry(key);
  if (entry === undefined || !TYPES_WITHOUT_EMPTY.has(entry.type)) return reply;
  const { value } = entry as { value: { size?: number; length?: number; scores?: Map<string, number> } };
  if ((value.scores?.size ?? value.size ?? value.length) === 0) keys.delete(key);
  return reply;
}

function increase(keys: Keyspace, key: string, by: string): number {
  const sum = integer(keys.read(key, "string")?.text ?? "0") + integer(by);
  keys.make(key, "string").text = String(sum);
  return sum;
}

/** From and to count from the end where they are negative. */
function slice<T>(list: readonly T[], from: number, to: number): T[] {
  return list.slice(from < 0 ? Math.max(0, list.length + from) : from, to < 0 ? list.length + to + 1 : to + 1);
}

function zadd(keys: Keyspace, key = "", ...args: string[]): number {
  const [options, pairs] = /^(XX|GT)$/.test(args[0] ?? "") ? [args[0], args.slice(1)] : ["", args];
  if (options === "XX" && keys.entry(key) === undefined) return 0;
  const zset = keys.make(key, "zset");
  const before = zset.scores.size;
  for (let at = 0; at < pairs.length; at += 2) {
    const [score, member = ""] = [Number(pairs[at]), pairs[at + 1]];
    if (Number.isNaN(score)) throw new ReplyError("ERR value is not a valid float");
    const known = zset.scores.get(member);
    if (options === "XX" && known === undefined) continue;
    if (options === "GT" && known !== undefined && score <= known) continue;
    zset.scores.set(member, score);
  }
  zset.sorted = null;
  return zset.scores.size - before;
}

function sorted(keys: Keyspace, key: string): readonly [string, number][] {
  const zset = keys.read(key, "zset");
  if (zset === undefined) return [];
  zset.sorted ??= [...zset.scores].sort(([one, a], [other, b]) => a - b || (one < other ? -1 : 1));
  return zset.sorted;
}

function between(members: readonly [string, number][], from: string, to: string): readonly [string, number][] {
  const [least, most] = [parseBound(from), parseBound(to)];
  return members.filter(([, score]) => {
    const isAbove = from.startsWith("(") ? score > least : score >= least;
    return isAbove && (to.startsWith("(") ? score < most : score <= most);
  });
}

function parseBound(text: string): number {
  const bare = text.replace(/^\(/, "");
  if (/^[+-]?inf$/.test(bare)) return bare.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(bare);
}

function limited<T>(list: readonly T[], options: readonly string[]): readonly T[] {
  const at = options.indexOf("LIMIT");
  if (at === -1) return list;
  const from = integer(options[at + 1]);
  return list.slice(from, from + integer(options[at + 2]));
}

function scored(members: readonly [string, number][], hasScores: boolean): Reply {
  return members.flatMap(([member, score]) => (hasScores ? [member, scoreText(score)] : [member]));
}

function scoreText(score: number | undefined): string | null {
  return score === undefined ? null : numberText(score, 17);
}

function xadd(keys: Keyspace, key = "", id = "", ...fields: string[]): string {
  const stream = keys.make(key, "stream");
  const { lastMs, lastSequence } = stream;
  let [ms, sequence] = id === "*" ? [Math.floor(keys.nowMs()), 0] : parseEntryId(id, 0);
  if (id === "*" && ms <= lastMs) [ms, sequence] = [lastMs, lastSequence + 1];
  if (ms < lastMs || (ms === lastMs && sequence <= lastSequence)) {
    throw new ReplyError("ERR The ID specified in XADD is equal or smaller than the target stream top item");
  }
  stream.entries.push({ ms, sequence, fields });
  stream.lastMs = ms;
  stream.lastSequence = sequence;
  return `${ms}-${sequence}`;
}

/** `sequence`: what an id without one has. */
function parseEntryId(id: string, sequence: number): [ms: number, sequence: number] {
  const [, ms, of] = /^(\d+)(?:-(\d+))?$/.exec(id) ?? [];
  if (ms === undefined) throw new ReplyError("ERR Invalid stream ID specified as stream command argument");
  return [Number(ms), of === undefined ? sequence : Number(of)];
}

/** The place of the first entry that is not before the id. */
function firstAt(entries: readonly StreamEntry[], ms: number, sequence: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const entry = entries[middle];
    if (entry !== undefined && (entry.ms < ms || (entry.ms === ms && entry.sequence < sequence))) low = middle + 1;
    else high = middle;
  }
  return low;
}

function findEntry(entries: readonly StreamEntry[], id: string): number {
  const [ms, sequence] = parseEntryId(id, 0);
  const at = firstAt(entries, ms, sequence);
  return entries[at]?.ms === ms && entries[at]?.sequence === sequence ? at : -1;
}

function entriesBetween(keys: Keyspace, key: string, from: string, to: string): readonly StreamEntry[] {
  const entries = keys.read(key, "stream")?.entries ?? [];
  const begin = from === "-" ? 0 : boundAt(entries, from, 0, false);
  const end = to === "+" ? entries.length : boundAt(entries, to, Number.MAX_SAFE_INTEGER, true);
  return entries.slice(begin, end);
}

/** Where entries from an id on begin, or those up to an id end; behind "(" without itself. */
function boundAt(entries: readonly StreamEntry[], id: string, otherwise: number, isEnd: boolean): number {
  const isWithout = id.startsWith("(");
  const [ms, sequence] = parseEntryId(isWithout ? id.slice(1) : id, otherwise);
  return firstAt(entries, ms, sequence + (isWithout === isEnd ? 0 : 1));
}

function listed(entries: readonly StreamEntry[]): Reply {
  return entries.map(({ ms, sequence, fields }) => [`${ms}-${sequence}`, fields]);
}
