import type { JSX } from "preact";
import type { Usage } from "../../../../clients/typescript/generated.ts";
import { call, downloadPath } from "../api.ts";
import { useLoad } from "../load.ts";
import type { TabProps } from "../tab.ts";
import { Card, Show, Table } from "../ui.tsx";
import { USAGE_COLUMNS } from "../usage-columns.ts";

const MONTHS = 12;

/** A tenant's billable usage, month by month. */
export function UsageTab({ tenant: { id } }: TabProps): JSX.Element {
  const now = new Date();
  const month = (back: number) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7);
  const months = { from: month(MONTHS - 1), to: month(0) };
  const loaded = useLoad((signal) => call("getTenantUsage", { path: { id }, query: months }, { signal }), id);
  const file = downloadPath(`/dash/api/tenants/${encodeURIComponent(id)}/usage`, { ...months, format: "csv" });
  return (
    <Card title="Usage by UTC month" actions={<a href={file}>As CSV</a>}>
      <Show loaded={loaded}>
        {(data) => (
          <Table<Usage>
            caption="Usage by month"
            rows={data.usage.toReversed()}
            keyOf={(usage) => usage.month}
            empty="Nothing."
            columns={[{ head: "Month", isHead: true, cell: ({ month: of }) => of }, ...USAGE_COLUMNS]}
          />
        )}
      </Show>
    </Card>
  );
}
