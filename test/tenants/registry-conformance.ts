import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { OpenRegistry } from "../../src/app/open-registry.ts";
import type { AppleSigner } from "../../src/domain/channels/wallet.ts";
import type { Page } from "../../src/domain/page.ts";
import type { Done } from "../../src/domain/store-result.ts";
import { FREE_QUEUE_SHARE, QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import type { Registry } from "../../src/storage/registry.ts";
import { registryState } from "../../src/storage/tables.ts";
import { keys, templates } from "../../src/tenants/tables.ts";
import { chatConformance } from "../channels/whatsapp/chat-conformance.ts";
import { eventually } from "../support/eventually.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { liveFeed, STALE_MS_MAX } from "./machine.ts";
import { MASTER_KEY, openTestRegistry, SHARDS } from "./open-test-registry.ts";
import { suppressionConformance } from "./suppression-conformance.ts";

const SIGNER: AppleSigner = {
  certificatePem: "c",
  privateKeyPem: "k",
  passphrase: null,
  wwdrPem: null,
  passTypeId: "pass.test",
  teamId: "TEAM",
};

/** The database under test. */
export interface TestDatabase {
  /** A connection to it; the same one each time where only one is possible. */
  connect(): Promise<OpenDatabase>;
  remove(): Promise<void>;
}

/** The guarantees of the registry on every PostgreSQL. */
export function registryConformance(name: string, create: () => Promise<TestDatabase>): void {
  describe(name, () => {
    let database: TestDatabase;
    let here: OpenDatabase;
    let there: OpenDatabase;
    let registry: Registry;
    let first: OpenRegistry;
    /** Another process on the same database, which receives no notifications. */
    let second: OpenRegistry;
    let tenants = 0;

    const newId = () => `tenant-${(tenants += 1)}`;
    const newTenant = async () => (await must(registry.createTenant({ id: newId(), name: "Acme" }))).id;

    beforeAll(async () => {
      database = await create();
      here = await database.connect();
      there = await database.connect();
      await Promise.all([migrate(here.db), migrate(there.db)]);
      await migrate(here.db);
      first = await openTestRegistry(here);
      second = await openTestRegistry(there);
      registry = first.registry;
      first.start();
      second.start();
    }, 300_000);

    afterAll(async () => {
      await first?.stop();
      await second?.stop();
      await here?.close();
      await there?.close();
      await database?.remove();
    });

    test("a new registry has the plans free and pro", async () => {
      const plans = await registry.plans();
      expect(plans).toContainEqual({
        name: "free",
        requestsPerMinute: 100,
        deliveriesPerSecond: null,
        ...FREE_QUEUE_SHARE,
      });
      expect(plans).toContainEqual({ name: "pro", requestsPerMinute: 1000, deliveriesPerSecond: null, ...QUEUE_SHARE });
    });

    test("another number of shards is refused, and the message says which one fits", async () => {
      const refusal = { name: "ConfigurationError", message: expect.stringContaining("set SHARDS=16") };
      expect(await rejection(openTestRegistry(here, { shards: 8 }))).toMatchObject(refusal);
    });

    test("migrate refuses the database of a later version", async () => {
      await here.db.execute(sql`insert into registry_migrations (hash) values ('from the future')`);
      expect(await rejection(migrate(here.db))).toMatchObject({ name: "ConfigurationError" });
      await here.db.execute(sql`delete from registry_migrations where hash = 'from the future'`);
      await migrate(here.db);
    });

    describe("tenants", () => {
      test("a tenant is read back as it was created", async () => {
        const id = newId();
        const created = await must(
          registry.createTenant({
            id,
            name: "Ácme 🦊 'quoted'",
            plan: "pro",
            channels: ["email"],
            permissions: ["allow_raw_html"],
            allow_custom: ["email"],
            tokens: 7,
          }),
        );
        expect(created).toMatchObject({ id, name: "Ácme 🦊 'quoted'", plan: "pro", channels: ["email"], tokens: 7 });
        expect(created.permissions).toEqual(["allow_raw_html"]);
        expect(created.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        expect(await must(registry.tenant(id))).toEqual(created);
        expect((await must(registry.tokenMovements(id, null, 10))).items).toMatchObject([{ amount: 7, balance: 7 }]);
      });

      test("a tenant without an id gets one from its name, and a taken one is made unique", async () => {
        const one = await must(registry.createTenant({ name: " Söhne & Co. " }));
        const two = await must(registry.createTenant({ name: "Söhne & Co." }));
        expect(one.id).toBe("sohne-co");
        expect(two.id).toMatch(/^sohne-co-[a-z0-9]{6}$/);
        expect((await must(registry.createTenant({ name: "日本" }))).id).toMatch(/^tenant/);
      });

      test("a tenant's shard is within the registry's and never changes", async () => {
        const id = await newTenant();
        const { shard } = await must(registry.tenant(id));
        expect(shard).toBeWithin(0, SHARDS);
        expect((await must(registry.changeTenant(id, { name: "Other" }))).shard).toBe(shard);
      });

      test("only the given fields change", async () => {
        const id = await newTenant();
        const before = await must(registry.tenant(id));
        expect(await must(registry.changeTenant(id, {}))).toEqual(before);
        expect(await must(registry.changeTenant(id, { channels: ["wallet", "wallet"] }))).toEqual({
          ...before,
          channels: ["wallet"],
        });
      });

      test("each tenant is on exactly one page", async () => {
        for (let count = 0; count < 5; count += 1) await newTenant();
        const seen: string[] = [];
        for await (const { id } of readAllPages((cursor) => registry.tenants(cursor, 2))) seen.push(id);
        expect(seen).toEqual([...new Set(seen)].sort());
        expect(seen.length).toBeGreaterThanOrEqual(5);
      });

      test.each([
        ["an id that is no slug", { id: "Not A Slug", name: "x" }, "invalid"],
        ["an unknown plan", { name: "x", plan: "gold" }, "no_such_plan"],
        ["a plan's name that PostgreSQL cannot read", { name: "x", plan: "a\u0000" }, "no_such_plan"],
        ["an empty name", { name: "  " }, "invalid"],
        ["a control character in the name", { name: "a\u0000b" }, "invalid"],
        ["half a surrogate pair in the name", { name: "a\ud800" }, "invalid"],
        ["a negative balance", { name: "x", tokens: -1 }, "invalid"],
      ] as const)("%s is refused", async (_, tenant, kind) => {
        expect(await refusal(registry.createTenant(tenant))).toMatchObject({ kind });
      });

      test("an id that is taken is a conflict", async () => {
        const id = await newTenant();
        expect(await refusal(registry.createTenant({ id, name: "x" }))).toMatchObject({ kind: "taken", by: "id" });
      });

      test.each([
        ["that does not exist", "nobody"],
        ["whose id is no slug", "not a slug"],
        ["whose id PostgreSQL cannot read", "a\u0000"],
        ["whose id is endless", "a".repeat(10_000)],
      ])("every call about a tenant %s is a 404", async (_, id) => {
        const template = { slug: "welcome", channel: "email", subject: "s", html: "h", text: null } as const;
        const calls: (() => Promise<Done<unknown> | { readonly kind: string }>)[] = [
          () => registry.tenant(id),
          () => registry.changeTenant(id, { name: "x" }),
          () => registry.createKey(id),
          () => registry.keys(id),
          () => registry.revokeKey(id, "key_1234567890123456"),
          () => registry.putTemplate(id, template),
          () => registry.template(id, "welcome"),
          () => registry.templates(id),
          () => registry.deleteTemplate(id, "welcome"),
          () => registry.putEmailCredentials(id, { from_address: "a@b.test" }),
          () => registry.addTokens(id, 1, "x"),
          () => registry.tokenMovements(id, null, 1),
          () => registry.putAppleCredentials(id, SIGNER),
          () => registry.putGoogleCredentials(id, { issuerId: "3388", clientEmail: "a@b.test", privateKeyPem: "k" }),
          () => registry.putWalletWebhook(id, null),
        ];
        for (const call of calls) expect(await refusal(call())).toEqual({ kind: "missing", what: "tenant" });
        expect(await first.directory.byId(id)).toBeNull();
      });
    });

    describe("keys", () => {
      test("a key opens its tenant, and only a short prefix of it is stored in the clear", async () => {
        const id = await newTenant();
        const { key_id, api_key } = await must(registry.createKey(id));
        expect(api_key).toMatch(/^wb_[1-9A-HJ-NP-Za-km-z]{32}$/);
        expect((await first.directory.byApiKey(api_key))?.tenant.tenantId).toBe(id);
        const [listed] = await must(registry.keys(id));
        expect(listed).toMatchObject({ key_id, prefix: api_key.slice(0, 7) });
        expect(JSON.stringify(await here.db.select().from(keys))).not.toContain(api_key.slice(0, 8));
      });

      test("a key of another tenant cannot be revoked", async () => {
        const [mine, other] = [await newTenant(), await newTenant()];
        const { key_id, api_key } = await must(registry.createKey(mine));
        expect(await refusal(registry.revokeKey(other, key_id))).toMatchObject({ kind: "missing", what: "key" });
        expect((await first.directory.byApiKey(api_key))?.tenant.tenantId).toBe(mine);
      });

      test("a revoked key opens nothing: here at once, elsewhere within a second without any message", async () => {
        const id = await newTenant();
        const [revoked, kept] = [await must(registry.createKey(id)), await must(registry.createKey(id))];
        expect((await second.directory.byApiKey(revoked.api_key))?.tenant.tenantId).toBe(id);
        await must(registry.revokeKey(id, revoked.key_id));
        expect(await first.directory.byApiKey(revoked.api_key)).toBeNull();
        await eventually(
          "the key is dead elsewhere",
          async () => (await second.directory.byApiKey(revoked.api_key)) === null,
          STALE_MS_MAX,
        );
        expect((await second.directory.byApiKey(kept.api_key))?.tenant.tenantId).toBe(id);
        expect(await refusal(registry.revokeKey(id, revoked.key_id))).toMatchObject({ kind: "missing", what: "key" });
      });

      test.each([
        ["empty", ""],
        ["short", "wb_1111"],
        ["well-formed", `wb_${"1".repeat(32)}`],
        ["hostile", "'; drop table keys; --\u0000"],
        ["endless", "wb_1".repeat(100_000)],
      ])("an invented key that is %s opens nothing", async (_, apiKey) => {
        expect(await first.directory.byApiKey(apiKey)).toBeNull();
        expect(await first.directory.byApiKey(apiKey)).toBeNull();
      });
    });

    describe("the directory", () => {
      test("a remembered tenant is answered without a promise, and one load serves all concurrent callers", async () => {
        const id = await newTenant();
        const asked = [second.directory.byId(id), second.directory.byId(id)];
        const [one, two] = await Promise.all(asked);
        expect(one === two).toBe(true);
        expect(second.directory.byId(id) === one).toBe(true);
      });

      test("every kind of change is seen elsewhere within a second without any message", async () => {
        const id = await newTenant();
        await must(
          registry.putPlan({ name: "slow", requestsPerMinute: 5, deliveriesPerSecond: 0.5, ...FREE_QUEUE_SHARE }),
        );
        const seen = () => second.directory.byId(id);
        expect(await seen()).not.toBeNull();

        await must(registry.changeTenant(id, { name: "Renamed", plan: "slow", allow_custom: ["email"] }));
        await eventually("the name", async () => (await seen())?.name === "Renamed", STALE_MS_MAX);
        expect((await seen())?.plan).toEqual({
          name: "slow",
          requestsPerMinute: 5,
          deliveriesPerSecond: 0.5,
          ...FREE_QUEUE_SHARE,
        });

        await must(registry.putPlan({ name: "slow", requestsPerMinute: 6, deliveriesPerSecond: null, ...QUEUE_SHARE }));
        await eventually("the plan", async () => (await seen())?.plan.requestsPerMinute === 6, STALE_MS_MAX);

        await must(
          registry.putTemplate(id, {
            slug: "hi",
            channel: "email",
            subject: "s",
            html: "<p>h</p>",
            text: "t",
          }),
        );
        await eventually("the template", async () => (await seen())?.emailTemplates.has("hi") ?? false, STALE_MS_MAX);
        expect((await seen())?.emailTemplates.get("hi")).toEqual({ subject: "s", html: "<p>h</p>", text: "t" });

        await must(registry.deleteTemplate(id, "hi"));
        await eventually("its end", async () => (await seen())?.emailTemplates.size === 0, STALE_MS_MAX);

        await must(registry.putEmailCredentials(id, { from_address: "me@own.test", from_name: "Me" }));
        await eventually("the sender", async () => (await seen())?.emailSender !== null, STALE_MS_MAX);
        expect((await seen())?.emailSender).toEqual({ fromAddress: "me@own.test", fromName: "Me", smtpUrl: null });
      });

      test("a refused change reaches no other process", async () => {
        const id = await newTenant();
        const [before] = await here.db.select().from(registryState);
        const refused = [
          await registry.createTenant({ id, name: "Taken" }),
          await registry.createTenant({ name: "Planless", plan: "gold" }),
          await registry.changeTenant(id, { name: "Planless", plan: "gold" }),
          await registry.changeTenant("nobody", { name: "x" }),
          await registry.revokeKey(id, "key_1234567890123456"),
          await registry.deleteTemplate(id, "none"),
          await registry.aliases.delete(id, "none"),
          await first.domains.delete(id, "none.test"),
        ];
        expect(refused.filter(({ kind }) => kind === "done")).toEqual([]);
        expect(await here.db.select().from(registryState)).toEqual(before === undefined ? [] : [before]);
        expect((await must(registry.tenant(id))).name).toBe("Acme");
      });

      test("a tenant that was looked up before it existed is found within a second of its creation", async () => {
        const id = newId();
        expect(await second.directory.byId(id)).toBeNull();
        await must(registry.createTenant({ id, name: "Late" }));
        await eventually("it is found", async () => (await second.directory.byId(id)) !== null, STALE_MS_MAX);
      });

      test("a message of the feed makes a change visible before the next poll", async () => {
        const [feed, telemetry] = [liveFeed(), new PollCountingTelemetry()];
        const [writer, reader] = [
          await openTestRegistry(here, { feed }),
          await openTestRegistry(there, { feed, telemetry }),
        ];
        const id = await newTenant();
        reader.start();
        await eventually("the first poll is over", () => telemetry.polls > 0);
        // The next poll is half a second away.
        expect((await reader.directory.byId(id))?.name).toBe("Acme");
        await must(writer.registry.changeTenant(id, { name: "Renamed" }));
        expect((await reader.directory.byId(id))?.name).toBe("Renamed");
        await reader.stop();
      });

      test("own credentials are used only where the tenant may use its own", async () => {
        const id = await newTenant();
        await must(
          registry.putEmailCredentials(id, { from_address: "me@own.test", smtp_url: "smtp://u:p@relay.test:587" }),
        );
        expect((await first.directory.byId(id))?.emailSender).toBeNull();
        await must(registry.changeTenant(id, { allow_custom: ["email"] }));
        expect((await first.directory.byId(id))?.emailSender?.smtpUrl).toBe("smtp://u:p@relay.test:587");
      });

      test("a sender keeps the day from which it is warmed up", async () => {
        const id = await newTenant();
        await must(registry.changeTenant(id, { allow_custom: ["email"] }));
        await must(registry.putEmailCredentials(id, { from_address: "me@own.test", warm_up_from: "2026-03-01" }));
        expect((await first.directory.byId(id))?.emailSender?.warmUpFrom).toBe("2026-03-01");
      });

      test("versions are committed in order, however many changes run at once", async () => {
        const ids = await Promise.all(Array.from({ length: 8 }, newTenant));
        for (const id of ids) await second.directory.byId(id);
        const [before] = await here.db.select().from(registryState);
        await Promise.all(ids.map((id) => registry.changeTenant(id, { name: "Together" })));
        const [after] = await here.db.select().from(registryState);
        expect(Number(after?.version) - Number(before?.version)).toBe(8);
        for (const id of ids) {
          await eventually(id, async () => (await second.directory.byId(id))?.name === "Together", STALE_MS_MAX);
        }
      });
    });

    describe("templates and credentials", () => {
      test("a template is stored as a JSON object that SQL can read, whatever its text", async () => {
        const id = await newTenant();
        const template = {
          slug: "a.b_c-1",
          channel: "email",
          subject: '{"x":1}',
          html: "<b>'\"\\ü🦊</b>\r\n",
          text: null,
        } as const;
        expect(await must(registry.putTemplate(id, template))).toEqual(template);
        expect(await must(registry.template(id, "a.b_c-1"))).toEqual(template);
        expect(await must(registry.templates(id))).toEqual([template]);
        const [stored] = await here.db
          .select({
            type: sql<string>`jsonb_typeof(${templates.body})`,
            subject: sql<string>`${templates.body} ->> 'subject'`,
          })
          .from(templates)
          .where(sql`${templates.tenantId} = ${id}`);
        expect(stored).toEqual({ type: "object", subject: '{"x":1}' });
      });

      test("putting a template again replaces it, deleting it twice finds none", async () => {
        const id = await newTenant();
        const template = { slug: "hi", channel: "email", subject: "one", html: "h", text: "t" } as const;
        await must(registry.putTemplate(id, template));
        await must(registry.putTemplate(id, { ...template, subject: "two", text: null }));
        expect(await must(registry.template(id, "hi"))).toMatchObject({ subject: "two", text: null });
        await must(registry.deleteTemplate(id, "hi"));
        expect(await refusal(registry.deleteTemplate(id, "hi"))).toMatchObject({ kind: "missing", what: "template" });
        expect(await refusal(registry.template(id, "\u0000"))).toMatchObject({ kind: "missing", what: "template" });
      });

      test.each([
        [{ slug: "a b" }],
        [{ subject: "two\r\nlines" }],
        [{ subject: "" }],
        [{ html: "a\u0000" }],
        [{ html: "a\udfff" }],
        [{ text: "\u0007" }],
      ])("the template with %j is refused", async (flaw) => {
        const id = await newTenant();
        const template = { slug: "hi", channel: "email", subject: "s", html: "h", text: null, ...flaw } as const;
        expect(await refusal(registry.putTemplate(id, template))).toMatchObject({ kind: "invalid" });
      });

      test.each([
        { from_address: "no address" },
        { from_address: "a@b.test\r\nBcc: x@y.test" },
        { from_address: "a@b.test", from_name: "x\r\ny" },
        { from_address: "a@b.test", smtp_url: "http://relay.test" },
        { from_address: "a@b.test", warm_up_from: "2026-02-30" },
      ])("the credentials %j are refused", async (given) => {
        const id = await newTenant();
        expect(await refusal(registry.putEmailCredentials(id, given))).toMatchObject({ kind: "invalid" });
      });

      test("a registry whose credentials need another master key is refused at the start", async () => {
        const id = await newTenant();
        await must(registry.putEmailCredentials(id, { from_address: "a@b.test" }));
        const other = new Uint8Array(32).fill(8);
        expect(await rejection(openTestRegistry(here, { masterKeys: [other] }))).toMatchObject({
          name: "ConfigurationError",
        });
        await openTestRegistry(here, { masterKeys: [other, MASTER_KEY] });
      });
    });

    describe("chat", () => chatConformance({ registry: () => first, elsewhere: () => second, newTenant }));
    describe("suppressions", () => suppressionConformance({ registry: () => registry, db: () => here.db, newTenant }));

    describe("tokens", () => {
      test("fifty concurrent calls that each take one of thirty tokens take exactly thirty, and the movements add up", async () => {
        const { id } = await must(registry.createTenant({ id: newId(), name: "Acme", tokens: 30 }));
        const taken = await Promise.all(Array.from({ length: 50 }, (_, n) => registry.addTokens(id, -1, `taker ${n}`)));
        const refused = taken.filter(({ kind }) => kind !== "done");
        expect(refused.length).toBe(20);
        for (const one of refused) expect(one).toEqual({ kind: "out_of_range", balance: 0 });
        expect((await must(registry.tenant(id))).tokens).toBe(0);
        const balances: number[] = [];
        for await (const { balance } of readAllPages((cursor) => registry.tokenMovements(id, cursor, 7)))
          balances.push(balance);
        expect(balances).toEqual(Array.from({ length: 31 }, (_, n) => n));
      }, 90_000);

      test.each([[0], [1.5], [Number.NaN], [2 ** 53]])("the amount %p is refused", async (amount) => {
        const id = await newTenant();
        expect(await refusal(registry.addTokens(id, amount, "x"))).toMatchObject({ kind: "invalid" });
      });

      test("a balance cannot grow beyond what a JSON number can hold", async () => {
        const id = await newTenant();
        await must(registry.addTokens(id, Number.MAX_SAFE_INTEGER, "all there are"));
        expect(await refusal(registry.addTokens(id, 1, "one more"))).toMatchObject({ kind: "out_of_range" });
      });

      test("an invalid cursor is refused", async () => {
        const id = await newTenant();
        expect(await refusal(registry.tokenMovements(id, "1 or 1=1", 1))).toMatchObject({ kind: "invalid_cursor" });
        expect(await refusal(registry.tenants("\u0000", 1))).toMatchObject({ kind: "invalid_cursor" });
      });
    });

    test.each([
      { name: "Gold!", requestsPerMinute: 1, deliveriesPerSecond: null, ...QUEUE_SHARE },
      { name: "gold", requestsPerMinute: 0, deliveriesPerSecond: null, ...QUEUE_SHARE },
      { name: "gold", requestsPerMinute: 1.5, deliveriesPerSecond: null, ...QUEUE_SHARE },
      { name: "gold", requestsPerMinute: 1, deliveriesPerSecond: 0, ...QUEUE_SHARE },
      { name: "gold", requestsPerMinute: 1, deliveriesPerSecond: Number.NaN, ...QUEUE_SHARE },
      { name: "gold", requestsPerMinute: 1, deliveriesPerSecond: null, ...QUEUE_SHARE, queuedJobsMax: 0 },
      { name: "gold", requestsPerMinute: 1, deliveriesPerSecond: null, ...QUEUE_SHARE, queuedBytesMax: 0.5 },
      { name: "gold", requestsPerMinute: 1, deliveriesPerSecond: null, ...QUEUE_SHARE, holdMs: 1 },
    ])("the plan %j is refused", async (plan) => {
      expect(await refusal(registry.putPlan(plan))).toMatchObject({ kind: "invalid" });
    });

    test("the probe succeeds while the database answers", () => first.probe.check());
  });
}

class PollCountingTelemetry extends QuietTelemetry {
  polls = 0;
  override gauge(): void {
    this.polls += 1;
  }
}

/** Returns the promise's rejection. */
async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const value = await promise.then(
    () => "it did not reject",
    (error: unknown) => error,
  );
  return value;
}

/** Returns why the registry refused. */
async function refusal(asked: Promise<Done<unknown> | { readonly kind: string }>): Promise<unknown> {
  const result = await asked;
  expect(result.kind).not.toBe("done");
  // A person reads one sentence.
  if ("why" in result) expect(result.why).toMatch(/^[A-Z].{10,}\.…?$/s);
  return result;
}

async function* readAllPages<T>(
  page: (cursor: string | null) => Promise<Done<Page<T>> | { readonly kind: string }>,
): AsyncGenerator<T> {
  let cursor: string | null = null;
  do {
    const { items, nextCursor }: Page<T> = await must(page(cursor));
    yield* items;
    cursor = nextCursor;
  } while (cursor !== null);
}
