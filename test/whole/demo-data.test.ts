import { expect, test } from "bun:test";
import { join } from "node:path";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { DEMO_TENANTS, demoHistory } from "../../src/events/demo-history.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { runCommand } from "../support/command.ts";
import { expectBalance } from "../support/event-store-checker.ts";
import { eventually } from "../support/eventually.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { DAY_MS, formatDay, recently } from "../support/recent-days.ts";
import { useWaybill } from "../support/use-waybill.ts";
import { finalJob, type Waybill } from "../support/waybill.ts";

/** A week ago: states of jobs that ended before the retention period would not stay. */
const UNTIL = formatDay(Date.now() - 7 * DAY_MS);
/** Few: writes cost the event store more per day than per row. */
const OPTIONS = { seed: 7, perDay: 20, untilMs: Date.parse(`${UNTIL}T00:00:00Z`), days: 30 };

let waybill: Waybill;

useWaybill((started) => {
  waybill = started;
});

const run = (...args: readonly string[]) =>
  runCommand(["demo-data", "--per-day", String(OPTIONS.perDay), "--until", UNTIL, ...args], {
    WAYBILL_HOME: waybill.home,
  });

test("the same seed makes the same history, with weekends, a bad day and many bounces on one", () => {
  const options = { ...OPTIONS, perDay: 120, untilMs: Date.UTC(2026, 10, 1) };
  const rows = demoHistory(options);
  expect(demoHistory(options)).toEqual(rows);
  expect(demoHistory({ ...options, seed: 8 })).not.toEqual(rows);
  const ids = new Set(rows.map(({ tenantId, eventId }) => `${tenantId} ${eventId}`));
  expect(ids.size).toBe(rows.length);
  const bounces = rows.filter(({ type }) => type === "bounced");
  expect(bounces.filter(({ tenantId }) => tenantId === "demo-ledger").length).toBeGreaterThan(bounces.length / 2);
  expect(new Set(rows.map(({ type }) => type)).size).toBe(9);
});

test("a history that is past what is kept is refused", async () => {
  const args = ["demo-data", "--until", formatDay(Date.now() - 62 * DAY_MS)];
  const { code, errors } = await runCommand(args, { WAYBILL_HOME: waybill.home, EVENTS_KEPT_MONTHS: "2" });
  expect({ code, errors }).toEqual({ code: 2, errors: expect.stringContaining("of the last 2 months") });
});

test("it is written beside a running server, once however often, and all sums fit", async () => {
  const rows = demoHistory(OPTIONS);
  const first = await run("--seed", "7");
  expect(first).toMatchObject({ code: 0, errors: "" });
  expect((await run("--seed", "7")).code).toBe(0);
  expect(await run("--seed", "8")).toMatchObject({ code: 1, errors: expect.stringContaining("another demonstration") });
  expect((await waybill.operator("GET", "/tenants/demo-clinic")).body.name).toBe("Northside Clinic (demonstration)");

  const { body } = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", {
    to_address: "ann@example.com",
    subject: "Hello",
    html: "<p>Hello there</p>",
  });
  await finalJob(waybill, waybill.demoKey, body.job_id);
  await eventually("the event store has it", async () => {
    const page = await waybill.request(waybill.demoKey, "GET", `/v1/events?${recently()}`);
    return page.body.events.length > 0;
  });
  await waybill.stop();
  expect(await run("--seed", "7")).toMatchObject({ code: 1, errors: expect.stringContaining("real events") });
  expect((await run("--seed", "7", "--force")).code).toBe(0);
  const { reader, close } = await openClickHouse(join(waybill.home, "clickhouse"));
  const clickhouse = new ClickHouse({ client: reader, clock: systemClock, timeoutMs: 20_000 });
  await expectBalance(clickhouse, "waybill");
  const counts = await clickhouse.rows(
    "SELECT tenant_id, count() FROM waybill.events WHERE startsWith(tenant_id, 'demo-') GROUP BY 1 ORDER BY 1",
  );
  await close();
  const ids = DEMO_TENANTS.map(({ id }) => id).toSorted((a, b) => (a < b ? -1 : 1));
  const wanted = ids.map((id) => [id, rows.filter(({ tenantId }) => tenantId === id).length]);
  expect(counts.map(([id, count]) => [id, Number(count)])).toEqual(wanted);
}, 300_000);
