import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Usage } from "../../../clients/typescript/generated.ts";
import { call, downloadPath } from "./api.ts";
import { useAction, useLoadPages } from "./load.ts";
import { goTo, hrefTo } from "./route.ts";
import { Card, Page, ProblemBox, Table, Waiting } from "./ui.tsx";
import { USAGE_COLUMNS, type UsageSums, usageSum } from "./usage-columns.ts";
import { counted } from "./words.ts";

const PAGE = 500;
/** Longer pages are unusable; the file contains all rows. */
const SHOWN_MAX = 500;

/** All tenants' billable usage in a month. */
export function UsagePage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const month = query.get("month") ?? new Date().toISOString().slice(0, 7);
  const { items, problem, more, isLoading, reload } = useLoadPages<Usage>(async (cursor, signal) => {
    const asked = { month, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const { usage, next_cursor: next } = await call("listUsage", { query: asked }, { signal });
    return { items: usage, next };
  }, month);
  const isWhole = items !== null && more === null && !isLoading;
  useEffect(() => {
    if (problem === null) more?.();
  }, [items?.length]);
  return (
    <Page
      title="Usage"
      intro="What tenants are billed for, by UTC month. Tokens billed are those that passes cost less those given back; what operators added or removed is not in it."
      actions={<Download month={month} />}
    >
      <div class="search field">
        <label for="usage-month">Month</label>
        <input
          id="usage-month"
          type="month"
          value={month}
          required
          pattern="[0-9]{4}-[0-9]{2}"
          onChange={({ currentTarget }) =>
            currentTarget.value !== "" &&
            currentTarget.checkValidity() &&
            goTo(["usage"], { month: currentTarget.value })
          }
        />
      </div>
      <ProblemBox problem={problem} retry={reload} />
      {isWhole ? <Shown month={month} usage={items} /> : problem === null ? <Waiting /> : null}
    </Page>
  );
}

interface Line extends UsageSums {
  /** Null: the sum. */
  readonly id: string | null;
  readonly name: string;
}

function Shown({ month, usage }: { readonly month: string; readonly usage: readonly Usage[] }): JSX.Element {
  const used = usage.filter(isUsed).toSorted((one, other) => other.accepted - one.accepted);
  const lines: readonly Line[] = [
    { ...usageSum(usage), id: null, name: counted(usage.length, "tenant") },
    ...used.slice(0, SHOWN_MAX).map((each) => ({ ...each, id: each.tenant_id, name: each.tenant_name })),
  ];
  return (
    <Card title={month}>
      <Table<Line>
        caption={`Usage of all tenants in ${month}`}
        rows={used.length === 0 ? [] : lines}
        keyOf={({ id }) => id ?? ""}
        empty="No tenant used anything in this month."
        columns={[
          {
            head: "Tenant",
            isHead: true,
            isLong: true,
            cell: ({ id, name }) =>
              id === null ? (
                <strong>All: {name}</strong>
              ) : (
                <a href={hrefTo(["tenants", id, "usage"])} title={name}>
                  {id}
                </a>
              ),
          },
          ...USAGE_COLUMNS,
        ]}
      />
      {used.length > SHOWN_MAX ? (
        <p class="small">
          The {SHOWN_MAX} with most accepted messages of {counted(used.length, "tenant")} with use; the file has all.
        </p>
      ) : null}
    </Card>
  );
}

function isUsed({ tenant_id: _id, tenant_name: _name, month: _month, sent, ...counts }: Usage): boolean {
  return [...Object.values(sent), ...Object.values(counts)].some((value) => value !== 0);
}

/** Joins the API's files, one per page, into one. */
function Download({ month }: { readonly month: string }): JSX.Element {
  const { isRunning, problem, run } = useAction();
  const save = async () => {
    const parts: string[] = [];
    let cursor = "";
    do {
      const asked = { month, limit: String(PAGE), format: "csv", ...(cursor === "" ? {} : { cursor }) };
      const answer = await fetch(downloadPath("/dash/api/usage", asked));
      if (!answer.ok) throw new Error(`The file cannot be read: ${answer.status}.`);
      const text = await answer.text();
      parts.push(parts.length === 0 ? text : text.slice(text.indexOf("\r\n") + 2));
      cursor = answer.headers.get("next-cursor") ?? "";
    } while (cursor !== "");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
    link.download = `usage-${month}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <>
      <button type="button" disabled={isRunning} onClick={() => void run(save)}>
        As CSV
      </button>
      <ProblemBox problem={problem} />
    </>
  );
}
