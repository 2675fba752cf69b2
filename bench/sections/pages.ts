import { measurePages, type PageRow } from "../load/event-pages.ts";
import type { SectionOptions } from "./section.ts";

/** Events in the table that pages are read from; `PAGES_EVENTS` overrides it. */
const EVENTS_DEFAULT = 10_000_000;
/** PostgreSQL gets a copy up to this many: loading takes minutes, and 150 bytes per event. */
const POSTGRES_EVENTS_MAX = 20_000_000;

export async function pages({ rounds, smoke }: SectionOptions): Promise<unknown> {
  const events = smoke ? 100_000 : Number(process.env["PAGES_EVENTS"] ?? EVENTS_DEFAULT);
  const withPostgres = !smoke && events <= POSTGRES_EVENTS_MAX;
  const report = await measurePages({ events, rounds: smoke ? 1 : rounds * 8, withPostgres });
  const { pages, ...rest } = report;
  console.log(`\nEvent store: pages of 100 events out of ${report.events}, ms p50 / p99\n`);
  console.table(pages.map(buildRow));
  console.log(rest);
  return report;
}

function buildRow({ filter, depth, waybill, offset, postgres }: PageRow): Record<string, string> {
  const show = (latency: PageRow["offset"]) => (latency === null ? "" : `${latency.p50} / ${latency.p99}`);
  return { filter, depth, waybill: show(waybill), OFFSET: show(offset), PostgreSQL: show(postgres) };
}
