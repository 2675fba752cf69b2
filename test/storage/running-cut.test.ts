import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { linkSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { UnavailableError } from "../../src/domain/errors.ts";
import { hasCode } from "../../src/domain/has-code.ts";
import { systemClock as clock } from "../../src/runtime/system-clock.ts";
import { removeStaging, takeCut } from "../../src/storage/backup/running-cut.ts";
import { ContentFiles } from "../../src/storage/content-files.ts";
import { PayloadFiles } from "../../src/storage/payload-files.ts";
import { type RedisChild, startRedisChild } from "../../src/storage/redis/redis-child.ts";
import { eventually } from "../support/eventually.ts";

let home: string;
let redis: RedisChild;
let payloads: PayloadFiles;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "waybill-cut-"));
  const telemetry = { count() {}, gauge() {}, time() {}, log() {} };
  redis = await startRedisChild({ folder: join(home, "redis"), clock, telemetry });
  payloads = await PayloadFiles.open(join(home, "payloads"));
});
afterEach(async () => {
  await payloads.close();
  await redis.stop();
  await rm(home, { recursive: true, force: true });
});

const TENANT = "acme";
const ref = (n: number) => ({ tenantId: TENANT, jobId: `019a0000-0000-7000-8000-${String(n).padStart(12, "0")}` });
const formatName = (n: number) => `${ref(n).jobId}.${TENANT}`;
const put = (n: number, text: string) => payloads.put(ref(n), Buffer.from(text));

interface Meanwhile {
  /** Runs before a store is held. */
  before?(): Promise<void>;
  /** Runs while the registry is held, but Redis is not yet. */
  held?(): Promise<void>;
  /** Runs while all stores are held. */
  within?(): Promise<void>;
}

/** A cut of empty stores that follow instructions meanwhile; `heldMs` is how long the first of them was held. */
function cut({ before, held, within }: Meanwhile) {
  const state = { heldMs: null as number | null };
  const events = { query: async () => ({ json: async () => ({ data: [] }) }) };
  const taken = takeCut({
    home,
    redis: redis.address,
    database: "waybill",
    clock,
    postgres: {
      async copyTo() {
        await before?.();
        return {
          async hold(work) {
            await held?.();
            return work(async () => within?.());
          },
        };
      },
    },
    async holdEvents(work) {
      const sinceMs = clock.monotonicMs();
      try {
        // Only its list of tables is queried.
        return await work(events as unknown as ClickHouseClient);
      } finally {
        state.heldMs = clock.monotonicMs() - sinceMs;
      }
    },
  });
  return { state, taken };
}

const linked = () => readdir(join(home, "backup.unfinished/payloads"));

test("payloads are linked before any store is held", async () => {
  for (let n = 0; n < 200; n += 1) await put(n, `payload ${n}`);
  let seen = 0;
  await cut({ held: async () => void (seen = (await linked()).length) }).taken;
  expect(seen).toBe(200);
  expect((await linked()).length).toBe(200);
});

test("a backup has each payload as it was stored last before its instant", async () => {
  for (const n of [1, 2, 3]) await put(n, "first");
  const { folder } = await cut({
    async held() {
      await put(2, "again");
      await put(2, "again, and again");
      await payloads.remove(ref(3));
      await put(3, "anew");
      await put(4, "new");
      await put(4, "new");
    },
    async within() {
      for (const n of [1, 2, 5]) await put(n, "too late");
    },
  }).taken;
  const names = (await linked()).sort();
  const found = await Promise.all(
    names.map(async (name) => [name, await readFile(join(folder, "payloads", name), "utf8")]),
  );
  expect(found).toEqual([
    [formatName(1), "first"],
    [formatName(2), "again, and again"],
    [formatName(3), "anew"],
    [formatName(4), "new"],
  ]);
});

test("a file that a job has stored meanwhile is in the backup, and one that was aside is there under its own name", async () => {
  const body = Buffer.from("a file");
  const sha256 = createHash("sha256").update(body).digest("hex");
  const files = await ContentFiles.open(join(home, "payloads"));
  await put(1, "payload");
  await Bun.write(join(home, "payloads", `${formatName(2)}.aside`), "aside");
  await cut({ held: () => files.put(ref(1), [{ sha256, body }]) }).taken;
  await files.close();
  expect((await linked()).sort()).toEqual([formatName(1), `${formatName(1)}.${sha256}`, formatName(2)]);
});

test("a payload that can have no further name is copied", async () => {
  await put(1, "shared");
  const [file, elsewhere] = [join(home, "payloads", formatName(1)), join(home, "elsewhere")];
  await mkdir(elsewhere);
  for (let n = 0; n < 70_000; n += 1) {
    try {
      linkSync(file, join(elsewhere, String(n)));
    } catch (error) {
      if (!hasCode(error, "EMLINK")) throw error;
      break;
    }
  }
  const { folder } = await cut({}).taken;
  expect(await readFile(join(folder, "payloads", formatName(1)), "utf8")).toBe("shared");
});

/** The promise is four seconds; a busy machine's timers are late. */
const HELD_MS_MAX = 5_500;

test("no store is held longer than four seconds, however long another one takes, and then nothing is backed up", async () => {
  const slow = Promise.withResolvers<void>();
  const { state, taken } = cut({ within: () => slow.promise });
  let isOver = false;
  taken.catch(() => undefined).finally(() => (isOver = true));
  await eventually("the stores go on", () => state.heldMs !== null, HELD_MS_MAX);
  // It is still writing the next backup's folder.
  expect(isOver).toBe(false);
  slow.resolve();
  const error = await taken.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UnavailableError);
  expect(String(error)).toContain("the machine is too busy");
});

test("a Redis that is silent holds no other store longer than four seconds", async () => {
  process.kill(redis.pid, "SIGSTOP");
  const { state, taken } = cut({});
  const over = taken.catch((reason: unknown) => reason);
  await eventually("the stores go on", () => state.heldMs !== null, HELD_MS_MAX);
  process.kill(redis.pid, "SIGCONT");
  expect(await over).toBeInstanceOf(UnavailableError);
  await removeStaging(home);
  expect((await cut({}).taken).heldMs).toBeGreaterThan(0);
});

test("a Redis that falls silent while it is held holds no other store longer than four seconds", async () => {
  const { state, taken } = cut({ within: async () => process.kill(redis.pid, "SIGSTOP") && undefined });
  const over = taken.catch((reason: unknown) => reason);
  await eventually("the stores go on", () => state.heldMs !== null, HELD_MS_MAX);
  process.kill(redis.pid, "SIGCONT");
  expect(await over).toBeInstanceOf(UnavailableError);
});
