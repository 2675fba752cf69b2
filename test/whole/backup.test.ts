import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { cp, mkdtemp, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq, ne, sql } from "drizzle-orm";
import { passes } from "../../src/channels/wallet/tables.ts";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { FolderLock } from "../../src/storage/folder-lock.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { tenants, tokenMovements } from "../../src/storage/tables.ts";
import { basicEnvironment } from "../support/basic-environment.ts";
import { type CommandResult, runCommand } from "../support/command.ts";
import { expectBalance } from "../support/event-store-checker.ts";
import { eventually } from "../support/eventually.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { recordProof } from "../support/proof.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const TOKENS = 100_000;
const SENDERS = 4;
const SEND_PAUSE_MS = 15;
/** Answered sends before the backup, and after it. */
const ENOUGH = 100;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let backups: string;
let waybill: Waybill;
let apiKey: string;

beforeAll(async () => {
  home = await temporaryHome();
  backups = await mkdtemp(join(tmpdir(), "waybill-backups-"));
  waybill = await startWaybill(home.path);
  await waybill.operator("PUT", "/plans/load", { requests_per_minute: 1_000_000 });
  const tenant = { id: "busy", name: "Busy", plan: "load", channels: ["email", "wallet"], tokens: TOKENS };
  expect((await waybill.operator("POST", "/tenants", { ...tenant, permissions: ["allow_raw_html"] })).status).toBe(201);
  apiKey = (await waybill.operator("POST", "/tenants/busy/keys")).body.api_key;
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
  await rm(backups, { recursive: true, force: true });
}, 90_000);

const run = (...args: readonly string[]): Promise<CommandResult> => runCommand(args, { WAYBILL_HOME: home.path });

function mail(to: string) {
  const body = { to_address: to, subject: "Hello", html: "<p>Hello there, this is a test.</p>" };
  return waybill.request(apiKey, "POST", "/v1/send/email", body);
}

function pass(serial: string) {
  const pass_data = { serial_number: serial, organization_name: "Acme", description: "Ticket" };
  return waybill.request(apiKey, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
}

/** Sends mails, some of which wait minutes for another try (`deferred`), and passes, until it is over. */
function load() {
  const accepted: string[] = [];
  const deferred: string[] = [];
  const state = { isOver: false, asked: 0 };
  const send = async (): Promise<void> => {
    while (!state.isOver) {
      const n = state.asked++;
      const isDeferred = n % 20 === 1;
      const sending = n % 12 === 0 ? pass(`serial-${n}`) : mail(`u${n}@${isDeferred ? "defer.test" : "example.com"}`);
      const answer = await sending.catch(() => null);
      if (answer?.status === 202) (isDeferred ? deferred : accepted).push(answer.body.job_id);
      await Bun.sleep(SEND_PAUSE_MS);
    }
  };
  const senders = Array.from({ length: SENDERS }, send);
  return {
    accepted,
    deferred,
    end: () => {
      state.isOver = true;
      return Promise.all(senders);
    },
  };
}

async function lastEventId(): Promise<number> {
  const day = new Date().toISOString().slice(0, 10);
  let last = 0;
  for (let cursor = 0; ; ) {
    const path = `/v1/events?from=${day}&to=${day}&limit=500${cursor === 0 ? "" : `&cursor=${cursor}`}`;
    const { body } = await waybill.request(apiKey, "GET", path);
    for (const { event_id } of body.events) last = Math.max(last, event_id);
    if (!body.has_more) return last;
    cursor = body.next_cursor;
  }
}

async function fetchEvents(jobId: string): Promise<readonly string[]> {
  const { body } = await waybill.request(apiKey, "GET", `/v1/jobs/${jobId}/events`);
  return body.events.map(({ event_type }: { event_type: string }) => event_type);
}

/** The stores of a stopped Waybill. */
async function expectBalancedStores(): Promise<void> {
  const registry = await openPglite(join(home.path, "postgres"));
  try {
    const { db } = registry;
    const existing = await db.$count(passes, ne(passes.state, "failed"));
    const [tenant] = await db.select({ tokens: tenants.tokens }).from(tenants).where(eq(tenants.id, "busy"));
    expect(tenant?.tokens).toBe(TOKENS - existing);
    const sum = { sum: sql`sum(${tokenMovements.amount})::int` };
    const moved = await db.select(sum).from(tokenMovements).where(eq(tokenMovements.tenantId, "busy"));
    expect(moved).toEqual([{ sum: TOKENS - existing }]);
  } finally {
    await registry.close();
  }
}

async function loseTheFolder(): Promise<void> {
  await waybill.kill();
  await rm(home.path, { recursive: true });
}

test("after a backup under load, the loss of the folder and a restore, the books balance", async () => {
  const { accepted, deferred, end } = load();
  await eventually("sends are answered", () => accepted.length >= ENOUGH, 60_000);
  const known = [...accepted];
  const parked = [...deferred];
  const file = join(backups, "under-load.tar.zst");
  const backedUp = await run("backup", file);
  expect(backedUp).toMatchObject({ code: 0, errors: "" });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const enough = accepted.length + ENOUGH;
  await eventually("the server goes on", () => accepted.length >= enough, 60_000);
  await end();
  expect((await fetch(`${waybill.url}/ready`)).status).toBe(200);
  await eventually("the server removes its copy", () => !existsSync(join(home.path, "backup.unfinished")));
  expect(() => FolderLock.acquire(home.path)).toThrow("is in use by process");
  const seen = await lastEventId();
  await loseTheFolder();

  const undecided = await run("restore", file);
  expect(undecided.errors).toBe("");
  expect(undecided.output).toContain("jobs were queued when the backup was taken");
  expect(undecided.code).toBe(1);
  expect(existsSync(home.path)).toBe(false);
  const restored = await run("restore", file, "--queued=send");
  expect(restored).toMatchObject({ code: 0, errors: "" });

  waybill = await startWaybill(home.path);
  expect(known.length).toBeGreaterThanOrEqual(ENOUGH);
  for (const jobId of known) {
    expect(await finalJob(waybill, apiKey, jobId, 60_000)).toMatchObject({ job_id: jobId, status: "success" });
    const events = await fetchEvents(jobId);
    expect([jobId, events.filter((type) => type === "sent")]).toEqual([jobId, ["sent"]]);
    expect(new Set(events).size).toBe(events.length);
  }
  expect(parked.length).toBeGreaterThan(0);
  for (const jobId of parked) {
    const { body } = await waybill.request(apiKey, "GET", `/v1/jobs/${jobId}`);
    expect(body).toMatchObject({ job_id: jobId, status: expect.stringMatching(/running|success/) });
  }
  const { body } = await mail("new@example.com");
  await finalJob(waybill, apiKey, body.job_id);
  const { body: after } = await waybill.request(apiKey, "GET", `/v1/jobs/${body.job_id}/events`);
  expect(after.events[0].event_id).toBeGreaterThan(seen);
  await waybill.stop();
  await expectBalancedStores();
  const { reader, close } = await openClickHouse(join(home.path, "clickhouse"));
  await expectBalance(new ClickHouse({ client: reader, clock: systemClock, timeoutMs: 20_000 }), "waybill");
  await close();
  const note = `${known.length} jobs known before the backup, each sent once; tokens equal passes`;
  recordProof({ fault: "loss of the data folder after a backup under load", accepted: known.length, lost: 0, note });
}, 300_000);

/** A server on a new folder, with one tenant whose mails leave slowly. */
async function startSlowTenant(): Promise<void> {
  waybill = await startWaybill(home.path);
  await waybill.operator("PUT", "/plans/slow", { requests_per_minute: 1_000_000, deliveries_per_second: 0.5 });
  const tenant = { id: "slow", name: "Slow", plan: "slow", channels: ["email", "wallet"], tokens: TOKENS };
  await waybill.operator("POST", "/tenants", { ...tenant, permissions: ["allow_raw_html"] });
  apiKey = (await waybill.operator("POST", "/tenants/slow/keys")).body.api_key;
}

test("with --queued=fail, what was queued ends as failed, says why, and gives its tokens back", async () => {
  await home.remove();
  home = await temporaryHome();
  await startSlowTenant();
  const mails = await Promise.all(Array.from({ length: 20 }, (_, n) => mail(`u${n}@example.com`)));
  const passJobs = await Promise.all(Array.from({ length: 20 }, (_, n) => pass(`slow-${n}`)));
  const jobs = [...mails, ...passJobs].map(({ body }): string => body.job_id);
  expect((await run("backup", `${backups}/`)).code).toBe(0);
  await loseTheFolder();
  // Returns the newest backup in a folder.
  const restored = await run("restore", backups, "--queued=fail");
  expect(restored).toMatchObject({ code: 0, errors: "" });

  waybill = await startWaybill(home.path);
  const ended = await Promise.all(jobs.map((jobId) => finalJob(waybill, apiKey, jobId, 90_000)));
  const failed = ended.filter(({ status }) => status === "failed");
  expect(failed.length).toBeGreaterThan(10);
  for (const { result } of failed) expect(result.error).toContain("was queued when a backup was taken");
  const succeededPasses = ended.slice(20).filter(({ status }) => status === "success").length;
  const { body: tenant } = await waybill.operator("GET", "/tenants/slow");
  expect(tenant.tokens).toBe(TOKENS - succeededPasses);
  // Accepted after the restore, so it is sent.
  const { body } = await mail("new@example.com");
  expect(await finalJob(waybill, apiKey, body.job_id)).toMatchObject({ status: "success" });
}, 300_000);

test("a backup that is killed, on either side, harms neither the server nor an older backup", async () => {
  const file = join(backups, "again.tar.zst");
  expect((await run("backup", file)).code).toBe(0);
  const older = await Bun.file(file).bytes();
  const begin = () =>
    Bun.spawn([process.execPath, "src/main.ts", "backup", file], {
      cwd: join(import.meta.dir, "../.."),
      env: { ...basicEnvironment(), PORT: "0", WAYBILL_HOME: home.path },
      stdout: "pipe",
      stderr: "pipe",
    });
  const staging = join(home.path, "backup.unfinished");

  const command = begin();
  await eventually("the server prepares its copy", () => existsSync(staging), 30_000);
  command.kill("SIGKILL");
  await command.exited;
  await eventually("the server removes its copy", () => !existsSync(staging), 30_000);
  const { body } = await mail("after@example.com");
  expect(await finalJob(waybill, apiKey, body.job_id)).toMatchObject({ status: "success" });

  const left = begin();
  await eventually("the server prepares its copy", () => existsSync(staging), 30_000);
  await waybill.kill();
  expect(await left.exited).toBe(1);
  expect(await left.stderr.text()).toMatch(/the server ended before|does not answer/);
  expect(await Bun.file(file).bytes()).toEqual(older);
  waybill = await startWaybill(home.path);
  expect(existsSync(staging)).toBe(false);
  expect(await finalJob(waybill, apiKey, body.job_id)).toMatchObject({ status: "success" });
  expect((await run("backup", file)).code).toBe(0);
  // Only the killed command's own draft is left.
  expect((await readdir(backups)).filter((name) => name.endsWith(".unfinished")).length).toBeLessThanOrEqual(1);
}, 300_000);

test("a stopped server's folder is backed up as it is, and a damaged backup is refused before anything is written", async () => {
  const { body } = await mail("before@example.com");
  await finalJob(waybill, apiKey, body.job_id);
  await waybill.stop();
  const file = join(backups, "stopped.tar.zst");
  expect((await run("backup", file)).output).toContain("No server runs");
  const token = await readFile(join(home.path, "operator-token"), "utf8");

  const refused = await run("restore", file);
  expect(refused).toMatchObject({ code: 2, errors: expect.stringContaining("is not empty") });
  await rm(home.path, { recursive: true });
  const damaged = join(backups, "damaged.tar.zst");
  for (const damage of ["cut", "altered"] as const) {
    await cp(file, damaged);
    const handle = await open(damaged, "r+");
    const { size } = await handle.stat();
    if (damage === "cut") await handle.truncate(size - 2_000);
    else await handle.write(Buffer.alloc(64, 0x55), 0, 64, Math.floor(size / 2));
    await handle.close();
    expect([damage, (await run("restore", damaged)).code]).toEqual([damage, 1]);
    expect(existsSync(home.path)).toBe(false);
  }
  expect(await run("restore", file, "--queued=send")).toMatchObject({ code: 0, errors: "" });
  expect(await readFile(join(home.path, "operator-token"), "utf8")).toBe(token);
  waybill = await startWaybill(home.path);
  expect(await finalJob(waybill, apiKey, body.job_id)).toMatchObject({ status: "success" });
}, 300_000);
