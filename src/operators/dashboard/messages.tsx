import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { OperatorJob } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { type Choice, Form } from "./dialog.tsx";
import type { JobSearch } from "./job-search.ts";
import { CAUSE_CHOICES, knownCause, STATUSES, shortOutcome } from "./job-words.ts";
import { useLoadPages } from "./load.ts";
import { RangeBar, timesIn } from "./range.tsx";
import { RetryManyDialog } from "./retry-many.tsx";
import { goTo, hrefTo } from "./route.ts";
import { useMayChange } from "./session.tsx";
import { Ago, Badge, type Column, More, Page, ProblemBox, Table, Time } from "./ui.tsx";
import { CHANNEL_CHOICES, CHANNELS, type Channel, channelName, count } from "./words.ts";

const JOB_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TENANTS_OFFERED = 20;
const PAGE = 50;

function parseSearch(query: URLSearchParams): JobSearch {
  const of = (name: string) => query.get(name) ?? "";
  const { from = "", to = "" } = timesIn(query, null);
  return {
    tenant: of("tenant"),
    who: of("who"),
    status: of("status"),
    channel: of("channel"),
    template: of("template"),
    failureClass: of("cause"),
    from,
    to,
  };
}

/** The page where an operator searches for messages. */
export function MessagesPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const key = query.toString();
  // A range that ends now is taken once, so that further pages are of the same one.
  const search = useMemo(() => parseSearch(query), [key]);
  return (
    <Page title="Messages" intro="Find a message by its recipient or job id, of one tenant or of all.">
      <RangeBar own={null} />
      <SearchForm key={key} search={search} />
      <Found key={`found ${key}`} search={search} />
    </Page>
  );
}

function Found({ search }: { readonly search: JobSearch }): JSX.Element {
  const { tenant, who } = search;
  if (tenant !== "") return <OfTenant search={search} />;
  if (who !== "") return <OfAll search={search} />;
  return (
    <p class="empty">
      Say whom the message was for, or choose a tenant. <kbd>/</kbd> searches from every page.
    </p>
  );
}

const ANY: Choice = { value: "", label: "any" };

function SearchForm({ search }: { readonly search: JobSearch }): JSX.Element {
  return (
    <div class="search">
      <Form
        label="Search"
        fields={[
          { kind: "text", name: "who", label: "Recipient or job id", value: search.who },
          { kind: "suggested", name: "tenant", label: "Tenant", value: search.tenant, suggest: tenantsLike },
          {
            kind: "choice",
            name: "status",
            label: "Status",
            value: search.status,
            choices: [ANY, ...STATUSES.map(asChoice)],
          },
          {
            kind: "choice",
            name: "channel",
            label: "Channel",
            value: search.channel,
            choices: [ANY, ...CHANNEL_CHOICES],
          },
          { kind: "text", name: "template", label: "Template", value: search.template },
          {
            kind: "choice",
            name: "cause",
            label: "Cause of failure",
            value: search.failureClass,
            choices: [ANY, ...CAUSE_CHOICES],
          },
        ]}
        submit={async (filled) => {
          const asked = Object.fromEntries(NAMES.map((name) => [name, filled.text(name)]));
          const isDetailed = ["status", "channel", "template", "cause"].some((name) => asked[name] !== "");
          if (asked["tenant"] === "" && (isDetailed || asked["who"] === "")) {
            throw new Error(
              "Choose a tenant, too: over all of them, messages are found by recipient or job id and time alone.",
            );
          }
          goTo(["messages"], asked);
        }}
      />
    </div>
  );
}

/** Finds tenants whose id or name contains the word. */
async function tenantsLike(word: string, signal: AbortSignal): Promise<readonly Choice[]> {
  const query = { limit: TENANTS_OFFERED, ...(word === "" ? {} : { find: word }) };
  const { tenants } = await call("listTenants", { query }, { signal });
  return tenants.map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
}

const NAMES = ["who", "tenant", "status", "channel", "template", "cause"] as const;

function asChoice(value: string): Choice {
  return { value, label: value };
}

/** A job with the tenant that it belongs to. */
type Row = OperatorJob & { readonly tenant_id: string };

function OfAll({ search: { who, from, to } }: { readonly search: JobSearch }): JSX.Element {
  const [isIncomplete, setIncomplete] = useState(false);
  const whose = JOB_ID.test(who) ? { job_id: who } : { recipient: who };
  const asked = { ...whose, ...(from === "" ? {} : { from }), ...(to === "" ? {} : { to }), limit: PAGE };
  const { items, problem, more, isLoading, reload } = useLoadPages<Row>(async (cursor, signal) => {
    const query = cursor === undefined ? asked : { ...asked, cursor };
    const page = await call("searchJobs", { query }, { signal });
    setIncomplete(page.incomplete);
    return { items: page.jobs, next: page.next_cursor };
  }, JSON.stringify(asked));
  return (
    <>
      {isIncomplete ? INCOMPLETE : null}
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : <Jobs rows={items} hasTenants />}
      <More more={more} isLoading={isLoading} />
    </>
  );
}

const INCOMPLETE = <p class="note">More jobs wait than are looked through: some of those may be missing.</p>;

function OfTenant({ search }: { readonly search: JobSearch }): JSX.Element {
  const { tenant, who, ...rest } = search;
  const [isIncomplete, setIncomplete] = useState(false);
  const mayChange = useMayChange();
  const [isRetrying, setRetrying] = useState(false);
  const isJob = JOB_ID.test(who);
  const pages = useLoadPages<Row>(async (cursor, signal) => {
    if (isJob) return { items: [await oneJob(tenant, who, signal)], next: null };
    const query = { ...toQuery(rest), ...(who === "" ? {} : { recipient: who }), limit: PAGE };
    const page = await call(
      "listJobs",
      { path: { id: tenant }, query: cursor === undefined ? query : { ...query, cursor } },
      { signal },
    );
    setIncomplete(page.incomplete);
    return { items: page.jobs.map((job) => ({ ...job, tenant_id: tenant })), next: page.next_cursor };
  }, JSON.stringify(search));
  const { items, problem, more, isLoading, reload } = pages;
  return (
    <>
      {mayChange && !isJob ? (
        <p class="actions">
          <button type="button" onClick={() => setRetrying(true)}>
            Send failed ones again…
          </button>
        </p>
      ) : null}
      {isRetrying ? <RetryManyDialog search={search} onClose={() => setRetrying(false)} onDone={reload} /> : null}
      {isIncomplete ? INCOMPLETE : null}
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : <Jobs rows={items} />}
      <More more={more} isLoading={isLoading} />
    </>
  );
}

async function oneJob(tenantId: string, jobId: string, signal: AbortSignal): Promise<Row> {
  const {
    history: _history,
    events: _events,
    result: _result,
    ...job
  } = await call("getJobHistory", { path: { id: tenantId, job_id: jobId } }, { signal });
  return { ...job, tenant_id: tenantId };
}

/** Values that the form does not offer are dropped. */
function toQuery({ status, channel, template, failureClass, from, to }: Omit<JobSearch, "tenant" | "who">) {
  const knownStatus = STATUSES.find((each) => each === status);
  const cause = knownCause(failureClass);
  const knownChannel: Channel | undefined = CHANNELS.find((each) => each === channel);
  return {
    ...(knownStatus === undefined ? {} : { status: knownStatus }),
    ...(knownChannel === undefined ? {} : { channel: knownChannel }),
    ...(template === "" ? {} : { template }),
    ...(cause === undefined ? {} : { failure_class: cause }),
    ...(from === "" ? {} : { from }),
    ...(to === "" ? {} : { to }),
  };
}

function Jobs({
  rows,
  hasTenants = false,
}: {
  readonly rows: readonly Row[];
  readonly hasTenants?: boolean;
}): JSX.Element {
  const columns: readonly Column<Row>[] = [
    {
      head: "Accepted",
      isHead: true,
      cell: ({ tenant_id, job_id, created_at }) => (
        <a href={hrefTo(["messages", tenant_id, job_id])}>
          <Time at={created_at} />
        </a>
      ),
    },
    ...(hasTenants
      ? [{ head: "Tenant", cell: ({ tenant_id }: Row) => <a href={hrefTo(["tenants", tenant_id])}>{tenant_id}</a> }]
      : []),
    { head: "Outcome", cell: (job) => <OutcomeBadge job={job} /> },
    { head: "Channel", cell: ({ channel }) => channelName(channel) },
    { head: "To", cell: ({ recipient_domain: domain }) => (domain === undefined ? "" : `…\u2060@${domain}`) },
    { head: "Template", cell: ({ template }) => template },
    { head: "Tries", isNumber: true, cell: ({ attempts }) => count(attempts) },
    { head: "What it says", isLong: true, cell: says },
  ];
  return (
    <Table
      caption="Messages"
      rows={rows}
      keyOf={({ tenant_id, job_id }) => `${tenant_id} ${job_id}`}
      empty="No message fits. A longer range or fewer conditions may find it; finished ones are found as long as their history is kept."
      columns={columns}
    />
  );
}

function OutcomeBadge({ job }: { readonly job: Row }): JSX.Element {
  const { tone, text } = shortOutcome(job);
  return <Badge tone={tone}>{text}</Badge>;
}

function says({ error, next_attempt_at: next }: Row): JSX.Element | null {
  if (error !== undefined) return <>{error}</>;
  if (next === undefined) return null;
  return (
    <>
      next try <Ago at={next} />
    </>
  );
}
