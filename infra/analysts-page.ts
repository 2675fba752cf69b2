import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ClickHouse, connectClickHouse } from "../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../src/events/clickhouse-event-writer.ts";
import { migrateEventStore } from "../src/events/schema/migrate-event-store.ts";
import { systemClock } from "../src/runtime/system-clock.ts";
import { startClickHouseChild } from "../src/storage/clickhouse/clickhouse-child.ts";
import { type ClickHouseHttp, serveClickHouseHttp } from "../src/storage/clickhouse/clickhouse-http.ts";
import { analystsData } from "./analysts-data.ts";

/*
 * `bun infra/analysts-page.ts` runs every query of docs/analysts.md as an analyst's tool would, on the data set beside this
 * file, and writes the result below it; a test keeps the two equal.
 */

const PASSWORD = "the password of the example";

/** The page, with the result below each query. */
export const ANALYSTS_PAGE = new URL("../docs/analysts.md", import.meta.url).pathname;

/** Matches a query of the page with the result printed below it. */
const QUERY = /```sql\n(?<sql>[^`]+)```\n\n```text\n(?<output>[^`]*)```/g;

export interface PageQuery {
  readonly sql: string;
  readonly output: string;
}

export function readQueries(page: string): readonly PageQuery[] {
  return [...page.matchAll(QUERY)].map(({ groups }) => ({
    sql: groups?.["sql"] ?? "",
    output: groups?.["output"] ?? "",
  }));
}

/** Opens an event store with the page's data set, and the analysts' interface to it. */
export async function openExampleEventStore() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-analysts-page-"));
  const target = { database: "waybill", cluster: null };
  const telemetry = { count() {}, gauge() {}, time() {}, log() {} };
  const child = await startClickHouseChild({ folder, analysed: target.database, telemetry, clock: systemClock });
  const clients = connectClickHouse(child.address);
  const clickhouse = new ClickHouse({ client: clients.writer, clock: systemClock, timeoutMs: 20_000 });
  await migrateEventStore(clickhouse, target);
  // The data set has fixed dates, while the current date moves on.
  await new ClickHouseEventWriter(clickhouse, target, systemClock).write("example", analystsData());
  const server = child.analysts ?? child.address;
  const { database } = target;
  const face = await serveClickHouseHttp({ server, database, port: 0, password: PASSWORD, telemetry });
  return {
    face,
    async close() {
      await face.stop();
      await clients.close();
      await child.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a query's result as a readable table. Throws with the engine's words if it fails. */
export async function runQuery({ url }: ClickHouseHttp, sql: string): Promise<string> {
  const members = new URLSearchParams({
    default_format: "PrettyCompactMonoBlock",
    output_format_pretty_row_numbers: "0",
    output_format_pretty_color: "0",
    output_format_pretty_highlight_digit_groups: "0",
    output_format_pretty_single_large_number_tip_threshold: "0",
  });
  const answer = await fetch(`${url}/?${members.toString()}`, {
    method: "POST",
    body: sql,
    headers: { "X-ClickHouse-Key": PASSWORD },
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${sql}\n${text}`);
  return text;
}

if (import.meta.main) {
  const example = await openExampleEventStore();
  let page = await Bun.file(ANALYSTS_PAGE).text();
  for (const { sql, output } of readQueries(page)) {
    const now = await runQuery(example.face, sql);
    page = page.replace(
      `\`\`\`sql\n${sql}\`\`\`\n\n\`\`\`text\n${output}\`\`\``,
      () => `\`\`\`sql\n${sql}\`\`\`\n\n\`\`\`text\n${now}\`\`\``,
    );
  }
  await Bun.write(ANALYSTS_PAGE, page);
  await example.close();
}
