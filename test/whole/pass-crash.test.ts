import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { eq, inArray, ne, sql } from "drizzle-orm";
import { passes } from "../../src/channels/wallet/tables.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { tokenMovements } from "../../src/storage/tables.ts";
import { eventually } from "../support/eventually.ts";
import { recordProof } from "../support/proof.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const TENANT = "buyer";
const TOKENS = 100_000;
const KILLS = 3;
/** The smallest number of passes stored between two kills. */
const PASSES = 40;
const CALLERS = 48;
/**
 * The smallest number of passes stored and not answered while Redis hangs: more than the one call in flight can queue.
 */
const LOST_MIN = 6;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let apiKey: string;

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path);
  await waybill.operator("PUT", "/plans/load", { requests_per_minute: 1_000_000 });
  const tenant = { id: TENANT, name: "Buyer", plan: "load", channels: ["wallet"], tokens: TOKENS };
  expect((await waybill.operator("POST", "/tenants", tenant)).status).toBe(201);
  apiKey = (await waybill.operator("POST", `/tenants/${TENANT}/keys`)).body.api_key;
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
}, 90_000);

function create(serial: string) {
  const pass_data = { serial_number: serial, organization_name: "Acme", description: "Ticket" };
  return waybill.request(apiKey, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
}

async function balance(): Promise<number> {
  return (await waybill.operator("GET", `/tenants/${TENANT}`)).body.tokens;
}

/** The redis-server that this server started. */
async function redisPid(): Promise<number> {
  const children = (await Bun.file(`/proc/${waybill.pid}/task/${waybill.pid}/children`).text()).trim().split(" ");
  for (const pid of children) {
    if ((await Bun.file(`/proc/${pid}/comm`).text()).trim() === "redis-server") return Number(pid);
  }
  throw new Error(`no redis-server among ${children.join(" ")}`);
}

/**
 * Stops Redis at a moment when stored passes have no job yet: from then on none gets one. `answered`: all answered
 * creations.
 */
async function hangBetweenStoringAndQueueing(answered: () => number): Promise<void> {
  const redis = await redisPid();
  await eventually(
    "passes are stored and not queued",
    async () => {
      process.kill(redis, "SIGSTOP");
      const stored = await eventually("no more passes are stored", async () => {
        const before = await balance();
        return before === (await balance()) ? TOKENS - before : null;
      });
      if (stored - answered() >= LOST_MIN) return true;
      process.kill(redis, "SIGCONT");
      return false;
    },
    300_000,
  );
}

/** The registry of a stopped Waybill. */
async function inRegistry<T>(work: (db: Awaited<ReturnType<typeof openPglite>>["db"]) => Promise<T>): Promise<T> {
  const { db, close } = await openPglite(join(home.path, "postgres"));
  try {
    return await work(db);
  } finally {
    await close();
  }
}

test("each pass that exists costs one token, and no other does, wherever the server is killed", async () => {
  const accepted = new Set<string>();
  let asked = 0;
  let isOver = false;
  const createUntilOver = async (): Promise<void> => {
    while (!isOver) {
      try {
        const answer = await create(`serial-${asked++}`);
        if (answer.status === 202) accepted.add(answer.body.job_id);
      } catch {
        // The server is being killed: an unanswered request may or may not have taken effect.
        await Bun.sleep(20);
      }
    }
  };
  const callers = Array.from({ length: CALLERS }, createUntilOver);
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const enough = accepted.size + PASSES;
    await eventually("passes are created", () => accepted.size >= enough, 60_000);
    if (kill === 1) await hangBetweenStoringAndQueueing(() => accepted.size);
    isOver = kill === KILLS;
    await waybill.kill();
    if (kill < KILLS) waybill = await startWaybill(home.path);
  }
  await Promise.all(callers);

  const { stored, begun } = await inRegistry(async (db) => {
    // The test does not wait until a pass without a job is noticed.
    await db.update(passes).set({ createdAt: sql`${passes.createdAt} - interval '1 hour'` });
    const columns = { jobId: passes.jobId, serial: passes.serial };
    return {
      stored: await db.$count(passes, ne(passes.state, "failed")),
      begun: await db.select(columns).from(passes).where(eq(passes.state, "creating")),
    };
  });
  waybill = await startWaybill(home.path);
  const orphans: string[] = [];
  for (const { jobId, serial } of begun) {
    const isKnown = async () => {
      const { status, body } = await waybill.request(apiKey, "GET", `/v1/jobs/${jobId}`);
      return status === 404 ? "no" : body.status === "success" && "yes";
    };
    if ((await eventually("a job that was queued ends", isKnown, 60_000)) === "no") orphans.push(serial);
  }
  for (const jobId of accepted) {
    const { body } = await waybill.request(apiKey, "GET", `/v1/jobs/${jobId}`);
    expect(body).toMatchObject({ job_id: jobId, status: "success", result: { pass_id: expect.any(String) } });
  }
  expect(orphans.length).toBeGreaterThan(0);
  const [first = "none"] = orphans;
  const isFree = async () => (await create(first)).status === 202;
  await eventually("the serial of a pass that has no job can be used again", isFree, 60_000);
  const expected = TOKENS - (stored - orphans.length + 1);
  await eventually("passes without a job are given back", async () => (await balance()) === expected, 60_000);
  await waybill.stop();

  await inRegistry(async (db) => {
    const existing = await db.$count(passes, ne(passes.state, "failed"));
    expect(existing).toBeGreaterThanOrEqual(accepted.size);
    expect(existing).toBe(TOKENS - expected);
    // Passes without a job are gone, but for the one whose serial was used again.
    expect(await db.$count(passes, inArray(passes.serial, orphans))).toBe(1);
    const moved = await db
      .select({ sum: sql`sum(${tokenMovements.amount})::int` })
      .from(tokenMovements)
      .where(eq(tokenMovements.tenantId, TENANT));
    recordProof({
      fault: `kill -9 of the server, ${KILLS} times while passes are made`,
      accepted: accepted.size,
      lost: Math.max(0, accepted.size - existing),
      note: `${existing} passes exist, ${orphans.length} that had no job were undone, ${TOKENS - expected} tokens spent`,
    });
    expect(moved).toEqual([{ sum: expected }]);
  });
}, 300_000);
