import type { JSX } from "preact";
import type { Overview } from "../../../clients/typescript/generated.ts";
import { hrefTo } from "./route.ts";
import { Ago, Badge, Card, Table } from "./ui.tsx";
import { channelName, count, counted, duration } from "./words.ts";

type Processes = Overview["processes"];

function TenantLink({ id }: { readonly id: string }): JSX.Element {
  return <a href={hrefTo(["tenants", id])}>{id}</a>;
}

function age(seconds: number | null): string {
  return seconds === null || seconds === 0 ? "" : duration(seconds);
}

export function Breakers({ processes }: { readonly processes: Processes }): JSX.Element {
  const open = processes.flatMap(({ name, breakers }) => breakers.map((breaker) => ({ ...breaker, process: name })));
  return (
    <Card title="Relays and providers that are away">
      <Table
        caption="Open breakers"
        rows={open}
        keyOf={({ process, channel, relay }) => `${process} ${channel} ${relay}`}
        empty="All relays and providers answer."
        columns={[
          { head: "Relay", isHead: true, isLong: true, cell: ({ relay }) => relay },
          { head: "Channel", cell: ({ channel }) => channelName(channel) },
          {
            head: "State",
            cell: ({ state }) => <Badge tone={state === "open" ? "bad" : "warn"}>{state.replace("_", " ")}</Badge>,
          },
          { head: "Since", cell: ({ since }) => <Ago at={since} /> },
          { head: "Jobs held", isNumber: true, cell: ({ waiting_jobs }) => count(waiting_jobs) },
        ]}
      />
      <Paused processes={processes} />
    </Card>
  );
}

function Paused({ processes }: { readonly processes: Processes }): JSX.Element | null {
  const paused = new Map(processes.flatMap((process) => process.paused.map((each) => [toKey(each), each] as const)));
  if (paused.size === 0) return null;
  return (
    <p>
      Paused by an operator:{" "}
      {Array.from(paused, ([key, { tenant_id, channel }], at) => (
        <span key={key}>
          {at === 0 ? "" : ", "}
          <TenantLink id={tenant_id} /> ({channelName(channel)})
        </span>
      ))}
    </p>
  );
}

function toKey({ tenant_id, channel }: Processes[number]["paused"][number]): string {
  return `${tenant_id} ${channel}`;
}

export function ProcessTable({ processes }: { readonly processes: Processes }): JSX.Element {
  return (
    <Card title="Processes">
      <Table
        caption="Processes"
        rows={processes}
        keyOf={({ name }) => name}
        empty="No process has told of itself in the last seconds."
        columns={[
          { head: "Process", isHead: true, cell: ({ name }) => <code>{name}</code> },
          { head: "Roles", cell: ({ roles }) => roles.join(", ") },
          { head: "Started", cell: ({ started_at }) => <Ago at={started_at} /> },
          { head: "Shards", isNumber: true, cell: ({ shards }) => count(shards) },
          { head: "Loop delay", isNumber: true, cell: ({ loop_delay_ms: delay }) => `${Math.round(delay)} ms` },
          { head: "Event store lag", isNumber: true, cell: ({ event_store_lag_seconds: lag }) => age(lag) },
        ]}
      />
    </Card>
  );
}

export function Expirings({ expiring }: { readonly expiring: Overview["expiring"] }): JSX.Element {
  return (
    <Card title="Certificates and keys that expire">
      <Table
        caption="What expires soon"
        rows={expiring}
        keyOf={({ kind, tenant_id, name }) => `${kind} ${tenant_id} ${name}`}
        empty="Nothing expires within 30 days."
        columns={[
          { head: "What", isHead: true, isLong: true, cell: ({ name }) => name },
          { head: "Kind", cell: ({ kind }) => kind.replaceAll("_", " ") },
          { head: "Tenant", cell: ({ tenant_id: id }) => (id === null ? "the platform" : <TenantLink id={id} />) },
          { head: "Expires", cell: ({ expires_at }) => <Ago at={expires_at} /> },
        ]}
      />
    </Card>
  );
}

export function Shards({ shards }: { readonly shards: Overview["shards"] }): JSX.Element {
  return (
    <Card title="Shards">
      <details>
        <summary>{counted(shards.length, "shard")}</summary>
        <Table
          caption="Shards"
          rows={shards}
          keyOf={({ shard }) => String(shard)}
          empty="Not known at the moment."
          columns={[
            { head: "Shard", isHead: true, cell: ({ shard }) => shard },
            { head: "Jobs", isNumber: true, cell: ({ depth }) => count(depth) },
            { head: "Oldest", isNumber: true, cell: ({ oldest_seconds }) => age(oldest_seconds) },
            { head: "Process", cell: ({ process }) => process ?? <Badge tone="warn">nobody</Badge> },
          ]}
        />
      </details>
    </Card>
  );
}
