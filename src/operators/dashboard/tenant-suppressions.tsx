import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Suppression } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { FormDialog } from "./dialog.tsx";
import { useLoadPages } from "./load.ts";
import { ChangeButton, useMayChange } from "./session.tsx";
import type { TabProps } from "./tab.ts";
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
        <ChangeButton style="primary" onClick={() => setAdding(true)}>
          Suppress an address
        </ChangeButton>
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
      {isAdding ? <AddSuppression id={id} onClose={() => setAdding(false)} onDone={reload} /> : null}
      {removed === null ? null : (
        <RemoveSuppression id={id} suppression={removed} onClose={() => setRemoved(null)} onDone={reload} />
      )}
    </Card>
  );
}

interface DialogProps {
  readonly id: string;
  onClose(): void;
  onDone(): void;
}

function AddSuppression({ id, onClose, onDone }: DialogProps): JSX.Element {
  return (
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
      onClose={onClose}
      onDone={onDone}
      submit={(filled) => {
        const reason = REASONS.find((each) => each === filled.text("reason")) ?? "manual";
        return call("putSuppression", { path: { id, address: filled.text("address") }, body: { reason } });
      }}
    />
  );
}

function RemoveSuppression({
  id,
  suppression,
  onClose,
  onDone,
}: DialogProps & { readonly suppression: Suppression }): JSX.Element {
  return (
    <FormDialog
      title={`Send to ${suppression.address} again?`}
      intro={`It is suppressed since it ${REASON_WORDS[suppression.reason]}.`}
      label="Remove from the list"
      isDangerous
      fields={[]}
      onClose={onClose}
      onDone={onDone}
      submit={() => call("deleteSuppression", { path: { id, address: suppression.address } })}
    />
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
    { head: "Address", isHead: true, isLong: true, cell: ({ address }) => address },
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
