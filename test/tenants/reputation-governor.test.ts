import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { eq } from "drizzle-orm";
import { auditOwnAct } from "../../src/app/own-acts.ts";
import type { Clock } from "../../src/domain/clock.ts";
import { UnavailableError } from "../../src/domain/errors.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { type MailHistory, type ReputationRules, UNGOVERNED } from "../../src/domain/tenants/reputation.ts";
import { ClickHouseMailCounts } from "../../src/events/clickhouse-mail-counts.ts";
import { audit } from "../../src/operators/tables.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { ReputationGovernor, type ReputationGovernorPorts } from "../../src/tenants/reputation-governor.ts";
import { NewsDesk } from "../../src/webhooks/news-desk.ts";
import { webhookNews } from "../../src/webhooks/tables.ts";
import { storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { Front } from "../http/support/front.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { deadFeed } from "./machine.ts";

setDefaultTimeout(90_000);

const HOUR_MS = 3_600_000;
const SEND = { to_address: "ann@example.com", template_id: "welcome" };

/** The machine's clock, set forward as the test says. */
let laterMs = 0;
const clock: Clock = {
  nowMs: () => Date.now() + laterMs,
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs, run),
};

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;
let front: Front;
let batches = 0;

const history: MailHistory = {
  mailCounts: (query) => new ClickHouseMailCounts(eventStore.reading, eventStore.target).mailCounts(query),
};

beforeAll(async () => {
  engine = await startEngine();
  front = await Front.start({
    mailHistory: history,
    questions: { ask: async () => ({ waitsFor: "plan_pace", forMs: 700 }) },
    clock,
  });
  await front.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook" });
});
afterAll(async () => {
  await front?.stop();
  await engine?.stop();
});
beforeEach(async () => {
  laterMs = 0;
  batches += 1;
  eventStore = await engine.eventStore(`governed_${batches}`);
  await front.registry.changeReputation("acme", () => UNGOVERNED);
  await front.database.db.delete(webhookNews);
  await front.database.db.delete(audit);
});

type Sums = Readonly<Partial<Record<"sent" | "bounced" | "complained", number>>>;

/** Records events of a tenant's e-mail at a time. */
async function record(sums: Sums, atMs = clock.nowMs(), tenantId = "acme"): Promise<void> {
  const types = Object.entries(sums).flatMap(([type, count]) => Array.from({ length: count }, () => type));
  const rows = types.map((type, n) =>
    storedEventRow(firstEventIdAt(atMs) + n, { tenantId, type: type as "sent" | "bounced" | "complained" }),
  );
  await eventStore.writer.write(`s1:${(batches += 1)}`, rows);
}

function governor(changes: Partial<ReputationGovernorPorts> = {}): ReputationGovernor {
  const telemetry = new QuietTelemetry();
  const { registry, webhookNews: store, audit } = front.stores;
  return new ReputationGovernor({
    registry,
    history,
    news: new NewsDesk({ store, changes: deadFeed, clock, telemetry }),
    audit: (tenantId, detail) => auditOwnAct(audit, { action: "governReputation", tenantId, target: null }, detail),
    rules: front.ports.reputationRules,
    clock,
    telemetry,
    ...changes,
  });
}

const inMode = (mode: ReputationRules["mode"]) => ({ rules: { ...front.ports.reputationRules, mode } });
const show = async () => (await front.operate("GET", "/tenants/acme/reputation")).body;
const releaseAcme = () => front.operate("POST", "/tenants/acme/reputation/release");
const updates = async () =>
  (await front.database.db.select().from(webhookNews).orderBy(webhookNews.id)).map(({ type, data }) => ({
    type,
    data: JSON.parse(data),
  }));
/** The acts about acme's reputation, oldest first, with the level that each led to. */
async function acts(): Promise<readonly (readonly [action: string, operator: string, level: unknown])[]> {
  const rows = await front.database.db.select().from(audit).where(eq(audit.tenantId, "acme")).orderBy(audit.id);
  return rows
    .filter(({ action }) => /reputation/i.test(action))
    .map(({ action, operator, detail }) => [action, operator, detail["level"] ?? null]);
}

test("a tenant is warned, slowed and held, and told each time; a release ends it, and what was before no longer counts", async () => {
  const rounds = governor();
  await record({ sent: 950, bounced: 50 });
  await rounds.round();
  expect(await show()).toMatchObject({
    level: "warned",
    governor: "on",
    own_governor: null,
    sent: 950,
    bounced: 50,
    complained: 0,
    bounces: { rate: 0.05, floor: 200, thresholds: { warned: 0.04, slowed: 0.06, held: 0.1 } },
    complaints: { rate: 0, floor: 1_000 },
    released_at: null,
  });
  expect((await front.send(SEND)).status).toBe(202);

  await record({ bounced: 30 });
  await rounds.round();
  expect(await show()).toMatchObject({ level: "slowed" });
  const queued = await front.send(SEND);
  expect(queued.status).toBe(202);
  const { body: why } = await front.request("GET", `/v1/jobs/${String(queued.body["job_id"])}/explain`);
  expect(why["waits_for"]).toBe("reputation");
  expect(why["detail"]).toContain("too much of it bounced or was reported as spam");

  await record({ bounced: 60 });
  await rounds.round();
  await rounds.round();
  expect(await show()).toMatchObject({ level: "held" });
  const refused = await front.send(SEND);
  expect([refused.status, refused.headers.get("x-error-code")]).toEqual([403, "sends_on_hold"]);
  expect(refused.body["error"]).toContain("docs/reputation.md");
  expect((await front.sendChat({ phone_number: "5491122334455", template_id: "welcome" })).status).not.toBe(403);

  expect((await releaseAcme()).body).toMatchObject({ level: "good", sent: 0, bounced: 0 });
  expect((await front.send(SEND)).status).toBe(202);
  await rounds.round();
  await rounds.round();
  expect(await show()).toMatchObject({ level: "good" });

  expect((await updates()).map(({ type, data }) => [type, data.former_level])).toEqual([
    ["reputation.warned", "good"],
    ["reputation.slowed", "warned"],
    ["reputation.held", "slowed"],
    ["reputation.released", "held"],
  ]);
  expect((await updates())[1]?.data).toEqual({
    channel: "email",
    level: "slowed",
    former_level: "warned",
    sent: 950,
    bounced: 80,
    complained: 0,
    bounce_rate: 80 / 1_030,
    complaint_rate: 0,
  });
  expect(await acts()).toEqual([
    ["governReputation", "waybill", "warned"],
    ["governReputation", "waybill", "slowed"],
    ["governReputation", "waybill", "held"],
    ["releaseReputation", "root", null],
  ]);

  // It is armed again: the same rates, after the release.
  await record({ sent: 100, bounced: 100 });
  await rounds.round();
  expect(await show()).toMatchObject({ level: "held", sent: 100, bounced: 100 });
});

test("a level falls after 24 hours of better rates, and the tenant is told", async () => {
  const rounds = governor();
  await record({ sent: 920, bounced: 80 });
  await rounds.round();
  laterMs = 25 * HOUR_MS + 1;
  await record({ sent: 950, bounced: 50 });
  await rounds.round();
  expect(await show()).toMatchObject({ level: "slowed", sent: 950, bounced: 50 });
  laterMs = 48 * HOUR_MS;
  await rounds.round();
  expect(await show()).toMatchObject({ level: "slowed" });
  laterMs = 51 * HOUR_MS;
  await rounds.round();
  expect(await show()).toMatchObject({ level: "good" });
  const [, last] = await updates();
  expect([last?.type, last?.data.former_level]).toEqual(["reputation.released", "slowed"]);
});

test("while the event store is away, no level changes, and operators learn of that", async () => {
  await record({ sent: 800, bounced: 200 });
  await governor().round();
  laterMs = 100 * HOUR_MS;
  const away: MailHistory = { mailCounts: () => Promise.reject(new UnavailableError("away")) };
  await governor({ history: away, ...inMode("warn") }).round();
  expect(await show()).toMatchObject({ level: "held" });
  expect(await updates()).toHaveLength(1);
});

test("a release that comes while the counts are read is not undone by them", async () => {
  await record({ sent: 800, bounced: 200 });
  await governor().round();
  const slow: MailHistory = {
    async mailCounts(query) {
      const counts = await history.mailCounts(query);
      await releaseAcme();
      return counts;
    },
  };
  await governor({ history: slow }).round();
  expect(await show()).toMatchObject({ level: "good", bounced: 0 });
});

test("several processes report a change once; what one could not report, another does", async () => {
  await record({ sent: 800, bounced: 200 });
  await Promise.all([governor().round(), governor().round(), governor().round()]);
  expect(await updates()).toHaveLength(1);
  expect(await acts()).toEqual([["governReputation", "waybill", "held"]]);

  await releaseAcme();
  await governor().round();
  await record({ sent: 900, bounced: 100 });
  const dying = { tell: () => Promise.reject(new UnavailableError("away")) };
  await governor({ news: dying }).round();
  await governor().round();
  // The first of them may still be at it.
  expect((await updates()).map(({ type }) => type)).toEqual(["reputation.held", "reputation.released"]);
  laterMs = 3 * 60_000;
  await governor().round();
  expect((await updates()).map(({ type }) => type).at(-1)).toBe("reputation.slowed");
});

test("by default a tenant is only warned; a mode of its own comes first, and one that is milder ends its level", async () => {
  await record({ sent: 800, bounced: 200 });
  await governor(inMode("warn")).round();
  expect(await show()).toMatchObject({ level: "warned" });
  const put = (body: unknown, id = "acme") => front.operate("PUT", `/tenants/${id}/reputation`, body);
  expect(await put({ governor: "on" })).toMatchObject({ status: 200, body: { own_governor: "on", governor: "on" } });
  await governor(inMode("off")).round();
  expect(await show()).toMatchObject({ level: "held" });
  await put({ governor: "off" });
  await governor().round();
  expect(await show()).toMatchObject({ level: "good", governor: "off" });
  expect((await put({ governor: null })).body).toMatchObject({ own_governor: null, governor: "on" });

  for (const body of [{}, { governor: "loud" }, { governor: "on", also: 1 }]) {
    const { status, body: said } = await put(body);
    expect([status, typeof said["error"]]).toEqual([400, "string"]);
  }
  expect((await put({ governor: "on" }, "nobody")).status).toBe(404);
  expect((await front.operate("GET", "/tenants/nobody/reputation")).status).toBe(404);
  expect((await front.operate("POST", "/tenants/nobody/reputation/release")).status).toBe(404);
});

test("counts are of e-mail alone, of each tenant, and since its release to the millisecond", async () => {
  const hourMs = Math.floor(clock.nowMs() / HOUR_MS) * HOUR_MS - 5 * HOUR_MS;
  const releasedAtMs = hourMs + HOUR_MS / 2;
  await record({ sent: 30, bounced: 3 }, hourMs, "acme");
  await record({ sent: 7, bounced: 2, complained: 1 }, releasedAtMs, "acme");
  await record({ sent: 10, complained: 1 }, hourMs + HOUR_MS, "acme");
  await record({ sent: 5, bounced: 1 }, hourMs, "globex");
  await record({ sent: 5 }, hourMs, "initech");
  await record({ sent: 5, bounced: 5 }, hourMs - HOUR_MS, "globex");
  const chat = { tenantId: "globex", channel: "whatsapp", type: "bounced" } as const;
  await eventStore.writer.write("s1:chat", [storedEventRow(firstEventIdAt(hourMs) + 99, chat)]);

  const fromMs = hourMs + 1;
  const of = async (releases: Record<string, number>, tenantId?: string) =>
    Object.fromEntries(
      await history.mailCounts({
        fromMs,
        releases: new Map(Object.entries(releases)),
        ...(tenantId !== undefined && { tenantId }),
      }),
    );
  const globex = { sent: 5, bounced: 1, complained: 0 };
  expect(await of({})).toEqual({ acme: { sent: 47, bounced: 5, complained: 2 }, globex });
  const since = { sent: 17, bounced: 2, complained: 2 };
  expect(await of({ acme: releasedAtMs })).toEqual({ acme: since, globex });
  expect(await of({ acme: releasedAtMs }, "acme")).toEqual({ acme: since });
  expect(await of({ acme: hourMs - HOUR_MS }, "acme")).toEqual({ acme: { sent: 47, bounced: 5, complained: 2 } });
  expect(await of({ acme: clock.nowMs() }, "acme")).toEqual({ acme: { sent: 0, bounced: 0, complained: 0 } });
  expect(await of({}, "initech")).toEqual({ initech: { sent: 5, bounced: 0, complained: 0 } });
});
