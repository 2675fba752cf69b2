import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Alias } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useLoad } from "../load.ts";
import { ChangeButton, useMayChange } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Card, type Column, Show, Table } from "../ui.tsx";

type Open = { readonly kind: "put"; readonly alias: Alias | null } | { readonly kind: "delete"; readonly alias: Alias };

/** A tenant's names for the chat provider's templates. */
export function AliasesTab({ tenant: { id } }: TabProps): JSX.Element {
  const loaded = useLoad((signal) => call("listAliases", { path: { id } }, { signal }), id);
  const { reload } = loaded;
  const [open, setOpen] = useState<Open | null>(null);
  const mayChange = useMayChange();
  const close = () => setOpen(null);
  return (
    <Card
      title="Aliases of WhatsApp templates"
      actions={
        <ChangeButton style="primary" onClick={() => setOpen({ kind: "put", alias: null })}>
          Add an alias
        </ChangeButton>
      }
    >
      <Show loaded={loaded}>
        {(data) => (
          <Table
            caption="Aliases"
            rows={data.aliases}
            keyOf={({ alias }) => alias}
            empty="There is none: the tenant names templates as the provider does."
            columns={buildColumns(mayChange, setOpen)}
          />
        )}
      </Show>
      {open?.kind === "put" ? <PutAlias id={id} alias={open.alias} onClose={close} onDone={reload} /> : null}
      {open?.kind === "delete" ? (
        <FormDialog
          title={`Delete ${open.alias.alias}?`}
          intro="The tenant's sends with this name are then looked up at the provider under the name itself."
          label="Delete"
          isDangerous
          fields={[]}
          onClose={close}
          onDone={reload}
          submit={() => call("deleteAlias", { path: { id, alias: open.alias.alias } })}
        />
      ) : null}
    </Card>
  );
}

function buildColumns(mayChange: boolean, onOpen: (open: Open) => void): readonly Column<Alias>[] {
  const columns: readonly Column<Alias>[] = [
    { head: "Alias", isHead: true, cell: ({ alias }) => <code>{alias}</code> },
    { head: "Provider's name", cell: ({ meta_name }) => <code>{meta_name}</code> },
    { head: "Language", cell: ({ language_code }) => language_code ?? "es (default)" },
    { head: "Positions", isLong: true, cell: ({ params }) => params.join(", ") },
    { head: "Header", cell: ({ header }) => header?.type },
  ];
  if (!mayChange) return columns;
  const buttons = (alias: Alias) => (
    <span class="actions">
      <button type="button" aria-label={`Change ${alias.alias}`} onClick={() => onOpen({ kind: "put", alias })}>
        Change
      </button>
      <button
        type="button"
        class="danger-quiet"
        aria-label={`Delete ${alias.alias}`}
        onClick={() => onOpen({ kind: "delete", alias })}
      >
        Delete
      </button>
    </span>
  );
  return [...columns, { head: "Change", cell: buttons }];
}

function PutAlias({
  id,
  alias,
  onClose,
  onDone,
}: {
  readonly id: string;
  readonly alias: Alias | null;
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  return (
    <FormDialog
      title={alias === null ? "Add an alias" : `Change ${alias.alias}`}
      label="Save"
      fields={[
        ...(alias === null ? [{ kind: "text", name: "alias", label: "Alias", isRequired: true } as const] : []),
        {
          kind: "text",
          name: "meta_name",
          label: "Provider's name of the template",
          value: alias?.meta_name ?? "",
          isRequired: true,
        },
        {
          kind: "text",
          name: "language",
          label: "Language",
          value: alias?.language_code ?? "",
          hint: "Such as en_US. Left empty: es.",
        },
        {
          kind: "lines",
          name: "params",
          label: "What each position holds",
          value: alias?.params.join("\n") ?? "",
          rows: 4,
          hint: "One a line.",
        },
      ]}
      onClose={onClose}
      onDone={onDone}
      submit={(filled) => {
        const language = filled.text("language");
        const lines = filled.text("params").split("\n");
        const body = {
          meta_name: filled.text("meta_name"),
          language_code: language === "" ? null : language,
          params: lines.map((line) => line.trim()).filter((line) => line !== ""),
          header: alias?.header ?? null,
        };
        // The API returns a header in the form that it accepts; only its type does not say which form.
        return call("putAlias", { path: { id, alias: alias?.alias ?? filled.text("alias") }, body: body as never });
      }}
    />
  );
}
