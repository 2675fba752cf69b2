import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Suppression } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { FormDialog } from "./dialog.tsx";
import { useLoadPages } from "./load.ts";
import { useMayChange } from "./session.ts";
import type { TabProps } from "./tenant.tsx";
import { Card, type Column, More, ProblemBox, Table, Time } from "./ui.tsx";

const REASONS = ["manual", "unsubscribed", "bounced", "complained"] as const;

/** Whom a tenant's messages are not sent to. */
export function SuppressionsTab({ tenant: { id } }: TabProps): JSX.Element {
  const pages = useLoadPages<Suppression>(async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    const { suppressions, next_cursor: next } = await call("listSuppressions", { path: { id }, query }, { signal });
    return { items: suppressions, next };
  }, id);
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Suppression | null>(null);
  const mayChange = useMayChange();
  const { items, problem, more, isLoading, reload } = pages;
  return (
    <Card
      title="Suppressed addresses"
      actions={
        mayChange ? (
          <button type="button" class="primary" onClick={() => setAdding(true)}>
            Suppress an address
          </button>
        ) : undefined
      }
    >
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : (
        <Table
          caption="Suppressed addresses"
          rows={items}
          keyOf={({ address }) => address}
          empty="There is none."
          columns={columnsOf(mayChange, setRemoved)}
        />
      )}
      <More more={more} isLoading={isLoading} />
      {isAdding ? (
        <FormDialog
          title="Suppress an address"
          label="Suppress"
          fields={[
            { kind: "text", name: "address", label: "Address or number", isRequired: true },
            {
              kind: "choice",
              name: "reason",
              label: "Why",
              value: "manual",
              choices: REASONS.map((value) => ({ value, label: value })),
            },
          ]}
          onClose={() => setAdding(false)}
          onDone={reload}
          submit={(filled) => {
            const reason = REASONS.find((each) => each === filled.text("reason")) ?? "manual";
            return call("putSuppression", { path: { id, address: filled.text("address") }, body: { reason } });
          }}
        />
      ) : null}
      {removed === null ? null : (
        <FormDialog
          title={`Send to ${removed.address} again?`}
          intro={`It is suppressed since it ${REASON_WORDS[removed.reason]}.`}
          label="Remove from the list"
          isDangerous
          fields={[]}
          onClose={() => setRemoved(null)}
          onDone={reload}
          submit={() => call("deleteSuppression", { path: { id, address: removed.address } })}
        />
      )}
    </Card>
  );
}

const REASON_WORDS: Readonly<Record<Suppression["reason"], string>> = {
  manual: "was put on the list by an operator",
  unsubscribed: "unsubscribed",
  bounced: "bounced",
  complained: "reported a message as spam",
};

function columnsOf(mayChange: boolean, onRemove: (suppression: Suppression) => void): readonly Column<Suppression>[] {
  const columns: readonly Column<Suppression>[] = [
    { head: "Address", isHead: true, cell: ({ address }) => address },
    { head: "Why", cell: ({ reason }) => reason },
    { head: "Since", cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  if (!mayChange) return columns;
  const button = (suppression: Suppression) => (
    <button type="button" aria-label={`Remove ${suppression.address}`} onClick={() => onRemove(suppression)}>
      Remove
    </button>
  );
  return [...columns, { head: "Change", cell: button }];
}
