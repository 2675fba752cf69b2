import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TokenMovementPage } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useLoadPages } from "../load.ts";
import { hrefTo } from "../route.ts";
import { ChangeButton } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Card, type Column, More, ProblemBox, Table, Time } from "../ui.tsx";
import { count } from "../words.ts";

type Movement = TokenMovementPage["movements"][number];

/** A tenant's wallet tokens and their movements. */
export function TokensTab({ tenant: { id, tokens }, onChanged }: TabProps): JSX.Element {
  const pages = useLoadPages<Movement>(async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    const { movements, next_cursor: next } = await call("listTokenMovements", { path: { id }, query }, { signal });
    return { items: movements, next };
  }, id);
  const [isAdding, setAdding] = useState(false);
  const { items, problem, more, isLoading, reload } = pages;
  return (
    <Card
      title={`Wallet tokens: ${count(tokens)}`}
      actions={
        <ChangeButton style="primary" onClick={() => setAdding(true)}>
          Add tokens
        </ChangeButton>
      }
    >
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : (
        <Table
          caption="Movements of tokens"
          rows={items}
          keyOf={({ created_at, job_id, amount, balance }) => `${created_at} ${job_id} ${amount} ${balance}`}
          empty="No token was added or spent yet."
          columns={buildColumns(id)}
        />
      )}
      <More more={more} isLoading={isLoading} />
      {isAdding ? (
        <FormDialog
          title="Add tokens"
          label="Add"
          fields={[
            {
              kind: "number",
              name: "amount",
              label: "How many",
              isRequired: true,
              hint: "A negative number takes tokens away.",
            },
            { kind: "text", name: "reason", label: "Why", isRequired: true },
          ]}
          onClose={() => setAdding(false)}
          onDone={() => {
            reload();
            onChanged();
          }}
          submit={(filled) => {
            const body = { amount: Number(filled.text("amount")), reason: filled.text("reason") };
            return call("addTokens", { path: { id }, body });
          }}
        />
      ) : null}
    </Card>
  );
}

function buildColumns(id: string): readonly Column<Movement>[] {
  return [
    { head: "When", isHead: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { head: "Tokens", isNumber: true, cell: ({ amount }) => (amount > 0 ? `+${count(amount)}` : count(amount)) },
    { head: "Balance", isNumber: true, cell: ({ balance }) => count(balance) },
    { head: "Why", isLong: true, cell: ({ reason }) => reason },
    {
      head: "Message",
      cell: ({ job_id: job }) => (job === null ? null : <a href={hrefTo(["messages", id, job])}>its job</a>),
    },
  ];
}
