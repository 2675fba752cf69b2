import type { JSX } from "preact";
import type { Usage } from "../../../clients/typescript/generated.ts";
import { call, downloadPath } from "./api.ts";
import { useLoad } from "./load.ts";
import type { TabProps } from "./tab.ts";
import { Card, type Column, Show, Table } from "./ui.tsx";
import { count } from "./words.ts";

const MONTHS = 12;

/** What a tenant is billed for, month by month. */
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
          <Table
            caption="Usage by month"
            rows={data.usage.toReversed()}
            keyOf={(usage) => usage.month}
            empty="Nothing."
            columns={COLUMNS}
          />
        )}
      </Show>
    </Card>
  );
}

const number = (head: string, of: (usage: Usage) => number): Column<Usage> => ({
  head,
  isNumber: true,
  cell: (usage) => count(of(usage)),
});

const COLUMNS: readonly Column<Usage>[] = [
  { head: "Month", isHead: true, cell: ({ month }) => month },
  number("API calls", ({ api_calls }) => api_calls),
  number("Accepted", ({ accepted }) => accepted),
  number("E-mail", ({ sent }) => sent.email),
  number("WhatsApp", ({ sent }) => sent.whatsapp),
  number("Wallet", ({ sent }) => sent.wallet),
  number("Delivered", ({ delivered }) => delivered),
  number("Bounced", ({ bounced }) => bounced),
  number("Failed", ({ failed }) => failed),
  number("Suppressed", ({ suppressed }) => suppressed),
  number("Tokens", ({ tokens_taken }) => tokens_taken),
];
