import type { JSX } from "preact";
import type { FailureGroup, Overview } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { useLoad } from "./load.ts";
import { keyOfRange, rangeWords, timesIn } from "./range.tsx";
import { hrefTo } from "./route.ts";
import { Badge, Card, type Column, Table } from "./ui.tsx";
import { channelName, count, duration, percent } from "./words.ts";

type Waiting = Overview["tenants"][number];

const SHOWN_MAX = 25;
/** As the alarms have it. */
const LATE_SECONDS = 900;

const WAITS: Readonly<Record<Waiting["waits"], string>> = {
  turn: "for its turn",
  paused: "paused by an operator",
  warm_up: "its domain warms up",
  pace: "for its own pace",
  away: "its relay is away",
};

/** A tenant on a channel, with what waits and what failed. */
interface Row {
  readonly tenant: string;
  readonly channel: string;
  readonly depth: number;
  readonly oldestSeconds: number;
  /** Null: no job waits. */
  readonly waits: Waiting["waits"] | null;
  readonly failed: number;
  readonly tried: number;
}

/** Tenants whose messages wait or fail, the worst first. */
export function Trouble({
  waiting,
  query,
}: {
  readonly waiting: readonly Waiting[];
  readonly query: URLSearchParams;
}): JSX.Element {
  const { data } = useLoad(
    (signal) => call("listFailures", { query: timesIn(query, "1h") }, { signal }),
    keyOfRange(query),
  );
  const rows = toRows(waiting, data?.groups ?? []);
  return (
    <Card title={`Tenants by trouble: now, and failures of ${rangeWords(query, "1h")}`}>
      <Table
        caption="Tenants by trouble"
        rows={rows.slice(0, SHOWN_MAX)}
        keyOf={({ tenant, channel }) => `${tenant} ${channel}`}
        empty="No job waits, and none failed."
        columns={COLUMNS}
      />
    </Card>
  );
}

function toRows(waiting: readonly Waiting[], groups: readonly FailureGroup[]): readonly Row[] {
  const rows = new Map<string, Row>();
  const none = { depth: 0, oldestSeconds: 0, waits: null, failed: 0, tried: 0 } as const;
  for (const { tenant_id: tenant, channel, depth, oldest_seconds: oldestSeconds, waits } of waiting) {
    rows.set(`${tenant} ${channel}`, { ...none, tenant, channel, depth, oldestSeconds, waits });
  }
  for (const { tenant_id: tenant, channel, jobs, sent, failure_class: cause, type } of groups) {
    // A purge is an operator's own act, and no trouble.
    if (cause === "purged") continue;
    const key = `${tenant} ${channel}`;
    const row = rows.get(key) ?? { ...none, tenant, channel };
    const failed = row.failed + jobs;
    const tried = Math.max(row.tried, sent) + (type === "failed" ? jobs : 0);
    rows.set(key, { ...row, failed, tried });
  }
  return [...rows.values()].toSorted((one, other) => weigh(other) - weigh(one));
}

/** Messages that are late count most, then the share of failures; what was paused on purpose counts little. */
function weigh({ waits, oldestSeconds, failed, tried }: Row): number {
  const isMeant = waits === "paused" || waits === "warm_up" || waits === "pace";
  const late = isMeant ? 0 : Math.min(oldestSeconds / LATE_SECONDS, 4);
  const failing = tried === 0 ? 0 : (failed / tried) * Math.min(1, failed / 20);
  return late + 2 * failing + Math.min(oldestSeconds, 1e6) / 1e9;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: "Tenant", isHead: true, cell: ({ tenant }) => <a href={hrefTo(["tenants", tenant])}>{tenant}</a> },
  { head: "Channel", cell: ({ channel }) => channelName(channel) },
  {
    head: "Waiting",
    isNumber: true,
    cell: ({ depth, tenant, channel }) =>
      depth === 0 ? "" : <a href={hrefTo(["messages"], { tenant, channel, status: "pending" })}>{count(depth)}</a>,
  },
  {
    head: "Oldest",
    isNumber: true,
    cell: ({ oldestSeconds }) => (oldestSeconds === 0 ? "" : duration(oldestSeconds)),
  },
  {
    head: "Why",
    cell: ({ waits, oldestSeconds }) =>
      waits === null ? null : (
        <Badge tone={waits === "away" ? "bad" : waits !== "turn" || oldestSeconds > LATE_SECONDS ? "warn" : "quiet"}>
          {WAITS[waits]}
        </Badge>
      ),
  },
  {
    head: "Failed",
    isNumber: true,
    cell: ({ failed, tried, tenant }) =>
      failed === 0 ? (
        ""
      ) : (
        <a href={hrefTo(["failures"], { tenant })}>
          {count(failed)}
          {tried === 0 ? "" : ` (${percent(failed, tried)})`}
        </a>
      ),
  },
];
