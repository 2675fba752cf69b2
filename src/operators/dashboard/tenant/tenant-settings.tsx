import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { Reputation } from "../reputation.tsx";
import { goTo } from "../route.ts";
import { ChangeButton } from "../session.tsx";
import { Steering } from "../steering.tsx";
import type { TabProps } from "../tab.ts";
import { tenantFields, tenantFrom, usePlans } from "../tenants.tsx";
import { Card, Channels, Facts, Time } from "../ui.tsx";
import { count } from "../words.ts";

/** A tenant's permissions and limits. */
export function SettingsTab(props: TabProps): JSX.Element {
  const { tenant } = props;
  const [open, setOpen] = useState<"change" | "webhook" | "delete" | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <Steering {...props} />
      <Reputation {...props} />
      <Card
        title="Settings"
        actions={
          <>
            <ChangeButton onClick={() => setOpen("change")}>Change</ChangeButton>
            <ChangeButton onClick={() => setOpen("webhook")}>Wallet webhook</ChangeButton>
            <ChangeButton style="danger-quiet" onClick={() => setOpen("delete")}>
              Delete…
            </ChangeButton>
          </>
        }
      >
        <Facts
          facts={[
            ["Plan", tenant.plan],
            ["Channels", <Channels names={tenant.channels} />],
            ["Permissions", tenant.permissions.length === 0 ? "none" : tenant.permissions.join(", ")],
            ["Own credentials on", <Channels names={tenant.allow_custom} />],
            ["Wallet tokens", count(tenant.tokens)],
            ["Shard", tenant.shard],
            ["Since", <Time at={tenant.created_at} />],
          ]}
        />
      </Card>
      {open === "change" ? <ChangeTenant {...props} onClose={close} /> : null}
      {open === "delete" ? <DeleteTenant {...props} onClose={close} /> : null}
      {open === "webhook" ? <WalletWebhook {...props} onClose={close} /> : null}
    </>
  );
}

function ChangeTenant({ tenant, onChanged, onClose }: TabProps & { onClose(): void }): JSX.Element {
  const plans = usePlans(tenant.plan);
  return (
    <FormDialog
      title={`Change ${tenant.name}`}
      label="Save"
      fields={tenantFields(tenant, plans)}
      onClose={onClose}
      onDone={onChanged}
      submit={(filled) => call("changeTenant", { path: { id: tenant.id }, body: tenantFrom(filled) })}
    />
  );
}

function DeleteTenant({ tenant: { id, name }, onClose }: TabProps & { onClose(): void }): JSX.Element {
  return (
    <FormDialog
      title={`Delete ${name} for good`}
      intro="Its keys stop working at once, and everything that it has is removed: messages and their history, templates, credentials, domains, passes, suppressions. What it is billed for stays. This cannot be undone."
      label="Delete"
      isDangerous
      fields={[
        { kind: "text", name: "confirm", label: `Its id once more: ${id}`, isRequired: true },
        {
          kind: "several",
          name: "purge",
          label: "Unfinished messages",
          values: [],
          choices: [{ value: "true", label: "End them as failed; otherwise they are a reason not to delete" }],
        },
      ]}
      onClose={onClose}
      submit={async (filled) => {
        const purge = filled.several("purge").length > 0 ? ({ purge: "true" } as const) : {};
        await call("deleteTenant", { path: { id }, query: { confirm: filled.text("confirm"), ...purge } });
        goTo(["tenants"]);
      }}
    />
  );
}

function WalletWebhook({ tenant, onClose }: TabProps & { onClose(): void }): JSX.Element {
  return (
    <FormDialog
      title="Wallet webhook"
      intro="Where the tenant is told which devices have its passes. Left empty, it is told no more. What is set now is not shown."
      label="Save"
      fields={[{ kind: "text", name: "url", label: "https address" }]}
      onClose={onClose}
      submit={(filled) => {
        const url = filled.text("url");
        const body = { wallet_webhook_url: url === "" ? null : url };
        return call("putWalletWebhook", { path: { id: tenant.id }, body });
      }}
    />
  );
}
