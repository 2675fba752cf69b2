import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import { Replicas } from "../../../src/engine/queue/replicas.ts";
import { eventually } from "../../support/eventually.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

let master: RedisServer;
let replica: RedisServer;

beforeAll(async () => {
  master = await startRedis(["--repl-diskless-sync-delay", "0"]);
  replica = await startRedis(["--replicaof", "127.0.0.1", new URL(master.url).port]);
  await eventually("the replica has caught up", async () => (await master.client.wait(1, 100)) === 1);
}, 90_000);
afterAll(async () => {
  await replica.stop();
  await master.stop();
});

test("as many replicas as asked for have the writes, or the call fails", async () => {
  await master.client.set("key", "1");
  await new Replicas(master.client, 1).haveWrites("key");
  expect(await replica.client.get("key")).toBe("1");
  const asked = new Replicas(master.client, 2).haveWrites("key");
  await expect(asked).rejects.toEqual(new TransportError("only 1 of 2 replicas have the writes"));
});

test("nobody waits for replicas that are not asked for", async () => {
  const gone = await startRedis();
  await gone.stop();
  await new Replicas(gone.client, 0).haveWrites("key");
});
