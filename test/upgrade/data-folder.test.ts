import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { settleForPowerCuts } from "../../src/events/schema/power-cuts.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { runCommand } from "../support/command.ts";
import { expectBalance, readSchema } from "../support/event-store-checker.ts";
import { eventually } from "../support/eventually.ts";
import { type FormerBuild, findCommit, prepareBuild } from "../support/former-build.ts";
import { freePort } from "../support/free-port.ts";
import { isAlive } from "../support/is-alive.ts";
import { copyEmptyPostgres } from "../support/made-home.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { IS_PROVING } from "../support/proof.ts";
import { recently } from "../support/recent-days.ts";
import { Undo } from "../support/undo.ts";
import { type StartOptions, startWaybill, type Waybill } from "../support/waybill.ts";
import { FormerLife, LARGE_HTML, PATIENCE_MS } from "./former-life.ts";
import { OutsideWorld } from "./outside-world.ts";

/*
 * A former release itself creates a folder, and the present one is started on it.
 *
 * Not a stored copy of a folder: idempotency keys are kept for a day, jobs and payloads expire, and so would the test.
 * Its only foreign part is an empty PostgreSQL cluster, as creating one takes five seconds of CPU. Payloads outside
 * Redis and jobs that are held for a relay came after that release.
 *
 * `npm run prove` also checks the event store, and adds a folder of a release that was stopped and not killed, and a
 * start of the former release on it afterwards. `UPGRADE_FOLDER_FROM=<commit>` creates it with another build.
 */
const FROM = findCommit(process.env["UPGRADE_FOLDER_FROM"] ?? "af0331a");
const missing = FROM === null ? "the history does not reach back to af0331a" : null;

if (missing !== null) test.skip(`an upgrade of a data folder: ${missing}`, () => undefined);

describe.skipIf(missing !== null)("a data folder of a former release", () => {
  const undo = new Undo();
  let world: OutsideWorld;
  let former: FormerBuild;
  let environment: Readonly<Record<string, string>>;
  let folders: string;
  /** The former life until it was stopped, and the one until it was killed. */
  let stopped: FormerLife;
  let killed: FormerLife;
  /** The recipients whose messages were still on their way when it was stopped. */
  let owed: ReadonlySet<string>;

  beforeAll(async () => {
    folders = undo.add(await mkdtemp(join(tmpdir(), "waybill-upgrade-")), (path) => rm(path, { recursive: true }));
    world = undo.add(await OutsideWorld.start(), (it) => it.stop());
    former = undo.add(await prepareBuild(FROM ?? ""), (it) => it.remove());
    environment = { ...world.environment, PORT: String(await freePort()) };
    await copyEmptyPostgres(join(folders, "killed/postgres"));

    const first = await start("killed", {}, former);
    const life = new FormerLife(first, world);
    await life.furnish();
    await life.finish();
    await life.leaveWaiting();
    await life.remember();
    expect(await first.stop()).toBe(0);
    if (IS_PROVING) await backUp("killed", ["stopped", "before"]);
    stopped = life;
    owed = new Set([...life.recipients].filter((recipient) => !world.arrived.has(recipient)));

    // The events of this life stay in the queue, and a part of them is in the event store when it dies.
    const once = join(folders, "records-once");
    const dying = { root: former.root, preload: [join(import.meta.dir, "die-recording.ts")] };
    const second = await start("killed", { RECORDS_ONCE: once }, dying);
    killed = life.beside(second);
    await killed.leaveUnfinished();
    await Bun.write(once, "");
    await eventually("it has died", () => !isAlive(second.pid), PATIENCE_MS);
    world.isDeferring = false;
    world.isSilent = false;
  }, 300_000);

  afterAll(() => undo.run(), 60_000);

  async function start(folder: string, more: Record<string, string> = {}, options?: StartOptions): Promise<Waybill> {
    const waybill = await startWaybill(join(folders, folder), { ...environment, ...more }, options);
    return undo.add(waybill, (it) => it.kill());
  }

  /** Writes a backup of the folder, which must not change it, and unpacks it elsewhere. */
  async function backUp(folder: string, elsewhere: readonly string[]): Promise<void> {
    const file = join(folders, "before.tar");
    const { code } = await runCommand(["backup", `${file}.zst`], { WAYBILL_HOME: join(folders, folder) });
    expect(code).toBe(0);
    await Bun.write(file, await Bun.zstdDecompress(await Bun.file(`${file}.zst`).bytes()));
    for (const name of elsewhere) {
      await mkdir(join(folders, name), { mode: 0o700 });
      expect(await Bun.spawn(["tar", "-xf", file, "-C", join(folders, name)]).exited).toBe(0);
    }
  }

  /** Every owed message has arrived, once; every job has ended, and is in the history once. */
  async function expectAllEnded(life: FormerLife): Promise<void> {
    const { waybill } = life;
    for (const [jobId, job] of life.jobs) {
      const { status: end } = await life.ended(jobId);
      expect([jobId, end]).toEqual([jobId, job.status]);
    }
    for (const tenant of ["acme", "slow"]) {
      const history = await eventually(
        `all events of ${tenant}`,
        async () => {
          const events = await life.fetchHistory(tenant);
          return events.length >= life.countEvents(tenant) ? events : null;
        },
        PATIENCE_MS,
      );
      for (const [jobId, job] of life.jobs) {
        if (job.tenant !== tenant) continue;
        const types = history.filter(({ job_id }) => job_id === jobId).map(({ event_type }) => event_type);
        expect([jobId, types.toSorted()]).toEqual([jobId, [...job.events].toSorted()]);
      }
      const file = await waybill.operator("GET", `/export?${recently()}&tenant=${tenant}&format=ndjson`);
      const lines = String(file.body)
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      const ids = history.map(({ event_id }) => event_id);
      expect(lines.map((line) => Number(line.event_id)).toSorted((a, b) => a - b)).toEqual(
        ids.toSorted((a, b) => a - b),
      );
    }
  }

  test("is taken over by one start after a kill: every job ends, and only what was in flight comes twice", async () => {
    const waybill = await start("killed");
    const life = killed.beside(waybill);
    await life.hurry();
    await life.expectRemembered();
    await expectAllEnded(life);
    for (const recipient of life.recipients) {
      const times = world.arrived.get(recipient) ?? 0;
      if (times !== 2 || !killed.inFlight.has(recipient)) expect([recipient, times]).toEqual([recipient, 1]);
    }
    expect(world.arrived.get("hal@silent.test")).toBe(2);
    expect(world.sources.get("large@example.com")?.length).toBeGreaterThan(LARGE_HTML.length);
    await life.expectAllWorks();
    expect(await waybill.stop()).toBe(0);
    if (IS_PROVING) await expectWholeEventStore(join(folders, "killed/clickhouse"));
  }, 300_000);

  test.skipIf(!IS_PROVING)(
    "is taken over by one start after a stop: nothing comes twice, and the former release refuses it from then on",
    async () => {
      world.forget();
      const life = stopped.beside(await start("stopped"));
      await life.hurry();
      await life.expectRemembered();
      await expectAllEnded(life);
      expect(Object.fromEntries(world.arrived)).toEqual(
        Object.fromEntries([...owed].map((recipient) => [recipient, 1])),
      );
      await life.expectAllWorks();
      await life.remember();
      expect(await life.waybill.stop()).toBe(0);

      // A release that refuses the folder leaves it unchanged.
      const home = { WAYBILL_HOME: join(folders, "stopped") };
      const { code, errors } = await runCommand(["serve"], { ...environment, ...home }, former.root);
      expect([code, errors]).toEqual([2, expect.stringMatching(/^waybill: .* a later version of Waybill: [^\n]*\n$/)]);
      // The way back as docs/upgrades.md describes it.
      expect(await (await start("before", {}, former)).stop()).toBe(0);

      world.forget();
      const again = life.beside(await start("stopped"));
      await again.expectRemembered();
      expect([...world.arrived]).toEqual([]);
    },
    300_000,
  );
});

/** Sums agree with the events, and tables equal those of a new event store. */
async function expectWholeEventStore(folder: string): Promise<void> {
  const chdb = await openClickHouse(folder);
  try {
    const clickhouse = new ClickHouse({ client: chdb.reader, clock: systemClock, timeoutMs: 20_000 });
    await expectBalance(clickhouse, "waybill");
    const migrating = new ClickHouse({ client: chdb.writer, clock: systemClock, timeoutMs: 20_000 });
    const fresh = { database: "fresh", cluster: null };
    await migrateEventStore(migrating, fresh);
    await settleForPowerCuts(migrating, fresh);
    expect(await readSchema(clickhouse, "waybill")).toBe(await readSchema(clickhouse, "fresh"));
  } finally {
    await chdb.close();
  }
}
