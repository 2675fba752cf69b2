import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Key } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useLoad } from "../load.ts";
import { SecretDialog } from "../secret.tsx";
import { ChangeButton, useMayChange } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Ago, Card, type Column, Show, Table, Time } from "../ui.tsx";

type Open =
  | { readonly kind: "add" }
  | { readonly kind: "made"; readonly secret: string }
  | { readonly kind: "revoke"; readonly key: Key };

/** The keys that a tenant calls with. */
export function KeysTab({ tenant: { id } }: TabProps): JSX.Element {
  const loaded = useLoad((signal) => call("listKeys", { path: { id } }, { signal }), id);
  const { reload } = loaded;
  const [open, setOpen] = useState<Open | null>(null);
  const mayChange = useMayChange();
  return (
    <Card
      title="API keys"
      actions={
        <ChangeButton style="primary" onClick={() => setOpen({ kind: "add" })}>
          Make a key
        </ChangeButton>
      }
    >
      <Show loaded={loaded}>
        {(data) => (
          <Table
            caption="API keys"
            rows={data.keys}
            keyOf={({ key_id }) => key_id}
            empty="The tenant has no key, so it cannot send."
            columns={buildColumns(mayChange, (key) => setOpen({ kind: "revoke", key }))}
          />
        )}
      </Show>
      <Dialogs id={id} open={open} setOpen={setOpen} onDone={reload} />
    </Card>
  );
}

function Dialogs({
  id,
  open,
  setOpen,
  onDone,
}: {
  readonly id: string;
  readonly open: Open | null;
  setOpen: (next: Open | null | ((now: Open | null) => Open | null)) => void;
  onDone(): void;
}): JSX.Element {
  const close = () => setOpen(null);
  return (
    <>
      {open?.kind === "add" ? (
        <AddDialog
          id={id}
          onClose={() => setOpen((now) => (now?.kind === "add" ? null : now))}
          onMade={(secret) => {
            onDone();
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
          onDone={onDone}
          submit={() => call("revokeKey", { path: { id, key_id: open.key.key_id } })}
        />
      ) : null}
    </>
  );
}

function AddDialog({
  id,
  onClose,
  onMade,
}: {
  readonly id: string;
  onClose(): void;
  onMade(secret: string): void;
}): JSX.Element {
  return (
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
        {
          kind: "several",
          name: "scopes",
          label: "Allows",
          values: SCOPES.map(({ value }) => value),
          choices: SCOPES,
          hint: "Calls beyond that are refused with 403.",
        },
      ]}
      onClose={onClose}
      submit={async (filled) => {
        const [name, expires] = [filled.text("name"), filled.text("expires")];
        const body = {
          name: name === "" ? null : name,
          expires_at: expires === "" ? null : new Date(expires).toISOString(),
          scopes: SCOPES.map(({ value }) => value).filter((scope) => filled.several("scopes").includes(scope)),
        };
        const { api_key: secret } = await call("createKey", { path: { id }, body });
        onMade(secret);
      }}
    />
  );
}

const SCOPES = [
  { value: "send", label: "to send" },
  { value: "read", label: "to read what was sent" },
  { value: "manage", label: "to manage keys, templates, suppressions and aliases" },
] as const;

function allowed({ scopes }: Key): string {
  return scopes.length === SCOPES.length ? "everything" : scopes.join(", ");
}

function buildColumns(mayChange: boolean, onRevoke: (key: Key) => void): readonly Column<Key>[] {
  const columns: readonly Column<Key>[] = [
    { head: "Name", isHead: true, isLong: true, cell: ({ name }) => name ?? <span class="soft">without a name</span> },
    { head: "Begins with", cell: ({ prefix }) => <code>{prefix}</code> },
    { head: "Allows", cell: allowed },
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
