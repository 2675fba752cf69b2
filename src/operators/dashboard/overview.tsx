import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Overview } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { RateCharts } from "./chart.tsx";
import { useLoad, useNow } from "./load.ts";
import { useOverview } from "./overview-data.ts";
import { Breakers, Expirings, ProcessTable, Shards } from "./overview-tables.tsx";
import { chosenIn, keyOfRange, RangeBar, rangeWords, timesIn } from "./range.tsx";
import { Trouble } from "./trouble.tsx";
import { Badge, Card, Page, ProblemBox, Show, Time, Waiting } from "./ui.tsx";
import { bytes, count, counted, duration } from "./words.ts";

/** The first page that operators see: alarms, then throughput, then backlogs. */
export function OverviewPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const { overview, problem, isLive, reload } = useOverview();
  return (
    <Page title="Overview" actions={<Freshness overview={overview} isLive={isLive} />}>
      <ProblemBox problem={problem} retry={reload} />
      {overview === null ? problem === null ? <Waiting /> : null : <Shown overview={overview} query={query} />}
    </Page>
  );
}

type Alarm = Overview["alarms"][number];

const STALE_MS = 30_000;

function Freshness({
  overview,
  isLive,
}: {
  readonly overview: Overview | null;
  readonly isLive: boolean;
}): JSX.Element | null {
  const now = useNow(1_000);
  if (overview === null) return null;
  const isStale = now - Date.parse(overview.at) > STALE_MS;
  return (
    <p class="freshness">
      <Badge tone={isLive ? "good" : isStale ? "bad" : "quiet"}>
        {isLive ? "Live" : isStale ? "Out of date" : "Every 10 s"}
      </Badge>{" "}
      <span class="small">
        {isLive ? "last change" : "as of"} <Time at={overview.at} />
      </span>
    </p>
  );
}

function Shown({ overview, query }: { readonly overview: Overview; readonly query: URLSearchParams }): JSX.Element {
  const { processes, tenants, shards, expiring, alarms } = overview;
  return (
    <>
      <Alarms alarms={alarms} />
      <Numbers overview={overview} />
      <RangeBar own="1h" />
      <Rates overview={overview} query={query} />
      <Trouble waiting={tenants} query={query} />
      <Breakers processes={processes} />
      <ProcessTable processes={processes} />
      <div class="columns">
        <Expirings expiring={expiring} />
        <Shards shards={shards} />
      </div>
    </>
  );
}

const RATES_MS = 60_000;

function Rates({ overview, query }: { readonly overview: Overview; readonly query: URLSearchParams }): JSX.Element {
  const chosen = chosenIn(query);
  if (chosen !== "own" && chosen !== "1h") return <PastRates query={query} />;
  const drawn = overview.alarms.flatMap(({ channel, minutes, title }) =>
    channel === undefined || minutes === undefined ? [] : [{ channel, minutes, title }],
  );
  return (
    <Card title="The last hour, by minute">
      <RateCharts rates={overview.rates} alarms={drawn} />
    </Card>
  );
}

/** Rates that are no longer in the overview, read from the event store each minute. */
function PastRates({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const loaded = useLoad((signal) => call("getRates", { query: timesIn(query, "1h") }, { signal }), keyOfRange(query));
  useEffect(() => {
    const timer = setInterval(() => document.hidden || loaded.reload(), RATES_MS);
    return () => clearInterval(timer);
  }, [loaded.reload]);
  return (
    <Card title={`Rates: ${rangeWords(query, "1h")}`}>
      <Show loaded={loaded}>{(rates) => <RateCharts rates={rates} />}</Show>
    </Card>
  );
}

function Alarms({ alarms }: { readonly alarms: readonly Alarm[] }): JSX.Element {
  return (
    <section aria-label="Alarms" class="alarms">
      {/* Read aloud when an alarm comes or goes, and not when its details change. */}
      <p class="unseen" role="status">
        {alarms.length === 0 ? "No alarm" : `Alarms: ${alarms.map(({ title }) => title).join(", ")}`}
      </p>
      {alarms.length === 0 ? (
        <p>
          <Badge tone="good">No alarm</Badge>
        </p>
      ) : (
        <ul>
          {alarms.map(({ severity, title, detail, runbook }) => (
            <li key={`${title} ${detail}`} class={severity === "page" ? "page" : "ticket"}>
              <p class="alarm-title">
                <Badge tone={severity === "page" ? "bad" : "warn"}>
                  {severity === "page" ? "Act now" : "Look into it"}
                </Badge>{" "}
                <strong>{title}</strong>
              </p>
              <p>{detail}</p>
              <p class="small">
                What to do: <code>{runbook}</code>
              </p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Numbers({ overview: { totals, queue } }: { readonly overview: Overview }): JSX.Element {
  const { depth, incomplete, oldest_seconds: oldest, outbox_oldest_seconds: unstored } = queue;
  const { redis_memory_bytes: used, redis_memory_limit_bytes: limit } = queue;
  return (
    <section aria-label="Numbers" class="numbers">
      <Tile name="Accepted today" value={shown(totals.accepted_today)} note="since 00:00 UTC" />
      <Tile name="Sent today" value={shown(totals.sent_today)} note="to providers" />
      <Tile name="Delivered today" value={shown(totals.delivered_today)} note="as they report" />
      <Tile name="Failed today" value={shown(totals.failed_today)} note={bounced(totals.bounced_today)} />
      <Tile
        name="Jobs in the queue"
        value={incomplete ? `${shown(depth)}+` : shown(depth)}
        note={oldest === null || oldest === 0 ? undefined : `the oldest waits ${duration(oldest)}`}
      />
      <Tile
        name="History lag"
        value={unstored === null ? "?" : unstored === 0 ? "none" : duration(unstored)}
        note="until an event is stored"
      />
      <Tile
        name="Memory of Redis"
        value={used === null ? "?" : bytes(used)}
        note={limit === null ? undefined : `of ${bytes(limit)}`}
      />
      <Tile name="Tenants" value={shown(totals.tenants)} />
    </section>
  );
}

/** A number is unknown if its store does not answer. */
function shown(value: number | null): string {
  return value === null ? "?" : count(value);
}

function bounced(value: number | null): string | undefined {
  return value === null ? undefined : `and ${counted(value, "bounce")}`;
}

function Tile({
  name,
  value,
  note,
}: {
  readonly name: string;
  readonly value: string;
  readonly note?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="tile">
      <p class="tile-name">{name}</p>
      <p class="tile-value">{value}</p>
      {note === undefined ? null : <p class="small">{note}</p>}
    </div>
  );
}
