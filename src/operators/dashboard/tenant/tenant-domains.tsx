import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { OperatorDomain } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useAction, useLoad } from "../load.ts";
import { ChangeButton } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Badge, Card, type Column, Copy, ProblemBox, Table, Time, type Tone, Waiting } from "../ui.tsx";

/** A tenant's sending domains: for each, the records to publish and the records found. */
export function DomainsTab({ tenant: { id } }: TabProps): JSX.Element {
  const { data, problem, reload } = useLoad((signal) => call("listTenantDomains", { path: { id } }, { signal }), id);
  const [isAdding, setAdding] = useState(false);
  const [deleted, setDeleted] = useState<string | null>(null);
  return (
    <>
      <div class="card-head">
        <h2>Sending domains</h2>
        <ChangeButton style="primary" onClick={() => setAdding(true)}>
          Add a domain
        </ChangeButton>
      </div>
      <p class="intro">
        Mail can be sent from a domain once its records are published and verified, here or by the tenant itself.
      </p>
      <ProblemBox problem={problem} retry={reload} />
      {data === null ? problem === null ? <Waiting /> : null : null}
      {data?.domains.length === 0 ? (
        <p class="empty">There is none: mail goes out from the platform's own sender.</p>
      ) : null}
      {data?.domains.map((domain) => (
        <Domain
          key={domain.Domain}
          id={id}
          domain={domain}
          onVerified={reload}
          onDelete={() => setDeleted(domain.Domain)}
        />
      ))}
      {isAdding ? <AddDomain id={id} onClose={() => setAdding(false)} onDone={reload} /> : null}
      {deleted === null ? null : (
        <FormDialog
          title={`Delete ${deleted}?`}
          intro="Its DKIM key is forgotten, and nothing can be sent from it any more."
          label="Delete"
          isDangerous
          fields={[]}
          onClose={() => setDeleted(null)}
          onDone={reload}
          submit={() => call("deleteDomain", { path: { id, domain: deleted } })}
        />
      )}
    </>
  );
}

const STATUS_TONES: Readonly<Record<OperatorDomain["RelayStatus"], Tone>> = {
  verified: "good",
  pending: "busy",
  failed: "bad",
};
const RESULT_TONES: Readonly<Record<OperatorDomain["checks"][number]["result"], Tone>> = {
  passed: "good",
  failed: "bad",
  unanswered: "warn",
};

type DnsRecord = OperatorDomain["DNSRecords"]["relay"][number];

function Domain({
  id,
  domain,
  onVerified,
  onDelete,
}: {
  readonly id: string;
  readonly domain: OperatorDomain;
  onVerified(): void;
  onDelete(): void;
}): JSX.Element {
  const { Domain: name, DNSRecords } = domain;
  const { isRunning, problem, run } = useAction();
  const verify = () => void run(() => call("verifyTenantDomain", { path: { id, domain: name } })).then(onVerified);
  const verifying = isRunning ? "Verifying…" : "Verify now";
  return (
    <Card
      title={name}
      actions={
        <>
          <ChangeButton label={`${verifying} ${name}`} isDisabled={isRunning} onClick={verify}>
            {verifying}
          </ChangeButton>
          <ChangeButton style="danger-quiet" label={`Delete ${name}`} onClick={onDelete}>
            Delete
          </ChangeButton>
        </>
      }
    >
      <ProblemBox problem={problem} />
      <Found domain={domain} />
      <h3>Records to publish</h3>
      <Table
        caption={`Records of ${name}`}
        rows={DNSRecords.relay}
        keyOf={({ type, name: of, value }) => `${type} ${of} ${value}`}
        empty="None."
        columns={RECORDS}
      />
    </Card>
  );
}

/** The result of the last verification. */
function Found({ domain }: { readonly domain: OperatorDomain }): JSX.Element {
  const { RelayEnabled, RelayStatus, SMTPEnabled, SMTPStatus, checks, checked_at: checkedAt } = domain;
  return (
    <>
      <p>
        {RelayEnabled ? <Badge tone={STATUS_TONES[RelayStatus]}>platform's relay: {RelayStatus}</Badge> : null}{" "}
        {SMTPEnabled ? <Badge tone={STATUS_TONES[SMTPStatus]}>own relay: {SMTPStatus}</Badge> : null}{" "}
        <span class="small">
          {checkedAt === null ? (
            "never verified"
          ) : (
            <>
              verified <Time at={checkedAt} />
            </>
          )}
        </span>
      </p>
      {checks.length === 0 ? null : (
        <ul class="checks">
          {checks.map(({ check, result, why }) => (
            <li key={check}>
              <Badge tone={RESULT_TONES[result]}>{check.replaceAll("_", " ")}</Badge> {why ?? "found as it should be"}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const RECORDS: readonly Column<DnsRecord>[] = [
  { head: "Type", isHead: true, cell: ({ type, priority }) => (priority === undefined ? type : `${type} ${priority}`) },
  { head: "Name", cell: ({ name }) => <Copy text={name} label={`the name ${name}`} /> },
  { head: "Value", cell: ({ name, value }) => <Copy text={value} label={`the value of ${name}`} /> },
];

function AddDomain({ id, onClose, onDone }: { readonly id: string; onClose(): void; onDone(): void }): JSX.Element {
  return (
    <FormDialog
      title="Add a domain"
      label="Add"
      fields={[
        { kind: "text", name: "domain", label: "Domain", isRequired: true, hint: "Such as mail.example.com." },
        {
          kind: "several",
          name: "by",
          label: "Mail goes out",
          values: ["relay"],
          choices: [
            { value: "relay", label: "through the platform's relay" },
            { value: "smtp", label: "through the tenant's own relay" },
          ],
        },
      ]}
      onClose={onClose}
      onDone={onDone}
      submit={(filled) => {
        const by = filled.several("by");
        const body = {
          domain: filled.text("domain"),
          relay_enabled: by.includes("relay"),
          smtp_enabled: by.includes("smtp"),
        };
        return call("registerDomain", { path: { id }, body });
      }}
    />
  );
}
