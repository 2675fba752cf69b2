import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Erasure, Suppression } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useLoadPages } from "../load.ts";
import { ChangeButton, useMayChange } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Card, type Column, More, ProblemBox, Table, Time } from "../ui.tsx";
import { counted, listed } from "../words.ts";

const REASONS = ["manual", "unsubscribed", "bounced", "complained"] as const;

/** A tenant's suppression list. */
export function SuppressionsTab({ tenant: { id } }: TabProps): JSX.Element {
  const pages = useLoadPages<Suppression>(async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    const { suppressions, next_cursor: next } = await call("listSuppressions", { path: { id }, query }, { signal });
    return { items: suppressions, next };
  }, id);
  const [isAdding, setAdding] = useState(false);
  const [isErasing, setErasing] = useState(false);
  const [removed, setRemoved] = useState<Suppression | null>(null);
  const mayChange = useMayChange();
  const { items, problem, more, isLoading, reload } = pages;
  return (
    <Card
      title="Suppressed addresses"
      actions={
        <>
          <ChangeButton style="primary" onClick={() => setAdding(true)}>
            Suppress an address
          </ChangeButton>
          <ChangeButton style="danger-quiet" onClick={() => setErasing(true)}>
            Erase a recipient…
          </ChangeButton>
        </>
      }
    >
      {isErasing ? <EraseRecipient id={id} onClose={() => setErasing(false)} onDone={reload} /> : null}
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : (
        <Table
          caption="Suppressed addresses"
          rows={items}
          keyOf={({ address, topic = "" }) => `${address}\t${topic}`}
          empty="There is none."
          columns={buildColumns(mayChange, setRemoved)}
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
        { kind: "text", name: "topic", label: "Topic", hint: "Left empty: all messages." },
      ]}
      onClose={onClose}
      onDone={onDone}
      submit={(filled) => {
        const reason = REASONS.find((each) => each === filled.text("reason")) ?? "manual";
        const topic = filled.text("topic");
        const body = topic === "" ? { reason } : { reason, topic };
        return call("putSuppression", { path: { id, address: filled.text("address") }, body });
      }}
    />
  );
}

/** Erases a person from the service, to which the law gives them a right. */
function EraseRecipient({ id, onClose, onDone }: DialogProps): JSX.Element {
  const [erasure, setErasure] = useState<{ readonly recipient: string; readonly answer: Erasure } | null>(null);
  return (
    <FormDialog
      title="Erase a recipient"
      intro={
        erasure === null ? (
          "Messages that wait are not sent, and nothing that is kept leads to the recipient any more. This cannot be undone."
        ) : (
          <p role="status">{erasedWords(erasure.recipient, erasure.answer)}</p>
        )
      }
      label="Erase"
      isDangerous
      staysOpen
      fields={[
        { kind: "text", name: "recipient", label: "Address or number", isRequired: true },
        {
          kind: "several",
          name: "suppress",
          label: "From now on",
          values: [],
          choices: [{ value: "true", label: "Send nothing to the recipient any more (kept as a hash)" }],
        },
      ]}
      onClose={onClose}
      onDone={onDone}
      submit={async (filled) => {
        const recipient = filled.text("recipient");
        const body = { recipient, suppress: filled.several("suppress").length > 0 };
        setErasure({ recipient, answer: await call("eraseRecipient", { path: { id }, body }) });
      }}
    />
  );
}

/** A mistyped address must not be reported as erased. */
function erasedWords(recipient: string, { complete, unfinished_left: left, erased }: Erasure): string {
  if (!complete) {
    return `Something is left for the moment (${counted(left, "unfinished message")}): repeat it in a minute.`;
  }
  const { unfinished_jobs, finished_jobs, events, payloads, suppressions, sandbox_messages } = erased;
  const found = [
    [unfinished_jobs + finished_jobs, "message"],
    [events, "event"],
    [payloads, "kept content"],
    [suppressions, "suppression"],
    [sandbox_messages, "sandbox message"],
  ] as const;
  const parts = found.filter(([number]) => number > 0).map(([number, what]) => counted(number, what));
  return parts.length === 0
    ? `Nothing of ${recipient} was found with this tenant, so nothing was erased: look how the address is written.`
    : `Nothing is left of ${recipient}: ${listed(parts)} erased.`;
}

function RemoveSuppression({
  id,
  suppression,
  onClose,
  onDone,
}: DialogProps & { readonly suppression: Suppression }): JSX.Element {
  const { address, topic } = suppression;
  return (
    <FormDialog
      title={`Send ${topic === undefined ? "" : `“${topic}” `}to ${address} again?`}
      intro={`It is suppressed since it ${REASON_WORDS[suppression.reason]}.`}
      label="Remove from the list"
      isDangerous
      fields={[]}
      onClose={onClose}
      onDone={onDone}
      submit={() => call("deleteSuppression", { path: { id, address }, query: topic === undefined ? {} : { topic } })}
    />
  );
}

const REASON_WORDS: Readonly<Record<Suppression["reason"], string>> = {
  manual: "was put on the list by an operator",
  unsubscribed: "unsubscribed",
  bounced: "bounced",
  complained: "reported a message as spam",
};

function buildColumns(
  mayChange: boolean,
  onRemove: (suppression: Suppression) => void,
): readonly Column<Suppression>[] {
  const columns: readonly Column<Suppression>[] = [
    { head: "Address", isHead: true, isLong: true, cell: ({ address }) => address },
    { head: "Topic", isLong: true, cell: ({ topic = "all messages" }) => topic },
    { head: "Why", cell: ({ reason }) => reason },
    { head: "Since", cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  if (!mayChange) return columns;
  const button = (suppression: Suppression) => (
    <button
      type="button"
      aria-label={`Remove ${suppression.address}${suppression.topic === undefined ? "" : ` for ${suppression.topic}`}`}
      onClick={() => onRemove(suppression)}
    >
      Remove
    </button>
  );
  return [...columns, { head: "Change", cell: button }];
}
