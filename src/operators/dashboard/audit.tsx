import type { JSX } from "preact";
import type { AuditRow } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { Form } from "./dialog.tsx";
import { useLoadPages } from "./load.ts";
import { keyOfRange, RangeBar, timesIn } from "./range.tsx";
import { goTo, hrefTo } from "./route.ts";
import { Badge, type Column, More, Page, ProblemBox, Table, Time } from "./ui.tsx";

const NAMES = ["operator", "tenant", "action"] as const;
const PAGE = 50;

/** The audit log. */
export function AuditPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const given = NAMES.flatMap((name) => {
    const value = query.get(name) ?? "";
    return value === "" ? [] : [[name, value] as const];
  });
  const filter: Partial<Record<(typeof NAMES)[number], string>> = Object.fromEntries(given);
  const key = JSON.stringify(given);
  const { items, problem, more, isLoading, reload } = useLoadPages<AuditRow>(
    async (cursor, signal) => {
      // The log is asked by whole days.
      const { from, to } = timesIn(query, null);
      const days = {
        ...(from === undefined ? {} : { from: toDay(from) }),
        ...(to === undefined ? {} : { to: toDay(to) }),
      };
      const asked = { ...filter, ...days, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
      const { rows, next_cursor: next } = await call("listAudit", { query: asked }, { signal });
      return { items: rows, next };
    },
    `${key} ${keyOfRange(query)}`,
  );
  return (
    <Page
      title="Audit log"
      intro="What operators changed, newest first, of the last 400 days, by whole UTC days. Secrets are not in it."
    >
      <RangeBar own={null} />
      <div class="search">
        <Form
          key={key}
          label="Search"
          fields={[
            { kind: "text", name: "operator", label: "Operator", value: filter.operator ?? "" },
            { kind: "text", name: "tenant", label: "Tenant", value: filter.tenant ?? "" },
            { kind: "text", name: "action", label: "Action", value: filter.action ?? "" },
          ]}
          submit={async (filled) => goTo(["audit"], Object.fromEntries(NAMES.map((name) => [name, filled.text(name)])))}
        />
      </div>
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : (
        <Table
          caption="Audit log"
          rows={items}
          keyOf={({ audit_id }) => String(audit_id)}
          empty="Nothing fits: a longer range or fewer conditions may show more."
          columns={COLUMNS}
        />
      )}
      <More more={more} isLoading={isLoading} />
    </Page>
  );
}

function toDay(iso: string): string {
  return iso.slice(0, 10);
}

const COLUMNS: readonly Column<AuditRow>[] = [
  { head: "When", isHead: true, cell: ({ at }) => <Time at={at} /> },
  { head: "Operator", isLong: true, cell: ({ operator }) => operator },
  { head: "Action", cell: ({ action }) => <code>{action}</code> },
  {
    head: "Tenant",
    cell: ({ tenant }) => (tenant === null ? null : <a href={hrefTo(["tenants", tenant])}>{tenant}</a>),
  },
  { head: "On", isLong: true, cell: ({ target }) => target },
  { head: "Answer", cell: ({ status }) => <Answer status={status} /> },
  { head: "More", cell: (row) => <Detail row={row} /> },
];

function Answer({ status }: { readonly status: number | null }): JSX.Element {
  if (status === null) return <Badge tone="warn">end unknown</Badge>;
  return <Badge tone={status < 400 ? "good" : "bad"}>{status}</Badge>;
}

function Detail({ row: { detail, request_id } }: { readonly row: AuditRow }): JSX.Element {
  return (
    <details>
      <summary>What was given</summary>
      <pre tabIndex={0}>{JSON.stringify(detail, null, 2)}</pre>
      <p class="small">
        Request <code>{request_id}</code>
      </p>
    </details>
  );
}
