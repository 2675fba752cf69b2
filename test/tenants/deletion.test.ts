import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { DeviceRepository } from "../../src/channels/wallet/devices/device-repository.ts";
import { passDevices, passes } from "../../src/channels/wallet/tables.ts";
import type { Clock } from "../../src/domain/clock.ts";
import { UnavailableError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { Database } from "../../src/storage/postgres/database.ts";
import { TenantRemovals } from "../../src/tenants/tenant-removal.ts";
import { Front } from "../http/support/front.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

let front: Front;
let devices: DeviceRepository;
beforeAll(async () => {
  front = await Front.start();
  devices = new DeviceRepository(new Database(front.database.db, systemClock), systemClock);
});
afterAll(() => front.stop(), 90_000);

let made = 0;
let id = "";
let apiKey = "";
beforeEach(async () => {
  made += 1;
  id = `leaves-${made}`;
  const tenant = { id, name: "Leaves", plan: "pro", channels: ["email"], permissions: ["allow_raw_html"], tokens: 5 };
  expect((await front.operate("POST", "/tenants", tenant)).status).toBe(201);
  apiKey = String((await front.operate("POST", `/tenants/${id}/keys`, {})).body["api_key"]);
});

const remove = (query: string) => front.operate("DELETE", `/tenants/${id}${query}`);
const send = () =>
  front.fetch("/v1/send/email", {
    method: "POST",
    headers: { "x-api-key": apiKey, "content-type": "application/json" },
    body: JSON.stringify({ to_address: "ann@example.com", subject: "Hi", html: "<p>Hi</p>" }),
  });

/** Tenants that have rows in the outbox. */
const unrecorded = new Set<string>();

/** Runs the work behind the call, a minute later. */
function removals(changes: Partial<ConstructorParameters<typeof TenantRemovals>[0]> = {}) {
  const hastened: string[] = [];
  const removed: string[] = [];
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() + 61_000 };
  const work = new TenantRemovals({
    registry: front.registry,
    beside: devices,
    queue: {
      unfinishedJobs: (tenant) => front.queue.unfinishedJobs(tenant),
      hastenParked: async ({ tenantId }) => hastened.push(tenantId),
      hasUnrecorded: async ({ tenantId }) => unrecorded.has(tenantId),
      removeTenant: async ({ tenantId }) => void removed.push(tenantId),
    },
    history: { removeHistory: async () => true },
    channels: ["email"],
    clock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
    ...changes,
  });
  return { work, hastened, removed };
}

/** A phone has a pass of the tenant. */
async function putOnDevice(deviceId: string): Promise<void> {
  const { db } = front.database;
  const row = { type: "apple", state: "ready", version: 1, content: {}, createdAt: new Date(0) } as const;
  const passTypeId = "pass.test.event";
  await db.insert(passes).values({ ...row, id: deviceId, tenantId: id, serial: "S1", passTypeId, jobId: deviceId });
  await devices.register({ deviceId, passId: deviceId, passTypeId, pushToken: "aa" });
}

async function countRows(table: string): Promise<number> {
  const found: unknown = await front.database.db.execute(
    sql`SELECT count(*)::int AS n FROM ${sql.identifier(table)} WHERE tenant_id = ${id}`,
  );
  return Number(/"n":(\d+)/.exec(JSON.stringify(found))?.[1]);
}

test("a tenant is deleted only if its id is confirmed and no job is unfinished, or they are to end", async () => {
  expect((await remove("")).status).toBe(400);
  expect((await remove("?confirm=other")).status).toBe(400);
  expect((await remove(`?confirm=${id}&purge=yes`)).status).toBe(400);
  expect((await send()).status).toBe(202);
  const refused = await remove(`?confirm=${id}`);
  expect([refused.status, refused.body]).toEqual([
    409,
    { error: expect.stringContaining("1 unfinished jobs"), unfinished: 1 },
  ]);
  expect((await send()).status).toBe(202);
  const deleted = await remove(`?confirm=${id}&purge=true`);
  expect([deleted.status, deleted.body]).toEqual([202, { id, state: "deleting", unfinished: 2 }]);
  // Applies as soon as the call is answered.
  expect((await send()).status).toBe(401);
  expect((await front.operate("DELETE", "/tenants/nobody?confirm=nobody")).status).toBe(404);
});

test("a deleted tenant is gone for everybody, its id is not given out again, and its bills stay", async () => {
  expect((await remove(`?confirm=${id}`)).status).toBe(202);
  for (const path of ["", "/keys", "/templates", "/suppressions", "/jobs", "/tokens"]) {
    expect([path, (await front.operate("GET", `/tenants/${id}${path}`)).status]).toEqual([path, 404]);
  }
  const calls = [
    ["PATCH", "", { name: "Back" }],
    ["POST", "/keys", {}],
    ["POST", "/tokens", { amount: 1, reason: "gift" }],
    ["POST", "/pause", {}],
    ["PUT", "/suppressions/a%40example.com", {}],
    ["PUT", "/templates/hi", { channel: "email", subject: "Hi", html: "<p>Hi</p>" }],
    ["POST", "/erasures", { recipient: "a@example.com" }],
  ] as const;
  for (const [method, path, body] of calls) {
    expect([path, (await front.operate(method, `/tenants/${id}${path}`, body)).status]).toEqual([path, 404]);
  }
  const again = await front.operate("POST", "/tenants", { id, name: "Again" });
  expect([again.status, again.body["error"]]).toEqual([409, expect.stringContaining("deleted tenant")]);
  const listed = await front.operate("GET", "/tenants?limit=500");
  expect(JSON.stringify(listed.body)).not.toContain(`"${id}"`);
  const usage = await front.operate("GET", `/tenants/${id}/usage`);
  expect([usage.status, usage.body]).toMatchObject([200, { usage: [{ tenant_name: "Leaves", tokens_topped_up: 5 }] }]);
  expect(JSON.stringify((await front.operate("GET", "/usage")).body)).toContain(`"${id}"`);
});

test("everything of a deleted tenant leaves the registry, once its jobs have ended, and a repeat tells", async () => {
  await front.operate("PUT", `/tenants/${id}/templates/hi`, { channel: "email", subject: "Hi", html: "<p>Hi</p>" });
  await front.operate("PUT", `/tenants/${id}/credentials/email`, { from_address: "me@own.example" });
  for (let n = 0; n < 3; n += 1) await must(front.registry.putSuppression(id, `u${n}@example.com`, "manual"));
  await putOnDevice(`phone-of-${id}`);
  expect((await send()).status).toBe(202);
  expect((await remove(`?confirm=${id}&purge=true`)).status).toBe(202);
  const { work, hastened, removed } = removals();
  await work.sweep();
  // Jobs are deleted first.
  expect([hastened.includes(id), await countRows("suppressions")]).toEqual([true, 3]);
  front.queue.queued.splice(0);
  await work.sweep();
  for (const table of ["keys", "templates", "credentials", "suppressions", "passes"])
    expect(await countRows(table)).toBe(0);
  const phone = eq(passDevices.deviceId, `phone-of-${id}`);
  expect(await front.database.db.select().from(passDevices).where(phone)).toEqual([]);
  expect(await countRows("token_movements")).toBe(1);
  expect(removed).toContain(id);
  const answer = await remove(`?confirm=${id}`);
  expect([answer.status, answer.body]).toEqual([200, { id, state: "deleted", unfinished: 0 }]);
  expect(await front.registry.leavingTenants(100)).toEqual([]);
});

test("a removal that was broken off goes on in the next round, and a neighbour keeps what it has", async () => {
  await must(front.registry.putSuppression("acme", "kept@example.com", "manual"));
  await must(front.registry.putSuppression(id, "goes@example.com", "manual"));
  expect((await remove(`?confirm=${id}`)).status).toBe(202);
  const away = { removeHistory: () => Promise.reject(new UnavailableError("away")) };
  await removals({ history: away }).work.sweep();
  await removals({ history: { removeHistory: async () => false } }).work.sweep();
  expect((await remove(`?confirm=${id}`)).body["state"]).toBe("deleting");
  // Too early: another process may still accept messages from its memory.
  await removals({ clock: systemClock }).work.sweep();
  expect((await remove(`?confirm=${id}`)).body["state"]).toBe("deleting");
  await removals().work.sweep();
  expect((await remove(`?confirm=${id}`)).body["state"]).toBe("deleted");
  expect(await front.registry.suppressionReason("acme", "kept@example.com")).toBe("manual");
});

test("a tenant is not removed before its last event is recorded, which goes with the others", async () => {
  await must(front.registry.putSuppression(id, "ann@example.com", "manual"));
  expect((await remove(`?confirm=${id}`)).status).toBe(202);
  unrecorded.add(id);
  const stored = new Set<string>();
  const history = {
    // A requested removal is complete by the next round.
    removeHistory: async (tenantId: string) => !stored.delete(tenantId),
  };
  const { work, removed } = removals({ history });
  for (let round = 0; round < 3; round += 1) await work.sweep();
  expect((await remove(`?confirm=${id}`)).body).toEqual({ id, state: "deleting", unfinished: 0 });
  expect([await countRows("suppressions"), removed]).toEqual([1, []]);
  // The recorder runs again.
  stored.add(id);
  unrecorded.delete(id);
  await work.sweep();
  expect((await remove(`?confirm=${id}`)).body["state"]).toBe("deleting");
  await work.sweep();
  expect((await remove(`?confirm=${id}`)).body["state"]).toBe("deleted");
  expect([stored.size, await countRows("suppressions"), removed]).toEqual([0, 0, [id]]);
});
