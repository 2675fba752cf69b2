import type { JSX } from "preact";
import type { Tenant } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { type Loaded, useLoad } from "../load.ts";
import { hrefTo } from "../route.ts";
import type { TabProps } from "../tab.ts";
import { State } from "../tenants.tsx";
import { Page, ProblemBox, Waiting } from "../ui.tsx";
import { AliasesTab } from "./tenant-aliases.tsx";
import { CredentialsTab } from "./tenant-credentials.tsx";
import { DomainsTab } from "./tenant-domains.tsx";
import { KeysTab } from "./tenant-keys.tsx";
import { SettingsTab } from "./tenant-settings.tsx";
import { SuppressionsTab } from "./tenant-suppressions.tsx";
import { TemplatesTab } from "./tenant-templates.tsx";
import { TokensTab } from "./tenant-tokens.tsx";
import { UsageTab } from "./tenant-usage.tsx";
import { WebhooksTab } from "./tenant-webhooks.tsx";

const TABS = [
  ["settings", "Settings"],
  ["keys", "Keys"],
  ["credentials", "Credentials"],
  ["templates", "Templates"],
  ["aliases", "Aliases"],
  ["domains", "Domains"],
  ["tokens", "Tokens"],
  ["suppressions", "Suppressions"],
  ["webhooks", "Webhooks"],
  ["usage", "Usage"],
] as const;

export function TenantPage({
  id,
  tab,
  item,
}: {
  readonly id: string;
  readonly tab: string;
  readonly item: string | null;
}): JSX.Element {
  const loaded: Loaded<Tenant> = useLoad((signal) => call("getTenant", { path: { id } }, { signal }), id);
  const { data: tenant, problem, reload } = loaded;
  return (
    <Page
      title={tenant?.name ?? id}
      intro={
        tenant === null ? undefined : (
          <>
            <code>{id}</code> <State tenant={tenant} /> <a href={hrefTo(["messages"], { tenant: id })}>Its messages</a>
          </>
        )
      }
    >
      <nav class="tabs" aria-label="Parts of the tenant">
        {TABS.map(([name, label]) => (
          <a key={name} href={hrefTo(["tenants", id, name])} aria-current={tab === name ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <ProblemBox problem={problem} retry={reload} />
      {tenant === null ? (
        problem === null ? (
          <Waiting />
        ) : null
      ) : (
        <Tab tab={tab} item={item} tenant={tenant} onChanged={reload} />
      )}
    </Page>
  );
}

function Tab({ tab, item, ...props }: TabProps & { readonly tab: string; readonly item: string | null }): JSX.Element {
  switch (tab) {
    case "keys":
      return <KeysTab {...props} />;
    case "credentials":
      return <CredentialsTab {...props} />;
    case "templates":
      return <TemplatesTab {...props} slug={item} />;
    case "aliases":
      return <AliasesTab {...props} />;
    case "domains":
      return <DomainsTab {...props} />;
    case "tokens":
      return <TokensTab {...props} />;
    case "suppressions":
      return <SuppressionsTab {...props} />;
    case "webhooks":
      return <WebhooksTab {...props} />;
    case "usage":
      return <UsageTab {...props} />;
    default:
      return <SettingsTab {...props} />;
  }
}
