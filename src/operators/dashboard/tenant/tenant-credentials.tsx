import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { CredentialsList } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useLoad } from "../load.ts";
import { ChangeButton } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Ago, Badge, Card, Facts, Show, Time } from "../ui.tsx";
import { CREDENTIAL_FORMS, type CredentialKind, KINDS } from "./credential-forms.ts";

type Credentials = CredentialsList["credentials"][number];

type Open = { readonly kind: "put" | "delete"; readonly of: CredentialKind };

/** A tenant's own provider credentials. Their secrets are never shown. */
export function CredentialsTab({ tenant, onChanged }: TabProps): JSX.Element {
  const { id } = tenant;
  const loaded = useLoad((signal) => call("listCredentials", { path: { id } }, { signal }), id);
  const { reload } = loaded;
  const [open, setOpen] = useState<Open | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const close = () => setOpen(null);
  const done = () => {
    reload();
    onChanged();
  };
  return (
    <>
      <p class="intro">Stored encrypted and never shown. Where there are none, the platform's own are used.</p>
      {said === null ? null : (
        <p class="note" role="status">
          {said}
        </p>
      )}
      <Show loaded={loaded}>
        {(data) => (
          <div class="columns">
            {KINDS.map((kind) => (
              <Kind
                key={kind}
                kind={kind}
                stored={data.credentials.find((each) => each.kind === kind) ?? null}
                onOpen={setOpen}
              />
            ))}
          </div>
        )}
      </Show>
      {open?.kind === "put" ? (
        <FormDialog
          title={`${CREDENTIAL_FORMS[open.of].name}: credentials`}
          label="Store"
          fields={CREDENTIAL_FORMS[open.of].fields}
          onClose={close}
          onDone={done}
          submit={async (filled) => {
            const { used, reason } = await CREDENTIAL_FORMS[open.of].put(id, filled);
            setSaid(
              used ? "Stored, and used from now on." : `Stored, but not used: ${reason ?? "the reason is not known"}.`,
            );
          }}
        />
      ) : null}
      {open?.kind === "delete" ? <Delete id={id} kind={open.of} onClose={close} onDone={done} /> : null}
    </>
  );
}

function Delete({
  id,
  kind,
  onClose,
  onDone,
}: {
  readonly id: string;
  readonly kind: CredentialKind;
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  const { name, remove } = CREDENTIAL_FORMS[kind];
  return (
    <FormDialog
      title={`Delete the ${name} credentials?`}
      intro="The platform's own are used from then on."
      label="Delete"
      isDangerous
      fields={[]}
      onClose={onClose}
      onDone={onDone}
      submit={() => remove(id)}
    />
  );
}

function Kind({
  kind,
  stored,
  onOpen,
}: {
  readonly kind: CredentialKind;
  readonly stored: Credentials | null;
  onOpen(open: Open): void;
}): JSX.Element {
  const { name } = CREDENTIAL_FORMS[kind];
  return (
    <Card
      title={name}
      actions={
        <>
          <ChangeButton onClick={() => onOpen({ kind: "put", of: kind })}>
            {stored === null ? "Store" : "Replace"}
            <span class="unseen"> {name}</span>
          </ChangeButton>
          {stored === null ? null : (
            <ChangeButton style="danger-quiet" onClick={() => onOpen({ kind: "delete", of: kind })}>
              Delete<span class="unseen"> {name}</span>
            </ChangeButton>
          )}
        </>
      }
    >
      {stored === null ? <p class="empty">None of its own.</p> : <Stored credentials={stored} />}
    </Card>
  );
}

/** Members common to all kinds, which are displayed separately. */
const COMMON: ReadonlySet<string> = new Set([
  "kind",
  "channel",
  "used",
  "reason",
  "expires_at",
  "created_at",
  "changed_at",
]);

function Stored({ credentials }: { readonly credentials: Credentials }): JSX.Element {
  const { used, reason, expires_at: expires, changed_at: changed } = credentials;
  const own = Object.entries(credentials).filter(([name, value]) => !COMMON.has(name) && value !== null);
  return (
    <>
      <p>{used ? <Badge tone="good">used</Badge> : <Badge tone="warn">stored, not used: {reason ?? ""}</Badge>}</p>
      <Facts
        facts={[
          ...own.map(([name, value]) => [name.replaceAll("_", " "), String(value)] as const),
          ...(expires === null ? [] : [["expires", <Ago at={expires} />] as const]),
          ...(changed === null ? [] : [["changed", <Time at={changed} />] as const]),
        ]}
      />
    </>
  );
}
