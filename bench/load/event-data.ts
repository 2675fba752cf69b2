import { EVENT_EPOCH_MS, EVENT_IDS_PER_MS } from "../../src/domain/jobs/event.ts";
import type { ClickHouse } from "../../src/events/clickhouse.ts";

const DAY_MS = 86_400_000;

/** A period of events: its start and its length. */
export interface Span {
  readonly startMs: number;
  readonly lengthMs: number;
}

/** A month of events, recent enough for no TTL to remove them. */
export const MONTH = createSpan(31);

/** The given number of days, ending with the last complete one. */
export function createSpan(days: number): Span {
  return { startMs: Math.floor(Date.now() / DAY_MS - days - 1) * DAY_MS, lengthMs: days * DAY_MS };
}

/** Weights fall as 1/k: the first of a thousand tenants has a tenth of the jobs, the last one 1 in 10,000. */
export const TENANTS = 1_000;

/** Measured for the recipe below; jobs are created until there are at least as many events as requested. */
const EVENTS_PER_JOB = 2.3;
const JOBS_PER_INSERT = 500_000;

/**
 * Fills `events` with a month of jobs, or another span, in order of time, the same in every run: 70 % e-mail, 28 %
 * chat, 2 % wallet; most are delivered, a quarter of the mail is opened, 0.7 % bounces, 0.02 % draws a complaint. The
 * engine itself generates the rows, which pass the materialized views like all others. Returns the number of rows.
 */
export async function fillEvents(
  clickhouse: ClickHouse,
  database: string,
  events: number,
  span = MONTH,
): Promise<number> {
  const jobs = Math.ceil(events / EVENTS_PER_JOB);
  for (let from = 0; from < jobs; from += JOBS_PER_INSERT) {
    const count = Math.min(JOBS_PER_INSERT, jobs - from);
    await clickhouse.command(
      `INSERT INTO ${database}.events (tenant_id, event_id, job_id, channel, event_type, result)
${buildEvents({ from, count, jobs }, span)}
SETTINGS async_insert = 0, max_insert_threads = 2`,
    );
  }
  const [[total] = []] = await clickhouse.rows(`SELECT count() FROM ${database}.events`);
  return Number(total);
}

/** `{n}` of 2^32 equally likely values, the same for the same job and purpose. */
const dice = (purpose: number) => `(cityHash64(number, ${purpose}) % 4294967296)`;
const chance = (purpose: number, share: number) => `${dice(purpose)} < ${Math.round(share * 4_294_967_296)}`;

function buildEvents(
  { from, count, jobs }: { readonly from: number; readonly count: number; readonly jobs: number },
  { startMs, lengthMs }: Span,
): string {
  const step = (type: string, afterMs: string, condition = "1") => `if(${condition}, [('${type}', ${afterMs})], [])`;
  const after = (purpose: number, maxMs: number) => `toUInt64(${dice(purpose)} % ${maxMs})`;
  const email = `arrayConcat(${[
    step("sent", "toUInt64(0)"),
    step("delivered", after(11, 5_000), chance(3, 0.97)),
    step("bounced", after(12, 5_000), `NOT ${chance(3, 0.97)} AND ${chance(4, 0.25)}`),
    step("failed", after(13, 60_000), `NOT ${chance(3, 0.97)} AND NOT ${chance(4, 0.25)} AND ${chance(5, 0.2)}`),
    step("opened", after(14, 7_200_000), `${chance(3, 0.97)} AND ${chance(6, 0.25)}`),
    step("clicked", after(15, 7_200_000), `${chance(3, 0.97)} AND ${chance(7, 0.04)}`),
    step("complained", after(16, 7_200_000), `${chance(3, 0.97)} AND ${chance(8, 0.0002)}`),
  ].join(", ")})`;
  const chat = `arrayConcat(${[
    step("sent", "toUInt64(0)"),
    step("delivered", after(11, 5_000), chance(3, 0.96)),
    step("read", after(14, 3_600_000), `${chance(3, 0.96)} AND ${chance(6, 0.6)}`),
    step("failed", after(13, 60_000), `NOT ${chance(3, 0.96)}`),
  ].join(", ")})`;
  return `SELECT concat('t', toString(tenant)) AS tenant_id,
  toUInt64(job_ms + step.2 - ${EVENT_EPOCH_MS}) * ${EVENT_IDS_PER_MS} + cityHash64(number, step.1) % ${EVENT_IDS_PER_MS} AS event_id,
  job_id, channel, step.1 AS event_type,
  if(event_type = 'bounced', '{"code":550,"enhanced_code":"5.1.1","diagnostic":"no such user"}', '{}') AS result
FROM (
  SELECT number, job_ms, job_id, tenant, channel, arrayJoin(steps) AS step FROM (
    SELECT number,
      toUInt64(${startMs} + intDiv(number * ${lengthMs}, ${jobs})) AS job_ms,
      dateTimeToUUIDv7(toDateTime(intDiv(job_ms, 1000), 'UTC')) AS job_id,
      toUInt32(floor(pow(${TENANTS}, ${dice(1)} / 4294967296))) AS tenant,
      multiIf(${chance(2, 0.7)}, 'email', ${chance(2, 0.98)}, 'whatsapp', 'wallet') AS channel,
      multiIf(channel = 'email', ${email}, channel = 'whatsapp', ${chat}, [('sent', toUInt64(0))]) AS steps
    FROM numbers(${from}, ${count})
  )
)`;
}
