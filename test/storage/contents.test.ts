import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Content, ContentStore } from "../../src/domain/content-store.ts";
import { JobIds } from "../../src/domain/ids.ts";
import type { PayloadRef } from "../../src/domain/jobs/payload-store.ts";
import { PayloadSweep } from "../../src/engine/dispatch/payload-sweep.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { ContentFiles } from "../../src/storage/content-files.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { contents } from "../../src/storage/tables.ts";
import { UNFINISHED } from "../../src/storage/whole-file.ts";
import { eventually } from "../support/eventually.ts";
import { openMadePglite } from "../support/made-home.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { aTenant, createDirectory } from "../support/tenants.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { openTestRegistry } from "../tenants/open-test-registry.ts";

const ids = new JobIds(systemClock, systemRandom);
/** Files of messages whose batch began an hour ago. */
const lateIds = new JobIds(new VirtualClock(Date.now() - 60 * 60_000), systemRandom);
const A = content("an attachment");
const B = content("another");

function content(text: string): Content {
  const body = new TextEncoder().encode(text);
  return { sha256: new Bun.CryptoHasher("sha256").update(body).digest("hex"), body };
}

function ref(tenantId = "acme"): PayloadRef {
  return { tenantId, jobId: ids.next() };
}

async function listJobs(store: ContentStore): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const piece of store.all()) found.push(...piece.map(({ jobId }) => jobId));
  return found.toSorted();
}

interface Opened {
  readonly store: ContentStore;
  /** How often contents are stored, whoever uses them. */
  stored(): Promise<number>;
  close(): Promise<void>;
}

const OPEN: Readonly<Record<string, () => Promise<Opened>>> = {
  async files() {
    const folder = await mkdtemp(join(tmpdir(), "waybill-contents-"));
    const store = await ContentFiles.open(folder);
    const stored = async () => (await readdir(folder)).filter((name) => name.startsWith("shared.")).length;
    const close = async () => {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    };
    return { store, stored, close };
  },
  async PGlite() {
    const folder = await mkdtemp(join(tmpdir(), "waybill-contents-"));
    const database = await openMadePglite(join(folder, "postgres"));
    await migrate(database.db);
    const { registry, jobContents: store, stop } = await openTestRegistry(database);
    for (const id of ["acme", "globex"]) await must(registry.createTenant({ id, name: id }));
    const stored = async () => {
      const rows = await database.db.select({ sha256: contents.sha256 }).from(contents);
      return rows.length;
    };
    const close = async () => {
      await stop();
      await database.close();
      await rm(folder, { recursive: true, force: true });
    };
    return { store, stored, close };
  },
};

describe.each(Object.keys(OPEN))("files of jobs in %s", (kind) => {
  let opened: Opened;
  beforeAll(async () => {
    const open = OPEN[kind];
    if (open === undefined) throw new Error("no such store");
    opened = await open();
  }, 90_000);
  afterAll(() => opened.close());

  test("are stored once for a tenant, and stay until no job needs them", async () => {
    const { store, stored } = opened;
    const [first, second, foreign] = [ref(), ref(), ref("globex")];
    await store.put(first, [A, B]);
    await store.put(second, [A]);
    await store.put(foreign, [A]);
    // A repeat has no effect.
    await store.put(second, [A]);
    expect(await stored()).toBe(3);
    expect(await listJobs(store)).toEqual([first, second, foreign].map(({ jobId }) => jobId).toSorted());
    await store.remove(first);
    expect([await store.get(first, A.sha256), await store.get(second, A.sha256)]).toEqual([null, A.body]);
    expect(await stored()).toBe(2);
    await store.remove(second);
    await store.remove(second);
    await store.remove(foreign, [A.sha256]);
    expect([await stored(), await listJobs(store)]).toEqual([0, []]);
  });

  test("go with their job while all are gone through, and what comes meanwhile goes the next time", async () => {
    const { store, stored } = opened;
    const jobs = [ref(), ref(), ref()];
    const late = jobs[1] ?? ref();
    for (const job of jobs) await store.put(job, [A]);
    let isFirst = true;
    for await (const piece of store.all()) {
      if (isFirst) await store.put(late, [B]);
      isFirst = false;
      for (const job of piece) await store.remove(job);
    }
    for await (const piece of store.all()) for (const job of piece) await store.remove(job);
    expect([await stored(), await listJobs(store)]).toEqual([0, []]);
  });

  test("of a job that is found go only if they were not stored anew since", async () => {
    const { store, stored } = opened;
    const [late, other] = [{ tenantId: "acme", jobId: lateIds.next() }, ref()];
    const found = async (wanted: PayloadRef) => {
      const one = (await Array.fromAsync(store.all())).flat().find(({ jobId }) => jobId === wanted.jobId);
      if (one === undefined) throw new Error("it has files");
      return one;
    };
    await store.put(other, [A]);
    const before = await found(other);
    await store.put(late, [A, B]);
    const former = await found(late);
    expect(Math.abs(former.ageMs)).toBeLessThan(60_000);
    await eventually("a later time", () => Date.now() > former.storedMs + 20);
    await store.put(late, [A, B]);
    expect((await found(late)).storedMs).toBeGreaterThan(former.storedMs);
    await store.removeFound(former);
    expect([await store.get(late, A.sha256), await store.get(late, B.sha256)]).toEqual([A.body, B.body]);
    // Another job with the same file does not make it younger.
    expect((await found(other)).storedMs).toBe(before.storedMs);
    await store.removeFound(await found(late));
    expect([await store.get(late, A.sha256), await store.get(other, A.sha256)]).toEqual([null, A.body]);
    await store.removeFound(await found(other));
    expect([await stored(), await listJobs(store)]).toEqual([0, []]);
  });

  test("are no other job's", async () => {
    const { store } = opened;
    const [mine, other] = [ref(), ref("globex")];
    await store.put(mine, [A]);
    expect(await store.get(other, A.sha256)).toBeNull();
    expect(await store.get({ ...mine, tenantId: "globex" }, A.sha256)).toBeNull();
    await store.remove(mine);
  });

  test("survive that another job with the same file goes while they come", async () => {
    const { store } = opened;
    for (let round = 0; round < 5; round += 1) {
      const [going, coming] = [ref(), ref()];
      await store.put(going, [A]);
      await Promise.all([store.remove(going), store.put(coming, [A])]);
      expect(await store.get(coming, A.sha256)).toEqual(A.body);
      await Promise.all([store.remove(coming), store.remove(going)]);
    }
  });
});

test("what a process left when it died goes with a sweep once it is old, and takes no job's file with it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-contents-"));
  const [store, later] = [await ContentFiles.open(folder), await ContentFiles.open(folder, 0)];
  try {
    const job = ref();
    await store.put(job, [A]);
    await writeFile(join(folder, `shared.${B.sha256}.acme`), B.body);
    await writeFile(join(folder, `${ref().jobId}.acme.${B.sha256}.0a${UNFINISHED}`), "ha");
    await listJobs(store);
    expect(await readdir(folder)).toHaveLength(4);
    await listJobs(later);
    expect((await readdir(folder)).toSorted()).toEqual([`${job.jobId}.acme.${A.sha256}`, `shared.${A.sha256}.acme`]);
    expect(await store.get(job, A.sha256)).toEqual(Buffer.from(A.body));
  } finally {
    await Promise.all([store.close(), later.close()]);
    await rm(folder, { recursive: true, force: true });
  }
});

test("what a process stored before it died, without queueing the job, is gone after the sweep", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-contents-"));
  const store = await ContentFiles.open(folder);
  const clock = systemClock;
  const nobody = { job: async () => null };
  const common = {
    directory: createDirectory([aTenant()]),
    clock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  };
  const sweep = new PayloadSweep({ ...common, payloads: store, queue: nobody, eventStore: nobody });
  try {
    await store.put({ tenantId: "acme", jobId: lateIds.next() }, [A, B]);
    await sweep.sweep();
    const names = await readdir(folder);
    expect(names).toHaveLength(4);
    const longAgo = new Date(Date.now() - 15 * 60_000);
    for (const name of names) await utimes(join(folder, name), longAgo, longAgo);
    await sweep.sweep();
    expect(await readdir(folder)).toEqual([]);
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
});
