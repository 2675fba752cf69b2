import type { ComponentChildren, JSX } from "preact";
import { RateCharts } from "./chart.tsx";
import { useNow } from "./load.ts";
import {
  type Alarm,
  type Breaker,
  type Expiring,
  type Overview,
  type ProcessState,
  useOverview,
} from "./overview-data.ts";
import { hrefTo } from "./route.ts";
import { Ago, Badge, Card, Page, ProblemBox, Table, Time, Waiting } from "./ui.tsx";
import { bytes, channelName, count, counted, duration } from "./words.ts";

/** What an operator looks at first: what is wrong, then how much goes through, then where it waits. */
export function OverviewPage(): JSX.Element {
  const { overview, problem, isLive, reload } = useOverview();
  return (
    <Page title="Overview" actions={<Freshness overview={overview} isLive={isLive} />}>
      <ProblemBox problem={problem} retry={reload} />
      {overview === null ? problem === null ? <Waiting /> : null : <Shown overview={overview} />}
    </Page>
  );
}

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
      <Badge tone={isStale ? "bad" : isLive ? "good" : "quiet"}>
        {isStale ? "Out of date" : isLive ? "Live" : "Every 10 s"}
      </Badge>{" "}
      <span class="small">
        as of <Time at={overview.at} />
      </span>
    </p>
  );
}

function Shown({ overview }: { readonly overview: Overview }): JSX.Element {
  const { rates, processes, tenants, shards, expiring, alarms } = overview;
  return (
    <>
      <Alarms alarms={alarms} />
      <Numbers overview={overview} />
      <Card title="The last hour, by minute">{rates === null ? <Unknown /> : <RateCharts rates={rates} />}</Card>
      <div class="columns">
        <Card title="Where jobs wait">
          {tenants === null ? (
            <Unknown />
          ) : (
            <Table
              caption="Tenants with waiting jobs"
              rows={tenants}
              keyOf={({ tenant_id, channel }) => `${tenant_id} ${channel}`}
              empty="No job waits."
              columns={[
                { head: "Tenant", isHead: true, cell: ({ tenant_id }) => <TenantLink id={tenant_id} /> },
                { head: "Channel", cell: ({ channel }) => channelName(channel) },
                { head: "Jobs", isNumber: true, cell: ({ depth }) => count(depth) },
                { head: "Oldest", isNumber: true, cell: ({ oldest_seconds }) => age(oldest_seconds) },
              ]}
            />
          )}
        </Card>
        <Breakers processes={processes} />
      </div>
      <Processes processes={processes} />
      <div class="columns">
        <Expirings expiring={expiring} />
        <Card title="Shards">
          <details>
            <summary>{shards === null ? "Not known at the moment" : counted(shards.length, "shard")}</summary>
            {shards === null ? null : <Shards shards={shards} />}
          </details>
        </Card>
      </div>
    </>
  );
}

/** A part whose store is away. */
function Unknown(): JSX.Element {
  return <p class="empty">Not known at the moment: the store that knows it does not answer.</p>;
}

export function TenantLink({ id }: { readonly id: string }): JSX.Element {
  return <a href={hrefTo(["tenants", id])}>{id}</a>;
}

function age(seconds: number | null): string {
  return seconds === null ? "" : duration(seconds);
}

function Alarms({ alarms }: { readonly alarms: readonly Alarm[] }): JSX.Element {
  const sorted = alarms.toSorted((one, other) => Number(other.severity === "page") - Number(one.severity === "page"));
  return (
    <section aria-label="Alarms" aria-live="polite" class={alarms.length === 0 ? "alarms none" : "alarms"}>
      {alarms.length === 0 ? (
        <p>
          <Badge tone="good">No alarm</Badge>
        </p>
      ) : (
        <ul>
          {sorted.map(({ severity, title, detail, runbook }) => (
            <li key={`${title} ${detail}`} class={severity === "page" ? "page" : "ticket"}>
              <p class="alarm-title">
                <Badge tone={severity === "page" ? "bad" : "warn"}>
                  {severity === "page" ? "Act now" : "Look into it"}
                </Badge>{" "}
                <strong>{title}</strong>
              </p>
              <p>{detail}</p>
              {runbook === null ? null : (
                <p class="small">
                  What to do: <Runbook place={runbook} />
                </p>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Runbook({ place }: { readonly place: string }): JSX.Element {
  if (!/^https?:\/\//.test(place)) return <code>{place}</code>;
  return (
    <a href={place} rel="noreferrer" target="_blank">
      {place}
    </a>
  );
}

function Numbers({ overview: { totals, queue } }: { readonly overview: Overview }): JSX.Element {
  const { redis_memory_bytes: used = null, redis_memory_limit_bytes: limit = null } = queue ?? {};
  const { oldest_seconds: oldest = null, outbox_oldest_seconds: unstored = null } = queue ?? {};
  return (
    <section aria-label="Numbers" class="numbers">
      <Tile name="Accepted today" value={shown(totals?.accepted_today)} note="since 00:00 UTC" />
      <Tile name="Delivered today" value={shown(totals?.delivered_today)} />
      <Tile name="Failed today" value={shown(totals?.failed_today)} />
      <Tile
        name="Jobs in the queue"
        value={shown(queue?.depth)}
        note={oldest === null ? undefined : `the oldest waits ${duration(oldest)}`}
      />
      <Tile
        name="Events not stored yet"
        value={queue === null ? "?" : unstored === null ? "none" : duration(unstored)}
        note={unstored === null ? undefined : "age of the oldest"}
      />
      <Tile
        name="Memory of Redis"
        value={used === null ? "?" : bytes(used)}
        note={limit === null || limit === 0 ? undefined : `of ${bytes(limit)}`}
      />
      <Tile name="Tenants" value={shown(totals?.tenants)} />
    </section>
  );
}

function shown(value: number | null | undefined): string {
  return value === null || value === undefined ? "?" : count(value);
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

function Breakers({ processes }: { readonly processes: readonly ProcessState[] | null }): JSX.Element {
  const open = (processes ?? []).flatMap(({ name, breakers }) =>
    breakers.map((breaker) => ({ ...breaker, process: name })),
  );
  const paused = (processes ?? []).flatMap((process) => process.paused);
  const unique = [...new Map(paused.map((each) => [`${each.tenant_id} ${each.channel}`, each])).values()];
  return (
    <Card title="Relays and providers that are away">
      {processes === null ? (
        <Unknown />
      ) : (
        <Table
          caption="Open breakers"
          rows={open}
          keyOf={({ process, channel, relay }) => `${process} ${channel} ${relay}`}
          empty="All relays and providers answer."
          columns={[
            { head: "Relay", isHead: true, isLong: true, cell: ({ relay }) => relay },
            { head: "Channel", cell: ({ channel }) => channelName(channel) },
            { head: "State", cell: (breaker) => <BreakerState breaker={breaker} /> },
            { head: "Since", cell: ({ since }) => <Ago at={since} /> },
            { head: "Jobs held", isNumber: true, cell: ({ waiting_jobs }) => count(waiting_jobs) },
          ]}
        />
      )}
      {unique.length === 0 ? null : (
        <p>
          Paused by an operator:{" "}
          {unique.map(({ tenant_id, channel }, at) => (
            <span key={`${tenant_id} ${channel}`}>
              {at === 0 ? "" : ", "}
              <TenantLink id={tenant_id} /> ({channelName(channel)})
            </span>
          ))}
        </p>
      )}
    </Card>
  );
}

function BreakerState({ breaker: { state } }: { readonly breaker: Breaker }): JSX.Element {
  return (
    <Badge tone={state === "open" ? "bad" : state === "closed" ? "good" : "warn"}>{state.replaceAll("_", " ")}</Badge>
  );
}

function Processes({ processes }: { readonly processes: readonly ProcessState[] | null }): JSX.Element {
  return (
    <Card title="Processes">
      {processes === null ? (
        <Unknown />
      ) : (
        <Table
          caption="Processes"
          rows={processes}
          keyOf={({ name }) => name}
          empty="No process has told of itself in the last seconds."
          columns={[
            { head: "Process", isHead: true, cell: ({ name }) => <code>{name}</code> },
            { head: "Roles", cell: ({ roles }) => roles.join(", ") },
            { head: "Started", cell: ({ started_at }) => <Ago at={started_at} /> },
            { head: "Shards", isNumber: true, cell: ({ shards }) => count(shards.length) },
            {
              head: "Loop delay",
              isNumber: true,
              cell: ({ loop_delay_ms }) => (loop_delay_ms === null ? "" : `${Math.round(loop_delay_ms)} ms`),
            },
            { head: "Event store lag", isNumber: true, cell: (process) => age(process.event_store_lag_seconds) },
          ]}
        />
      )}
    </Card>
  );
}

function Expirings({ expiring }: { readonly expiring: readonly Expiring[] | null }): JSX.Element {
  return (
    <Card title="Certificates and keys that expire">
      {expiring === null ? (
        <Unknown />
      ) : (
        <Table
          caption="What expires soon"
          rows={expiring}
          keyOf={({ kind, tenant_id, name }) => `${kind} ${tenant_id} ${name}`}
          empty="Nothing expires soon."
          columns={[
            { head: "What", isHead: true, isLong: true, cell: ({ name }) => name },
            { head: "Kind", cell: ({ kind }) => kind.replaceAll("_", " ") },
            {
              head: "Tenant",
              cell: ({ tenant_id }) => (tenant_id === null ? "the platform" : <TenantLink id={tenant_id} />),
            },
            { head: "Expires", cell: ({ expires_at }) => <Ago at={expires_at} /> },
          ]}
        />
      )}
    </Card>
  );
}

function Shards({ shards }: { readonly shards: NonNullable<Overview["shards"]> }): JSX.Element {
  return (
    <Table
      caption="Shards"
      rows={shards}
      keyOf={({ shard }) => String(shard)}
      empty="There is none."
      columns={[
        { head: "Shard", isHead: true, cell: ({ shard }) => shard },
        { head: "Jobs", isNumber: true, cell: ({ depth }) => count(depth) },
        { head: "Oldest", isNumber: true, cell: ({ oldest_seconds }) => age(oldest_seconds) },
        { head: "Process", cell: ({ process }) => (process === null ? <Badge tone="warn">nobody</Badge> : process) },
      ]}
    />
  );
}
