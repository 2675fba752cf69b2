import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { JobIds } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Settlement } from "../../../src/domain/jobs/queue.ts";
import { simulate } from "../../simulation/simulation.ts";
import { COMMANDS } from "../../support/memory-redis/commands.ts";
import { InstantQueue } from "../../support/memory-redis/instant-queue.ts";
import { MemoryRedis } from "../../support/memory-redis/memory-redis.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import {
  type Comparable,
  comparable,
  dumpKeys,
  RealRedis,
  type Recorded,
  recordedWhile,
  toComparableError,
} from "./replay.ts";

/*
 * The Redis in memory that the simulator runs on, compared with the real one: the same commands, the same Lua, and the
 * scripts that ship with the calls that the queue makes. Replies in an order of chance or of a
 * hash are compared sorted.
 */

const START_MS = Date.UTC(2026, 0, 15);
/** A busy machine takes its time to start a server, and to answer thousands of calls. */
const HOOK_MS = 60_000;
const TEST_MS = 300_000;
let server: RedisServer;
let real: RealRedis;

beforeAll(async () => {
  server = await startRedis(["--appendonly", "no"]);
  real = new RealRedis(server);
}, HOOK_MS);
afterAll(() => server.stop(), HOOK_MS);

function askMemory(memory: MemoryRedis, name: string, args: readonly string[]): Comparable {
  try {
    return comparable(memory.call(name, args));
  } catch (error) {
    return toComparableError(error);
  }
}

const someKey = (type: string) => fc.constantFrom(`${type}1`, `${type}1`, `${type}2`, "string1", "other");
const field = fc.constantFrom("", "a", "b", "c", "dé", "10");
const text = fc.constantFrom("", "x", "y\n\0\xff", "7", "-3", "1.5", "12");
const whole = fc.integer({ min: -4, max: 5 }).map(String);
const score = fc.constantFrom("1", "2", "2", "0.1", "-5", "1768435200123", "1e300");
const bound = fc.constantFrom("-inf", "+inf", "(2", "2", "0", "(-5");
const id = fc.constantFrom("1-0", "2-0", "2-1", "3", "5-0", "8382873625600-0");
const edge = fc.oneof(id, fc.constant("(2-0"));
const some = (each: fc.Arbitrary<string>) => fc.array(each, { minLength: 1, maxLength: 4 });
const pairs = (one: fc.Arbitrary<string>, other: fc.Arbitrary<string>) =>
  fc.array(fc.tuple(one, other), { minLength: 1, maxLength: 3 }).map((list) => list.flat());
const option = (...options: readonly (readonly string[])[]) => fc.constantFrom(...options.map((each) => [...each]));

/** For each command what follows its key. */
const FORMS: Readonly<
  Record<string, { readonly type: string; readonly rest: fc.Arbitrary<readonly (string | readonly string[])[]> }>
> = {
  del: form("hash"),
  unlink: form("set"),
  exists: form("zset"),
  persist: form("string"),
  pexpire: form("string", fc.constant("100000")),
  get: form("string"),
  mget: form("string", some(someKey("string"))),
  append: form("string", text),
  incr: form("string"),
  set: form("string", text, option([], ["PX", "100000"])),
  incrby: form("string", whole),
  hget: form("hash", field),
  hmget: form("hash", some(field)),
  hgetall: form("hash"),
  hkeys: form("hash"),
  hexists: form("hash", field),
  hset: form("hash", pairs(field, text)),
  hsetnx: form("hash", field, text),
  hincrby: form("hash", field, whole),
  hdel: form("hash", some(field)),
  hscan: form("hash", fc.constant("0"), option([], ["MATCH", "a*", "COUNT", "9"], ["MATCH", "?*"])),
  scard: form("set"),
  sadd: form("set", some(field)),
  srem: form("set", some(field)),
  spop: form("set", fc.constant("9")),
  srandmember: form("set", fc.constant("9")),
  sunionstore: form("set", some(someKey("set"))),
  sscan: form("set", fc.constant("0")),
  zcard: form("zset"),
  zscore: form("zset", field),
  zmscore: form("zset", some(field)),
  zscan: form("zset", fc.constant("0")),
  zadd: form("zset", option([], ["XX"], ["GT"]), pairs(score, field)),
  zrem: form("zset", some(field)),
  zrange: form("zset", whole, whole, option([], ["WITHSCORES"])),
  zrangebyscore: form("zset", bound, bound, option([], ["LIMIT", "0", "2"], ["LIMIT", "1", "1"])),
  zrevrangebyscore: form("zset", bound, bound, option([], ["LIMIT", "0", "2"])),
  zremrangebyscore: form("zset", bound, bound),
  lpush: form("list", some(text)),
  rpush: form("list", some(text)),
  llen: form("list"),
  lrange: form("list", whole, whole),
  ltrim: form("list", whole, whole),
  xlen: form("stream"),
  xadd: form("stream", id, pairs(field, text)),
  xdel: form("stream", some(id)),
  xrange: form(
    "stream",
    fc.oneof(edge, fc.constant("-")),
    fc.oneof(edge, fc.constant("+")),
    option([], ["COUNT", "2"]),
  ),
  xrevrange: form(
    "stream",
    fc.oneof(edge, fc.constant("+")),
    fc.oneof(edge, fc.constant("-")),
    option([], ["COUNT", "1"]),
  ),
  xtrim: form("stream", fc.constant("MINID"), fc.constant("="), id),
};

function form(type: string, ...rest: readonly fc.Arbitrary<string | readonly string[]>[]) {
  return { type, rest: fc.tuple(...rest) };
}

/** Commands that answer in an order of their own. */
const UNORDERED: ReadonlySet<string> = new Set(["hgetall", "hkeys", "hscan", "spop", "srandmember", "sscan"]);

const commands = fc.array(
  fc.oneof(
    ...Object.entries(FORMS).map(([name, { type, rest }]) =>
      fc.tuple(fc.constant(name), someKey(type), rest).map(([command, key, more]) => [command, key, ...more.flat()]),
    ),
  ),
  { minLength: 1, maxLength: 60 },
);

test("every command that is there is compared, but those without a key", () => {
  const others = ["ping", "time", "info", "wait", "scan"];
  expect(
    Object.keys(COMMANDS)
      .filter((name) => !(name in FORMS))
      .toSorted(),
  ).toEqual(others.toSorted());
});

test.each([1, 2])(
  "the same commands have the same replies and leave the same keys (seed %d)",
  async (seed) => {
    const same = fc.asyncProperty(commands, async (list) => {
      await real.reset();
      const memory = new MemoryRedis(() => START_MS);
      for (const [name = "", ...args] of list) {
        const [ours, theirs] = [askMemory(memory, name, args), await real.ask(name, args)];
        const inOrder = UNORDERED.has(name) ? sortedDeep : (reply: unknown) => reply;
        expect([name, ...args, inOrder(ours)]).toEqual([name, ...args, inOrder(theirs)]);
      }
      expect(dumpKeys(memory.keys)).toEqual(await real.dump());
    });
    await fc.assert(same, { seed, numRuns: 150 });
  },
  TEST_MS,
);

const piece = fc.constantFrom(
  "%a",
  "%d+",
  "[^\n]*",
  "(.-)",
  "%S+",
  "()",
  "x",
  "[%w_-]",
  "%s?",
  "(%l)",
  "%.",
  "-",
  "b*",
  "[^%d]",
  "%%",
);
const pattern = fc.tuple(
  fc.constantFrom("", "^"),
  fc.array(piece, { minLength: 1, maxLength: 4 }),
  fc.constantFrom("", "$"),
);
const subject = fc.string({ unit: fc.constantFrom("a", "x", "b", "1", " ", ".", "-", "\n", "%", "é"), maxLength: 12 });
const LUA = `
local text, pattern, from, by = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local out = { 'found', string.find(text, pattern, from) }
out[#out + 1] = { 'matched', text:match(pattern, from) }
out[#out + 1] = { 'replaced', text:gsub(pattern, by, 3) }
for i, value in ipairs({ tonumber(text) or 'none', tonumber(by) or 'none', text:sub(from, -2), text:rep(2) .. #text }) do
  out[#out + 1] = tostring(value) .. (i < 3 and type(value) == 'number' and value / 3 .. ' ' .. value * 1e14 or '')
end
if pattern:sub(1, 1) ~= '^' then for a, b in text:gmatch(pattern) do out[#out + 1] = { a, b or 'one' } end end
out[#out + 1] = { text:byte(1, -1) }
out[#out + 1] = string.format('%.0f %5s %04x %d %s', from / 2, by, #text, from, by < text and 'less' or by == text and 'same' or 'more')
out[#out + 1] = { select(2, unpack({ from, text, by })) }
for at = 3, from, -1 do out[#out + 1] = at % 3 end
return out`;

test(
  "the same Lua says the same of texts, patterns and numbers",
  async () => {
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
      whole,
      fc.constant("0x1F"),
      fc.constant(" 12 "),
    );
    const parts = fc.tuple(
      fc.oneof(subject, number),
      pattern,
      fc.integer({ min: -3, max: 8 }),
      fc.oneof(fc.constantFrom("", "<%0>", "y%%"), number),
    );
    const memory = new MemoryRedis(() => START_MS);
    const same = fc.asyncProperty(parts, async ([one, [begin, pieces, end], from, by]) => {
      const given = [one, begin + pieces.join("") + end, String(from), by].map((each) =>
        Buffer.from(each).toString("latin1"),
      );
      const args = [LUA, "0", ...given];
      expect(askMemory(memory, "eval", args)).toEqual(await real.ask("eval", args));
    });
    await fc.assert(same, { seed: 1, numRuns: 2_000 });
  },
  TEST_MS,
);

async function expectSameOnRedis(log: readonly Recorded[]): Promise<void> {
  await real.reset();
  for (const call of log) {
    const reply = await real.replay(call);
    if (reply === undefined) continue;
    const said = [call.name, ...call.args.slice(call.name === "eval" ? 1 : 0)];
    expect([...said, sortedDeep(reply)]).toEqual([...said, sortedDeep(call.reply)]);
  }
}

/** Sets name their members in no order of their own. */
function sortedDeep(reply: unknown): unknown {
  if (!Array.isArray(reply)) return reply;
  return reply.map(sortedDeep).toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

test.each([2, 4, 5, 11])(
  "what the engine asks in a simulated run, Redis answers as it did there (seed %d)",
  async (seed) => {
    const log = await recordedWhile(() => simulate(seed, 600));
    expect(log.length).toBeGreaterThan(200);
    await expectSameOnRedis(log);
  },
  TEST_MS,
);

test.each([1, 2, 3])(
  "whatever the queue is asked, its scripts say and leave the same on Redis (seed %d)",
  async (seed) => {
    let state: InstantQueue | null = null;
    const log = await recordedWhile(() => {
      state = askAtRandom(new SeededRandom(seed), 400);
    });
    await expectSameOnRedis(log);
    expect(dumpKeys((state as InstantQueue | null)?.server.keys ?? new MemoryRedis(() => 0).keys)).toEqual(
      await real.dump(),
    );
  },
  TEST_MS,
);

/** So many calls of all kinds, from what calls before them have brought. */
function askAtRandom(random: SeededRandom, calls: number): InstantQueue {
  let nowMs = START_MS;
  const state = new InstantQueue(() => nowMs, random);
  const ids = new JobIds(
    { nowMs: () => nowMs, monotonicMs: () => nowMs, setTimer: () => ({ cancel: () => {} }) },
    random,
  );
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;
  const chance = (of: number) => random.next() < of;
  const tenants = [
    { tenantId: "acme", shard: 0 },
    { tenantId: "bolt", shard: 0 },
    { tenantId: "corp", shard: 1 },
  ] as const;
  const recipients = ["ann@a.test", "bob@b.test", 'é"\\@c.test'];
  const leases = [0, 1].map((shard) => state.now((queue) => queue.acquire(shard, "dispatcher", "one", null)));
  const recorders = [0, 1].map((shard) => state.now((queue) => queue.acquire(shard, "recorder", "one", null)));
  const jobs: { readonly tenant: (typeof tenants)[number]; readonly jobId: string }[] = [];
  let pulled: { readonly shard: number; readonly job: QueuedJob }[] = [];
  const done = new Map<number, never>();
  const makeSettlement = (job: QueuedJob): Settlement => {
    const event = { type: "sent", result: { id: "x" } } as const;
    const attempt = { atMs: nowMs, ms: 12, error: "busy" } as never;
    return pick<Settlement>([
      { kind: "final", job, status: "success", result: {}, event, providerRef: `ref ${job.jobId}` },
      {
        kind: "final",
        job,
        status: "failed",
        result: { error: "é" },
        event: { type: "failed", result: {} },
        ...(chance(0.5) && { isGivenUp: true as const }),
      },
      { kind: "retry", job, delayMs: pick([0, 900.5, 60_000]), status: "running", attempt },
      { kind: "retry", job, delayMs: 5_000, status: "pending", isUncounted: true },
      { kind: "lend", job, forMs: 30_000 },
      { kind: "start", job },
    ]);
  };
  const acts: readonly (() => unknown)[] = [
    () => {
      const tenant = pick(tenants);
      const payload = pick(["{}", '{"to":"é"}', `{"to":"${"x".repeat(3_000)}"}`]);
      const hasExtras = payload !== "{}";
      const job = {
        jobId: ids.next(),
        channel: pick(["email", "whatsapp"] as const),
        recipient: pick(recipients),
        payload,
        idempotency: chance(0.3) ? { key: pick(["k1", "k2 é"]), fingerprint: pick(["f", "g"]) } : null,
        ...(chance(0.3) && { quota: { jobs: pick([3, 1_000]), bytes: pick([2_000, 1_000_000]) } }),
        ...(chance(0.3) && { template: "greeting" }),
        ...(chance(0.3) && { needsScreening: true as const }),
        ...(hasExtras && chance(0.4) && { tags: [{ name: "kind", value: "news" }] }),
        ...(hasExtras && chance(0.3) && { topic: "news" }),
        ...(hasExtras && chance(0.3) && { dueMs: nowMs + pick([-5, 1_000, 90_000]) }),
      };
      jobs.push({ tenant, jobId: job.jobId });
      const limit = pick([null, 5, 1_000]);
      // A first try behind its own repeat gets no answer that its caller would know.
      const accept = () =>
        state.now((queue) => queue.accept(tenant, limit, job).catch(() => null), { isRepeat: chance(0.2) });
      accept();
      if (chance(0.1)) accept();
    },
    () => {
      const shard = pick([0, 1]);
      const lease = leases[shard];
      if (!lease) return;
      const tenantQueues = tenants
        .filter((tenant) => tenant.shard === shard)
        .map(({ tenantId }) => ({
          tenantQueue: { tenantId, channel: pick(["email", "whatsapp"]) },
          after: null,
          entriesMax: pick([1, 20]),
          bytesMax: pick([500, 100_000]),
        }));
      const request = {
        tenantQueues,
        survey: chance(0.3),
        bytesMax: pick([700, 1_000_000]),
        shardTimeMs: pick([null, nowMs, nowMs - 3_000]),
        confirmedSkewMs: null,
      };
      const answer = state.now((queue) => queue.pull(lease, request));
      if (answer !== FENCED)
        pulled.push(...answer.tenantQueues.flatMap((each) => each.jobs.map((job) => ({ shard, job }))));
    },
    () => {
      const shard = pick([0, 1]);
      const lease = leases[shard];
      const own = pulled.filter((each) => each.shard === shard && chance(0.5));
      pulled = pulled.filter((each) => !own.includes(each) || chance(0.2));
      const settlements = own.map(({ job }) => makeSettlement(job));
      if (lease && settlements.length > 0) {
        const isLent = chance(0.2);
        state.now(
          (queue): Promise<unknown> =>
            isLent ? queue.settleLent(lease, settlements, null) : queue.settle(lease, settlements, pick([null, nowMs])),
        );
      }
    },
    () => {
      const { tenant, jobId } = pick(jobs);
      const type = pick(["delivered", "bounced", "clicked", "opened", "sent"] as const);
      const result = type === "clicked" ? { url: pick(["u", "v"]), ...(chance(0.5) && { machine: true }) } : {};
      const suppress = chance(0.2) ? { recipient: pick(recipients), reason: "bounced" as const } : null;
      state.now((queue) => queue.observe(tenant, { jobId, type, result, suppress, known: null }));
    },
    () => {
      const turns = recorders.flatMap((lease) =>
        lease ? [{ lease, done: (done.get(lease.shard) ?? null) as never, refused: null, takes: true }] : [],
      );
      const { batches } = state.now((queue) => queue.record(turns));
      done.clear();
      for (const piece of batches.flatMap(({ pieces }) => pieces)) done.set(piece.shard, piece as never);
    },
    () => {
      const { tenant, jobId } = pick(jobs);
      state.now(
        (queue): Promise<unknown> =>
          chance(0.5) ? queue.cancel(tenant, jobId) : queue.reschedule(tenant, jobId, nowMs + pick([-1, 70_000])),
      );
    },
    () => {
      const { tenant, jobId } = pick(jobs);
      const lease = leases[tenant.shard];
      if (!lease) return;
      const one = pick(pulled.filter(({ shard }) => shard === lease.shard));
      if (one !== undefined) state.now((queue) => queue.lookAgain(lease, one.job));
      const call = {
        tenantQueue: { tenantId: tenant.tenantId, channel: "email" },
        day: 20_000,
        allowance: 9,
        known: pick([0, 4]),
        wanted: 3,
      } as never;
      state.now((queue) => queue.allow(lease, call));
      state.now((queue) => queue.job(tenant, jobId));
      state.now((queue) => queue.waitingJob(tenant, jobId));
    },
    () => {
      const tenant = pick(tenants);
      const who = pick(recipients);
      state.now((queue) =>
        pick([() => queue.putSuppression(tenant, who, "manual"), () => queue.removeSuppression(tenant, who)])(),
      );
      state.now(
        (queue): Promise<unknown> =>
          chance(0.1)
            ? queue.eraseJobs(tenant, who)
            : queue.suppressedAmong(tenant, recipients, { topic: "news", acceptedMs: nowMs }),
      );
    },
    () => {
      const tenant = pick(tenants);
      state.now((queue) => queue.waitingJobs(tenant, { limit: 5, filter: {} } as never).catch(() => null));
      state.now(
        (queue): Promise<unknown> => (chance(0.2) ? queue.hastenParked(tenant, ["email"]) : queue.depth(tenant.shard)),
      );
      state.now((queue) => queue.findReferencedJobs([`ref ${pick(jobs).jobId}`]));
    },
    () => (nowMs += pick([0, 1, 40, 1_000, 61_000, -2_000])),
  ];
  acts[0]?.();
  for (let call = 0; call < calls; call += 1) pick(acts)();
  return state;
}
