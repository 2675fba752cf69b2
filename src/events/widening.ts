import { assert } from "../domain/errors.ts";
import type { ChannelName } from "../domain/job.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { views } from "./rollups.ts";
import { eventsView } from "./schema.ts";
import { type EventStoreTarget, localName, onCluster } from "./table.ts";

const TABLES = ["events", "jobs", "events_by_type", "events_hourly", "events_daily"] as const;
/** Those whose columns are kept with them; a view with parameters finds its columns when it is asked. */
const VIEWS = ["events_v", "jobs_v", "delivery_funnel"] as const;

/**
 * What adds the channels that a column does not know yet; nothing where all columns know them. A name's number is stored:
 * names keep theirs, also of channels that are gone, and new ones get the next. It changes no row.
 */
export async function wideningTo(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { channels, settings }: { readonly channels: readonly ChannelName[]; readonly settings: string },
): Promise<readonly string[]> {
  const { database, cluster } = target;
  const rows = await clickhouse.rows(
    `SELECT table, type FROM system.columns WHERE database = '${database}' AND name = 'channel' SETTINGS ${settings}`,
  );
  const known = new Map(rows.map(([name, type]) => [String(name), wordsOf(String(type))]));
  const missingIn = (name: string) => {
    const words = known.get(name);
    return words === undefined ? [] : channels.filter((channel) => !words.has(channel));
  };
  const tables = TABLES.flatMap((name) => [...new Set([localName(target, name), name])]);
  const alters = tables.flatMap((name) => {
    const missing = missingIn(name);
    if (missing.length === 0) return [];
    const type = enumWith(known.get(name) ?? new Map(), missing);
    return [`ALTER TABLE ${database}.${name}${onCluster(cluster)} MODIFY COLUMN channel ${type}`];
  });
  // After the tables: a view keeps the types that its columns had when it was made.
  const isViewOld = VIEWS.some((name) => missingIn(name).length > 0);
  return [...alters, ...(isViewOld ? [eventsView(target, "anew"), ...views(target, "anew")] : [])];
}

function enumWith(words: ReadonlyMap<string, number>, more: readonly ChannelName[]): string {
  const last = Math.max(0, ...words.values());
  const all = [...words, ...more.map((channel, i) => [checkedName(channel), last + i + 1] as const)];
  return `Enum8(${all.map(([word, number]) => `'${word}' = ${number}`).join(", ")})`;
}

/** By name, the number that is stored. */
function wordsOf(type: string): ReadonlyMap<string, number> {
  return new Map(Array.from(type.matchAll(/'(\w+)' = (\d+)/g), ([, word = "", number]) => [word, Number(number)]));
}

/** Throws where it is not plain: names become part of statements. */
function checkedName(channel: ChannelName): string {
  assert(/^[a-z][a-z0-9_]{0,31}$/.test(channel), "a channel's name is a plain word");
  return channel;
}
