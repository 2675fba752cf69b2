import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { CHANNELS } from "../../src/app/channels.ts";
import { type OpenRegistry, openRegistry } from "../../src/app/open-registry.ts";
import { connectPostgres } from "../../src/storage/postgres/connect-postgres.ts";
import type { AnyDb, OpenDatabase } from "../../src/storage/postgres/database.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { Vault } from "../../src/storage/vault.ts";
import { newApiKey } from "../../src/tenants/api-key.ts";
import { eventually } from "../support/eventually.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { must } from "../support/must.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { liveFeed, machineRandom, SkippingClock } from "./machine.ts";

const TRUSTED_MS = 60_000;
const IDLE_MS = 5 * 60_000;
const missing = postgresMissing();

describe.skipIf(missing !== null)(`the registry when PostgreSQL fails it${missing ? ` (${missing})` : ""}`, () => {
  let server: PostgresServer;
  let database: OpenDatabase;
  let opened: OpenRegistry;
  const clock = new SkippingClock();
  const telemetry = new GaugingTelemetry();

  const open = (db: AnyDb, onSilence?: () => void) => {
    const vault = new Vault([new Uint8Array(32).fill(7)], machineRandom);
    return openRegistry({
      channels: CHANNELS,
      db,
      onSilence,
      senderDomain: "waybill.test",
      shards: 4,
      vault,
      clock,
      random: machineRandom,
      feed: liveFeed(),
      telemetry,
    });
  };
  const newTenant = async () => (await must(opened.registry.createTenant({ name: "Acme" }))).id;

  beforeAll(async () => {
    server = await createPostgres();
    database = await connectPostgres(server.url);
    await migrate(database.db);
    opened = await open(database.db);
    opened.start();
  }, 300_000);

  afterAll(async () => {
    await opened?.stop();
    await database?.close();
    await server?.remove();
  });

  test("a database without a schema is refused, and the message says what to do", async () => {
    await database.db.execute(sql`create database empty`);
    const empty = await connectPostgres(server.url.replace(/waybill$/, "empty"));
    const message = expect.stringContaining("waybill migrate");
    expect(await rejection(open(empty.db))).toMatchObject({ name: "ConfigurationError", message });
    await empty.close();
  });

  test.each([
    ["another protocol", "mysql://me:hunter2@127.0.0.1/waybill", "ConfigurationError"],
    ["no URL", "hunter2", "ConfigurationError"],
    ["a closed port", "postgres://me:hunter2@127.0.0.1:1/waybill", "UnavailableError"],
  ])("%s is refused without showing the password", async (_, url, name) => {
    const error = await rejection(connectPostgres(url));
    expect(error).toMatchObject({ name });
    expect(String(error)).not.toContain("hunter2");
    expect(String(error)).toContain("DATABASE_URL");
  });

  test("an unknown user and an unknown database are told apart from a server that is away", async () => {
    const nobody = await rejection(connectPostgres(server.url.replace("//waybill@", "//nobody:hunter2@")));
    expect(nobody).toMatchObject({ name: "ConfigurationError", message: expect.stringContaining("user or password") });
    const nowhere = await rejection(connectPostgres(server.url.replace(/waybill$/, "nowhere")));
    expect(nowhere).toMatchObject({ name: "ConfigurationError", message: expect.stringContaining("no database") });
  });

  test("a tenant that was read before a revocation is not remembered after it", async () => {
    const id = await newTenant();
    const { key_id, api_key } = await must(opened.registry.createKey(id));
    let asked: ReturnType<typeof opened.directory.byApiKey> = null;
    // The load has read the key, and waits for the templates, while the key is revoked.
    await database.db.transaction(async (transaction) => {
      await transaction.execute(sql`lock table templates in access exclusive mode`);
      asked = opened.directory.byApiKey(api_key);
      await eventually("the load waits", () => isWaiting(transaction));
      await must(opened.registry.revokeKey(id, key_id));
    });
    await asked;
    expect(await opened.directory.byApiKey(api_key)).toBeNull();
  });

  test("a call to a server that never answers takes bounded time", async () => {
    const id = await newTenant();
    await database.db.transaction(async (transaction) => {
      await transaction.execute(sql`lock table tenants in access exclusive mode`);
      expect(await rejection(opened.registry.tenant(id))).toMatchObject({ name: "UnavailableError" });
      expect(await rejection(opened.directory.byId(id))).toMatchObject({ name: "UnavailableError" });
    });
    expect((await opened.directory.byId(id))?.tenantId).toBe(id);
  });

  test("connections that went silent are replaced", async () => {
    const proxy = await FaultProxy.start({ port: Number(new URL(server.url).port) });
    const url = new URL(server.url);
    url.port = String(proxy.port);
    const through = await connectPostgres(url.href);
    const registry = await open(through.db, through.onSilence);
    try {
      const { id } = await must(registry.registry.createTenant({ name: "Silent" }));
      const isThere = async () => (await registry.registry.tenant(id).catch(() => null)) !== null;
      expect(await isThere()).toBe(true);
      // Otherwise silent connections would stay open on the server until it accepts no others.
      expect(await through.db.execute(sql`show idle_session_timeout`)).toEqual([{ idle_session_timeout: "1min" }]);
      expect(proxy.silenceExisting()).toBeGreaterThan(0);
      await eventually("the registry answers again", isThere, 20_000);
      // And once more, with a while without answers.
      proxy.silenceExisting();
      proxy.silence();
      expect(await isThere()).toBe(false);
      await proxy.pass();
      await eventually("the registry answers again", isThere, 30_000);
    } finally {
      await registry.stop();
      await through.close();
      await proxy.stop();
    }
  }, 300_000);

  test("a flood of invented keys is cut off and pushes no tenant out of memory", async () => {
    const id = await newTenant();
    const { api_key } = await must(opened.registry.createKey(id));
    // Several times if necessary: the poll that notices the tenant's creation drops the remembered entry, once.
    await eventually("the tenant stays remembered through a flood", async () => {
      expect((await opened.directory.byApiKey(api_key))?.tenant.tenantId).toBe(id);
      // A key by an attacker who can compute the checksum.
      const invented = Array.from({ length: 2_000 }, () => newApiKey(machineRandom));
      const answers = await Promise.allSettled(invented.map((key) => opened.directory.byApiKey(key)));
      const refused = answers.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      expect(refused.length).toBeWithin(1, invented.length);
      for (const error of refused) expect(error).toMatchObject({ name: "UnavailableError" });
      return !(opened.directory.byApiKey(api_key) instanceof Promise);
    });
  });

  test("a tenant that is not looked up for minutes is forgotten", async () => {
    const id = await newTenant();
    await eventually("it is remembered", async () => {
      await opened.directory.byId(id);
      return telemetry.remembered > 0;
    });
    clock.skip(IDLE_MS + 1_000);
    await eventually("it is forgotten", () => telemetry.remembered === 0);
  });

  test("without the server, remembered tenants are served for a minute and then none; once it is back, all are", async () => {
    const id = await newTenant();
    const { api_key } = await must(opened.registry.createKey(id));
    const { polls } = telemetry;
    // The poll that notices the tenant's creation drops the remembered entry, and one may be in progress.
    await eventually("polls have seen the tenant", () => telemetry.polls >= polls + 2);
    await opened.directory.byApiKey(api_key);
    telemetry.lines.length = 0;
    await server.crash();
    await eventually("the outage is noticed", () => telemetry.lines.includes("warn: the registry does not answer"));

    expect(opened.directory.byApiKey(api_key)).toMatchObject({ tenant: { tenantId: id } });
    expect(await rejection(opened.directory.byApiKey(`wb_${"2".repeat(32)}`))).toMatchObject({
      name: "UnavailableError",
    });
    expect(await rejection(opened.probe.check())).toMatchObject({ name: "UnavailableError" });
    expect(await rejection(opened.registry.addTokens(id, 1, "x"))).toMatchObject({ name: "UnavailableError" });

    clock.skip(TRUSTED_MS);
    expect(await rejection(opened.directory.byApiKey(api_key))).toMatchObject({ name: "UnavailableError" });
    expect(await rejection(opened.directory.byId(id))).toMatchObject({ name: "UnavailableError" });

    await server.start();
    await eventually("the server is found again", () => telemetry.lines.includes("info: the registry is back"));
    expect((await opened.directory.byApiKey(api_key))?.tenant.tenantId).toBe(id);
    await opened.probe.check();
  }, 90_000);
});

class GaugingTelemetry extends QuietTelemetry {
  remembered = 0;
  polls = 0;
  override gauge(name = "", value = 0): void {
    if (name !== "tenants_remembered") return;
    this.remembered = value;
    this.polls += 1;
  }
}

async function isWaiting(db: AnyDb): Promise<boolean> {
  const waiting = sql`(select count(*) from pg_locks where not granted) > 0`;
  const [row] = await db.select({ isWaiting: sql<boolean>`${waiting}` }).from(sql`(select 1) as one`);
  return row?.isWaiting ?? false;
}

/** Returns the promise's rejection. */
function rejection(promise: unknown): Promise<unknown> {
  return Promise.resolve(promise).then(
    () => "it did not reject",
    (error: unknown) => error,
  );
}
