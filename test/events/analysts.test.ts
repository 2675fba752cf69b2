import { afterAll, beforeAll, expect, test } from "bun:test";
import { ANALYSTS_PAGE, openExampleEventStore, readQueries, runQuery } from "../../infra/analysts-page.ts";

let example: Awaited<ReturnType<typeof openExampleEventStore>>;

beforeAll(async () => {
  example = await openExampleEventStore();
}, 90_000);
afterAll(() => example.close());

test("every query of the analysts' page returns what the page says, for an analyst", async () => {
  const queries = readQueries(await Bun.file(ANALYSTS_PAGE).text());
  expect(queries.length).toBeGreaterThanOrEqual(12);
  // `bun infra/analysts-page.ts` regenerates the outputs.
  for (const { sql, output } of queries)
    expect({ sql, output: await runQuery(example.face, sql) }).toEqual({ sql, output });
}, 90_000);

test("the analysts' page names every table, view and column that analysts find", async () => {
  const page = await Bun.file(ANALYSTS_PAGE).text();
  const found = await runQuery(
    example.face,
    `SELECT arrayJoin([table, name]) AS word FROM system.columns
     WHERE database = 'waybill' AND table NOT LIKE '%\\_mv' AND table NOT IN ('migrations', 'identity', 'belongs_to') GROUP BY word FORMAT TSV`,
  );
  const missing = found.split("\n").filter((word) => word !== "" && !page.includes(`\`${word}\``));
  expect(missing).toEqual([]);
}, 90_000);

test("analysts do not read what failed jobs were to send", async () => {
  const table = "waybill_sealed.failed_payloads";
  const tries = [
    `SELECT * FROM ${table}`,
    `SELECT body FROM \`waybill_sealed\`.\`failed_payloads\` LIMIT 1`,
    `SELECT count() FROM waybill.jobs WHERE tenant_id IN (SELECT tenant_id FROM ${table})`,
    `WITH x AS (SELECT body FROM ${table}) SELECT * FROM x`,
    "SELECT * FROM merge('waybill_sealed', '.*')",
    `DESCRIBE TABLE ${table}`,
  ];
  for (const sql of tries) {
    const answer = await runQuery(example.face, sql).catch((error: unknown) => String(error));
    expect([sql, answer]).toEqual([
      sql,
      expect.stringMatching(/ACCESS_DENIED|may not|not allowed|cannot|privileges|Only/i),
    ]);
  }
}, 90_000);
