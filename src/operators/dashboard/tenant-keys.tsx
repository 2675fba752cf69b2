import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Key } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { FormDialog } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { SecretDialog } from "./secret.tsx";
import { useMayChange } from "./session.ts";
import type { TabProps } from "./tenant.tsx";
import { Ago, Card, type Column, ProblemBox, Table, Time, Waiting } from "./ui.tsx";

type Open =
  | { readonly kind: "add" }
  | { readonly kind: "made"; readonly secret: string }
  | { readonly kind: "revoke"; readonly key: Key };

/** The keys that a tenant calls with. */
export function KeysTab({ tenant: { id } }: TabProps): JSX.Element {
  const { data, problem, reload } = useLoad((signal) => call("listKeys", { path: { id } }, { signal }), id);
  const [open, setOpen] = useState<Open | null>(null);
  const mayChange = useMayChange();
  const close = () => setOpen(null);
  return (
    <Card
      title="API keys"
      actions={
        mayChange ? (
          <button type="button" class="primary" onClick={() => setOpen({ kind: "add" })}>
            Make a key
          </button>
        ) : undefined
      }
    >
      <ProblemBox problem={problem} retry={reload} />
      {data === null ? (
        problem === null ? (
          <Waiting />
        ) : null
      ) : (
        <Table
          caption="API keys"
          rows={data.keys}
          keyOf={({ key_id }) => key_id}
          empty="The tenant has no key, so it cannot send."
          columns={columnsOf(mayChange, (key) => setOpen({ kind: "revoke", key }))}
        />
      )}
      {open?.kind === "add" ? (
        <FormDialog
          title="Make a key"
          label="Make"
          fields={[
            { kind: "text", name: "name", label: "Name", hint: "What it is for, such as shop." },
            {
              kind: "datetime-local",
              name: "expires",
              label: "Expires",
              hint: "In your time zone. Left empty: never.",
            },
          ]}
          onClose={() => setOpen((now) => (now?.kind === "add" ? null : now))}
          submit={async (filled) => {
            const [name, expires] = [filled.text("name"), filled.text("expires")];
            const body = {
              name: name === "" ? null : name,
              expires_at: expires === "" ? null : new Date(expires).toISOString(),
            };
            const { api_key: secret } = await call("createKey", { path: { id }, body });
            reload();
            setOpen({ kind: "made", secret });
          }}
        />
      ) : null}
      {open?.kind === "made" ? (
        <SecretDialog title="The new key" secret={open.secret} label="the key" onClose={close} />
      ) : null}
      {open?.kind === "revoke" ? (
        <FormDialog
          title={`Revoke ${open.key.name ?? open.key.prefix}?`}
          intro="Calls with it are refused within a second, in every process."
          label="Revoke"
          isDangerous
          fields={[]}
          onClose={close}
          onDone={reload}
          submit={() => call("revokeKey", { path: { id, key_id: open.key.key_id } })}
        />
      ) : null}
    </Card>
  );
}

function columnsOf(mayChange: boolean, onRevoke: (key: Key) => void): readonly Column<Key>[] {
  const columns: readonly Column<Key>[] = [
    { head: "Name", isHead: true, cell: ({ name }) => name ?? <span class="soft">without a name</span> },
    { head: "Begins with", cell: ({ prefix }) => <code>{prefix}</code> },
    { head: "Made", cell: ({ created_at }) => <Time at={created_at} precision="day" /> },
    { head: "Last used", cell: ({ last_used_at: last }) => (last === null ? "never" : <Ago at={last} />) },
    { head: "Expires", cell: ({ expires_at: end }) => (end === null ? "never" : <Ago at={end} />) },
  ];
  if (!mayChange) return columns;
  const button = (key: Key) => (
    <button
      type="button"
      class="danger-quiet"
      aria-label={`Revoke ${key.name ?? key.prefix}`}
      onClick={() => onRevoke(key)}
    >
      Revoke
    </button>
  );
  return [...columns, { head: "Change", cell: button }];
}
