import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FailureGroup } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import type { JobSearch } from "./job-search.ts";
import { causeName } from "./job-words.ts";
import { useLoad } from "./load.ts";
import { keyOfRange, RangeBar, rangeWords, timesIn } from "./range.tsx";
import { RetryManyDialog } from "./retry-many.tsx";
import { goTo, hrefTo } from "./route.ts";
import { ChangeButton } from "./session.tsx";
import { Ago, Badge, Card, type Column, Page, Show, Table } from "./ui.tsx";
import { channelName, count, counted, percent } from "./words.ts";

/** Failures grouped by cause, with one click to all messages of a group. */
export function FailuresPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const loaded = useLoad(
    (signal) => call("listFailures", { query: timesIn(query, "24h") }, { signal }),
    keyOfRange(query),
  );
  const [retried, setRetried] = useState<FailureGroup | null>(null);
  return (
    <Page
      title="Failures"
      intro={`Messages accepted in ${rangeWords(query, "24h")} that failed, or bounced after they were sent, by cause.`}
      actions={
        <button type="button" onClick={loaded.reload} disabled={loaded.isLoading}>
          Look again
        </button>
      }
    >
      <RangeBar own="24h" />
      <Show loaded={loaded}>{({ groups }) => <Groups groups={groups} query={query} onRetry={setRetried} />}</Show>
      {retried === null ? null : (
        <RetryManyDialog search={searchFor(retried, query)} onClose={() => setRetried(null)} onDone={loaded.reload} />
      )}
    </Page>
  );
}

function searchFor({ tenant_id: tenant, channel, failure_class }: FailureGroup, query: URLSearchParams): JobSearch {
  const { from = "", to = "" } = timesIn(query, "24h");
  return { tenant, who: "", status: "failed", channel, template: "", failureClass: failure_class, from, to };
}

interface Causes {
  readonly tenant: string;
  readonly cause: string;
  /** Messages, by cause. */
  readonly sums: ReadonlyMap<string, number>;
}

function CauseField({ tenant, cause, sums }: Causes): JSX.Element {
  return (
    <div class="field">
      <label for="cause">Cause</label>
      <select id="cause" onChange={({ currentTarget }) => goTo(["failures"], { tenant, cause: currentTarget.value })}>
        <option value="" selected={cause === ""}>
          any
        </option>
        {Array.from(sums, ([each, jobs]) => (
          <option key={each} value={each} selected={each === cause}>
            {causeName(each)}: {counted(jobs, "message")}
          </option>
        ))}
      </select>
    </div>
  );
}

function Groups({
  groups,
  query,
  onRetry,
}: {
  readonly groups: readonly FailureGroup[];
  readonly query: URLSearchParams;
  onRetry(group: FailureGroup): void;
}): JSX.Element {
  const [cause, tenant] = [query.get("cause") ?? "", query.get("tenant") ?? ""];
  const ofTenant = groups.filter(({ tenant_id: id }) => tenant === "" || id === tenant);
  const shown = ofTenant.filter(({ failure_class: each }) => cause === "" || each === cause);
  const sums = new Map<string, number>();
  for (const { failure_class: each, jobs } of ofTenant) sums.set(each, (sums.get(each) ?? 0) + jobs);
  const actions: Column<FailureGroup> = {
    head: "Messages",
    cell: (group) => <GroupActions group={group} onRetry={onRetry} />,
  };
  return (
    <Card title={tenant === "" ? "By cause" : `By cause, of ${tenant}`}>
      <div class="search">
        <CauseField tenant={tenant} cause={cause} sums={sums} />
        {tenant === "" ? null : <a href={hrefTo(["failures"], { cause })}>All tenants</a>}
      </div>
      <Table
        caption="Failures by cause"
        rows={shown}
        keyOf={({ tenant_id, channel, type, failure_class }) => `${tenant_id} ${channel} ${type} ${failure_class}`}
        empty="Nothing failed in this time. A longer range may show more."
        columns={[...COLUMNS, actions]}
      />
    </Card>
  );
}

function GroupActions({
  group,
  onRetry,
}: {
  readonly group: FailureGroup;
  onRetry(group: FailureGroup): void;
}): JSX.Element {
  const { tenant_id: tenant, jobs, type } = group;
  const cause = causeName(group.failure_class);
  return (
    <span class="actions">
      <a href={hrefToGroup(group)}>
        Show {jobs === 1 ? "it" : `all ${count(jobs)}`}
        <span class="unseen">
          {" "}
          of {tenant}, {cause}
        </span>
      </a>
      {type === "failed" ? (
        <ChangeButton label={`Send again… ${tenant}, ${cause}`} onClick={() => onRetry(group)}>
          Send again…
        </ChangeButton>
      ) : null}
    </span>
  );
}

function hrefToGroup({ tenant_id: tenant, channel, type, failure_class: cause }: FailureGroup): string {
  const status = type === "failed" ? "failed" : "success";
  // Links carry a range that is chosen; the one of this page is not.
  const isOwn = !/[?&](?:range|from|to)=/.test(location.hash);
  return hrefTo(["messages"], { tenant, channel, status, cause, ...(isOwn && { range: "24h" }) });
}

const COLUMNS: readonly Column<FailureGroup>[] = [
  {
    head: "Cause",
    isHead: true,
    cell: ({ failure_class: cause, type }) => (
      <>
        {causeName(cause)} <Badge tone={type === "failed" ? "bad" : "warn"}>{type}</Badge>
      </>
    ),
  },
  { head: "Tenant", cell: ({ tenant_id: id }) => <a href={hrefTo(["tenants", id])}>{id}</a> },
  { head: "Channel", cell: ({ channel }) => channelName(channel) },
  {
    head: "Share",
    isNumber: true,
    cell: ({ jobs, sent, type }) => percent(jobs, type === "failed" ? jobs + sent : sent),
  },
  { head: "Last", cell: ({ last_at: at }) => <Ago at={at} /> },
  { head: "What was said", isLong: true, cell: ({ example }) => example },
];
