import { expect, test } from "bun:test";
import type { Lease, RecordBatch, RecordPiece } from "../../../src/domain/jobs/queue.ts";
import { accept, acquire, first, pullOne, queue, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

type World = Awaited<ReturnType<typeof world>>;

interface Wishes {
  readonly done?: readonly RecordPiece[];
  readonly refused?: string;
  readonly takes?: boolean;
}

async function twoWorlds(): Promise<[World, World]> {
  return [await world("acme"), await world("globex")];
}

/** Each gets another row. */
async function sendOne(...worlds: readonly World[]): Promise<void> {
  for (const { tenant, lease } of worlds) {
    await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, tenant.tenantId)))]);
  }
}

function record(leases: readonly Lease[], { done = [], refused, takes = true }: Wishes = {}) {
  return queue.record(
    leases.map((lease) => {
      const own = done.find(({ shard }) => shard === lease.shard) ?? null;
      return { lease, done: own, refused: refused ?? null, takes };
    }),
  );
}

async function recordOne(...leases: readonly Lease[]): Promise<RecordBatch> {
  const { batches } = await record(leases);
  expect(batches).toHaveLength(1);
  return first(batches);
}

const listShards = ({ pieces }: RecordBatch) => pieces.map(({ shard }) => shard);
const readMark = ({ prefix }: World) => redis.client.get(`${prefix}:mark`);

/** The recorder's lease passes to another one. */
async function takeOver({ recorder }: World): Promise<Lease> {
  await queue.release(recorder);
  return acquire(recorder.shard, "recorder");
}

test("several shards' rows form one batch, and an empty shard has no part in it", async () => {
  const [one, two] = await twoWorlds();
  const idle = await world();
  await sendOne(one, two);
  const { batches, more } = await record([one.recorder, idle.recorder, two.recorder]);
  expect([batches.length, more]).toEqual([1, []]);
  const batch = first(batches);
  expect([batch.state, listShards(batch)]).toEqual(["frozen", [one.tenant.shard, two.tenant.shard]]);
  expect(batch.pieces.map(({ rows }) => rows.map(({ tenantId }) => tenantId))).toEqual([["acme"], ["globex"]]);
  // It lacks the rows that arrived meanwhile.
  await sendOne(one, idle);
  const again = await record([two.recorder, one.recorder]);
  expect(again.batches).toEqual([{ ...batch, state: "found" }]);
  expect(again.more).toEqual([one.tenant.shard]);
  const next = await record([one.recorder, two.recorder, idle.recorder], { done: batch.pieces });
  expect(next.batches.map(listShards)).toEqual([[one.tenant.shard, idle.tenant.shard]]);
});

test("a process that takes over one shard of a batch gets the whole batch, in the same order", async () => {
  const [one, two] = await twoWorlds();
  await sendOne(one, two);
  const batch = await recordOne(one.recorder, two.recorder);
  await sendOne(one, two);
  expect(await recordOne(await takeOver(two))).toEqual({ ...batch, state: "found" });
  // The owner of the other shard can write it, too.
  expect(await recordOne(one.recorder)).toEqual({ ...batch, state: "found" });
});

test("once one piece of a batch has been removed, the others count as stored", async () => {
  const [one, two] = await twoWorlds();
  await sendOne(one, two);
  const batch = await recordOne(one.recorder, two.recorder);
  await record([one.recorder], { done: batch.pieces, takes: false });
  await sendOne(one);
  const rest = await recordOne(await takeOver(two));
  expect([rest.state, rest.token, listShards(rest)]).toEqual(["recorded", batch.token, [two.tenant.shard]]);
});

test("a shard whose lease is lost is left alone and does not hold up the others", async () => {
  const [one, two] = await twoWorlds();
  await sendOne(one, two);
  const batch = await recordOne(one.recorder, two.recorder);
  const mark = await readMark(two);
  await takeOver(two);
  const answer = await record([one.recorder, two.recorder], { done: batch.pieces });
  expect([answer.fenced, answer.batches]).toEqual([[two.tenant.shard], []]);
  expect([await readMark(one), await readMark(two)]).toEqual([null, mark]);
});

test("a refused batch is split into its pieces, all at once, and its former end removes nothing", async () => {
  const [one, two] = await twoWorlds();
  await sendOne(one, two);
  const batch = await recordOne(one.recorder, two.recorder);
  const { batches } = await record([one.recorder], { refused: batch.token });
  expect(batches.map(({ token, state }) => [token, state])).toEqual([[batch.pieces[0]?.token ?? "", "found"]]);
  const late = await record([two.recorder], { done: batch.pieces });
  expect(late.batches.map(({ token, state }) => [token, state])).toEqual([[batch.pieces[1]?.token ?? "", "found"]]);
});

test("a batch that already lost a piece is not split", async () => {
  const [one, two] = await twoWorlds();
  await sendOne(one, two);
  const batch = await recordOne(one.recorder, two.recorder);
  await record([one.recorder], { done: batch.pieces, takes: false });
  const { batches } = await record([two.recorder], { refused: batch.token });
  expect(batches.map(({ token, state }) => [token, state])).toEqual([[batch.token, "recorded"]]);
});

test("a piece that the former release marked comes alone, under its former token", async () => {
  const [one, two] = await twoWorlds();
  await sendOne(one, two);
  const [entry] = await redis.client.xrange(`${one.prefix}:outbox`, "-", "+");
  const id = entry?.[0] ?? "";
  await redis.client.set(`${one.prefix}:mark`, `${id} ${id}`);
  await sendOne(one);
  const { batches } = await record([one.recorder, two.recorder]);
  const told = batches.map((batch) => [batch.state, listShards(batch), first(batch.pieces).rows.length]);
  expect(told).toEqual([
    ["found", [one.tenant.shard], 1],
    ["frozen", [two.tenant.shard], 1],
  ]);
  expect(first(batches).token).toBe(`s${one.tenant.shard}:${id}/${id}`);
});

test("a piece alone is marked as the former release marks it", async () => {
  const one = await world();
  await sendOne(one);
  const batch = await recordOne(one.recorder);
  const [, range = ""] = batch.token.split(":");
  expect(await readMark(one)).toBe(range.replace("/", " "));
});
