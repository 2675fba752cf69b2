import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { type CallMessage, MessageCalls } from "../../src/processes/message-calls.ts";
import { PrivateNodeFs } from "../../src/storage/postgres/pglite.ts";
import { BEGIN, END, STATEMENT, servePglite } from "../../src/storage/postgres/served-pglite.ts";
import { copyMadePostgres } from "../support/made-home.ts";
import { Undo } from "../support/undo.ts";

const home = await mkdtemp(join(tmpdir(), "waybill-served-pglite-"));
await copyMadePostgres(join(home, "postgres"));
const client = await PGlite.create({ fs: new PrivateNodeFs(join(home, "postgres")) });
await client.exec("create table counters (n int); insert into counters values (0)");
const undo = new Undo();

beforeEach(() => client.exec("update counters set n = 0"));
afterAll(async () => {
  await undo.run();
  await client.close();
  await rm(home, { recursive: true, force: true });
});

/** A process that uses this one's database, and reports when it has run its command. */
async function startUser(what: "hold" | "add", says: string) {
  const said = Promise.withResolvers<void>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "run-registry-user.ts"), what], {
    stdio: ["ignore", "inherit", "inherit"],
    serialization: "advanced",
    ipc(message: CallMessage | string) {
      if (typeof message !== "string") calls.take(message);
      else if (message === says) said.resolve();
    },
    onDisconnect: () => calls.cut(),
  });
  undo.add(child, async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  const calls = new MessageCalls((message) => child.send(message));
  servePglite(client, calls);
  await said.promise;
  return child;
}

async function count(): Promise<number | undefined> {
  const { rows } = await client.query<{ n: number }>("select n from counters");
  return rows[0]?.n;
}

test("transactions of two processes and of this one never mix", async () => {
  const addOne = () =>
    client.transaction(async (transaction) => {
      const { rows } = await transaction.query<{ n: number }>("select n from counters");
      await transaction.query("update counters set n = $1", [(rows[0]?.n ?? 0) + 1]);
    });
  const own = async () => {
    for (let n = 0; n < 100; n += 1) await addOne();
  };
  await Promise.all([startUser("add", "added"), startUser("add", "added"), own()]);
  expect(await count()).toBe(300);
}, 90_000);

test("a process that dies within a transaction changes nothing, and blocks nobody", async () => {
  const holder = await startUser("hold", "holds");
  const waiting = count();
  holder.kill("SIGKILL");
  expect(await waiting).toBe(0);
}, 90_000);

/** Both ends of a line within this process: each receives the other's messages, cloned as between processes. */
function line(): { asking: MessageCalls; answering: MessageCalls } {
  const asking: MessageCalls = new MessageCalls((message) => answering.take(structuredClone(message)));
  const answering: MessageCalls = new MessageCalls((message) => asking.take(structuredClone(message)));
  return { asking, answering };
}

test("a transaction of a process that is gone is rolled back at once", async () => {
  const { asking, answering } = line();
  servePglite(client, answering, 600_000);
  const transaction = await asking.call(BEGIN, null);
  const text = "update counters set n = 7";
  await asking.call(STATEMENT, { transaction, text, params: [], rowMode: "array", asText: [] });
  const waiting = count();
  answering.cut();
  expect(await waiting).toBe(0);
});

test("an idle transaction is rolled back, and its process gets an error", async () => {
  const { asking, answering } = line();
  servePglite(client, answering, 50);
  const transaction = await asking.call(BEGIN, null);
  const statement = {
    transaction,
    text: "update counters set n = 7",
    params: [],
    rowMode: "array",
    asText: [],
  } as const;
  await asking.call(STATEMENT, statement);
  expect(await count()).toBe(0);
  await expect(asking.call(END, { transaction, commits: true })).rejects.toMatchObject({ code: "25P03" });
  await expect(asking.call(STATEMENT, statement)).rejects.toMatchObject({ code: "25P03" });
});

test("an error keeps PostgreSQL's code", async () => {
  const { asking, answering } = line();
  servePglite(client, answering);
  const statement = {
    transaction: null,
    text: "select * from nowhere",
    params: [],
    rowMode: "array",
    asText: [],
  } as const;
  await expect(asking.call(STATEMENT, statement)).rejects.toMatchObject({
    code: "42P01",
    message: expect.stringContaining("nowhere"),
  });
});
