import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { NewOperator, Operator } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { FormDialog } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { SecretDialog } from "./secret.tsx";
import { ChangeButton, useMayChange } from "./session.tsx";
import { Ago, Badge, type Column, Page, Show, Table, Time } from "./ui.tsx";

type Open =
  | { readonly kind: "add" }
  | { readonly kind: "made"; readonly operator: NewOperator }
  | { readonly kind: "delete"; readonly operator: Operator };

const ROLES = [
  { value: "read", label: "read: may only look" },
  { value: "write", label: "write: may change things, too" },
] as const;

/** The page of operators, who may call the operator API and see these pages. */
export function OperatorsPage(): JSX.Element {
  const loaded = useLoad((signal) => call("listOperators", {}, { signal }), "");
  const { reload } = loaded;
  const mayChange = useMayChange();
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  return (
    <Page
      title="Operators"
      intro="Each has a token of their own. The operator root has the setting OPERATOR_TOKEN, and is not listed."
      actions={
        <ChangeButton style="primary" onClick={() => setOpen({ kind: "add" })}>
          Add an operator
        </ChangeButton>
      }
    >
      <Show loaded={loaded}>
        {(data) => (
          <Table
            caption="Operators"
            rows={data.operators}
            keyOf={({ operator_id }) => operator_id}
            empty="There is none beside root."
            columns={buildColumns(mayChange, (operator) => setOpen({ kind: "delete", operator }))}
          />
        )}
      </Show>
      {open?.kind === "add" ? (
        <FormDialog
          title="Add an operator"
          label="Add"
          onClose={() => setOpen((now) => (now?.kind === "add" ? null : now))}
          fields={[
            { kind: "text", name: "name", label: "Name", isRequired: true },
            { kind: "choice", name: "role", label: "Role", value: "read", choices: ROLES },
          ]}
          submit={async (filled) => {
            const role = filled.text("role") === "write" ? "write" : "read";
            const operator = await call("createOperator", { body: { name: filled.text("name"), role } });
            reload();
            setOpen({ kind: "made", operator });
          }}
        />
      ) : null}
      {open?.kind === "made" ? (
        <SecretDialog
          title={`The token of ${open.operator.name}`}
          secret={open.operator.token}
          label="the token"
          onClose={close}
        />
      ) : null}
      {open?.kind === "delete" ? <DeleteOperator operator={open.operator} onClose={close} onDone={reload} /> : null}
    </Page>
  );
}

function buildColumns(mayChange: boolean, onDelete: (operator: Operator) => void): readonly Column<Operator>[] {
  const columns: readonly Column<Operator>[] = [
    { head: "Name", isHead: true, isLong: true, cell: ({ name }) => name },
    { head: "Role", cell: ({ role }) => <Badge tone={role === "write" ? "warn" : "quiet"}>{role}</Badge> },
    { head: "Added", cell: ({ created_at }) => <Time at={created_at} precision="day" /> },
    { head: "Last seen", cell: ({ last_used_at: last }) => (last === null ? "never" : <Ago at={last} />) },
  ];
  if (!mayChange) return columns;
  const button = (operator: Operator) => (
    <button
      type="button"
      class="danger-quiet"
      aria-label={`Delete ${operator.name}`}
      onClick={() => onDelete(operator)}
    >
      Delete
    </button>
  );
  return [...columns, { head: "Change", cell: button }];
}

function DeleteOperator({
  operator: { operator_id: id, name },
  onClose,
  onDone,
}: {
  readonly operator: Operator;
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  return (
    <FormDialog
      title={`Delete ${name}?`}
      intro="The token and all sessions of this operator end at once. What the audit log says stays."
      label="Delete"
      isDangerous
      fields={[]}
      onClose={onClose}
      onDone={onDone}
      submit={() => call("deleteOperator", { path: { id } })}
    />
  );
}
