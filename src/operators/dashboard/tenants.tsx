import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Tenant } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { type Field, type Filled, FormDialog } from "./dialog.tsx";
import { useLoad, useLoadPages } from "./load.ts";
import { goTo, hrefTo } from "./route.ts";
import { ChangeButton } from "./session.tsx";
import { Badge, Channels, type Column, More, Page, ProblemBox, Table, Time } from "./ui.tsx";
import { CHANNEL_CHOICES, CHANNELS, count } from "./words.ts";

const PAGE = 100;

export function TenantsPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const [word, setWord] = useState(query.get("find") ?? "");
  const [isAdding, setAdding] = useState(false);
  const find = word.trim();
  const plan = query.get("plan") ?? "";
  const { items, problem, more, isLoading, reload } = useLoadPages<Tenant>(
    async (cursor, signal) => {
      const asked = {
        limit: PAGE,
        ...(find === "" ? {} : { find }),
        ...(plan === "" ? {} : { plan }),
        ...(cursor === undefined ? {} : { cursor }),
      };
      const { tenants, next_cursor: next } = await call("listTenants", { query: asked }, { signal });
      return { items: tenants, next };
    },
    JSON.stringify([find, plan]),
  );
  return (
    <Page
      title="Tenants"
      actions={
        <ChangeButton style="primary" onClick={() => setAdding(true)}>
          Add a tenant
        </ChangeButton>
      }
    >
      <div class="search field">
        <label for="find-tenant">Id or name</label>
        <input
          id="find-tenant"
          type="search"
          value={word}
          onInput={({ currentTarget }) => setWord(currentTarget.value)}
        />
        {plan === "" ? null : (
          <p>
            Of the plan {plan} alone. <a href={hrefTo(["tenants"])}>All tenants</a>
          </p>
        )}
      </div>
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : (
        <Table
          caption="Tenants"
          rows={items}
          keyOf={({ id }) => id}
          empty={
            find + plan === "" ? "There is no tenant yet: add one, and make a key on its page." : "No tenant fits."
          }
          columns={COLUMNS}
        />
      )}
      <More more={more} isLoading={isLoading} />
      {isAdding ? <AddTenant onClose={() => setAdding(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Tenant>[] = [
  { head: "Id", isHead: true, cell: ({ id }) => <a href={hrefTo(["tenants", id])}>{id}</a> },
  { head: "Name", isLong: true, cell: ({ name }) => name },
  { head: "Plan", cell: ({ plan }) => plan },
  { head: "Channels", cell: ({ channels }) => <Channels names={channels} /> },
  { head: "Tokens", isNumber: true, cell: ({ tokens }) => count(tokens) },
  { head: "State", cell: (tenant) => <State tenant={tenant} /> },
  { head: "Since", cell: ({ created_at }) => <Time at={created_at} precision="day" /> },
];

export function State({ tenant: { paused, held } }: { readonly tenant: Tenant }): JSX.Element {
  if (paused.length === 0 && held.length === 0) return <Badge tone="good">sending</Badge>;
  return (
    <>
      {paused.length === 0 ? null : (
        <Badge tone="warn">
          paused: <Channels names={paused} />
        </Badge>
      )}{" "}
      {held.length === 0 ? null : (
        <Badge tone="warn">
          on hold: <Channels names={held} />
        </Badge>
      )}
    </>
  );
}

/** The form fields for a tenant's settings. */
export function tenantFields(tenant: Partial<Tenant>, plans: readonly string[]): readonly Field[] {
  return [
    { kind: "text", name: "name", label: "Name", value: tenant.name ?? "", isRequired: true },
    {
      kind: "choice",
      name: "plan",
      label: "Plan",
      value: tenant.plan ?? "free",
      choices: plans.map((value) => ({ value, label: value })),
    },
    {
      kind: "several",
      name: "channels",
      label: "Channels",
      values: tenant.channels ?? CHANNELS,
      choices: CHANNEL_CHOICES,
    },
    {
      kind: "several",
      name: "permissions",
      label: "Permissions",
      values: tenant.permissions ?? [],
      choices: [{ value: "allow_raw_html", label: "Send HTML of its own, without a template" }],
    },
    {
      kind: "several",
      name: "allow_custom",
      label: "Own credentials are used on",
      values: tenant.allow_custom ?? [],
      choices: CHANNEL_CHOICES,
    },
  ];
}

export function tenantFrom(filled: Filled) {
  const among = (name: string) => CHANNELS.filter((channel) => filled.several(name).includes(channel));
  return {
    name: filled.text("name"),
    plan: filled.text("plan"),
    channels: among("channels"),
    permissions: filled.several("permissions").includes("allow_raw_html") ? (["allow_raw_html"] as const) : [],
    allow_custom: among("allow_custom"),
  };
}

/** Returns the names of the plans; the tenant's own until they are loaded. */
export function usePlans(own: string): readonly string[] {
  const { data } = useLoad((signal) => call("listPlans", {}, { signal }), "");
  const names = data?.plans.map(({ name }) => name) ?? [];
  return names.includes(own) ? names : [own, ...names];
}

function AddTenant({ onClose }: { onClose(): void }): JSX.Element {
  const plans = usePlans("free");
  return (
    <FormDialog
      title="Add a tenant"
      label="Add"
      onClose={onClose}
      fields={[
        ...tenantFields({}, plans),
        {
          kind: "text",
          name: "id",
          label: "Id",
          hint: "Lower-case letters, digits and hyphens. Left empty, it is made of the name.",
        },
        { kind: "number", name: "tokens", label: "Wallet tokens", value: "0", min: 0 },
      ]}
      submit={async (filled) => {
        const id = filled.text("id");
        const body = { ...tenantFrom(filled), tokens: Number(filled.text("tokens")), ...(id === "" ? {} : { id }) };
        const made = await call("createTenant", { body });
        goTo(["tenants", made.id]);
      }}
    />
  );
}
