import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Plan } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { type Field, FormDialog } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { hrefTo } from "./route.ts";
import { ChangeButton, useMayChange } from "./session.tsx";
import { type Column, Page, Show, Table } from "./ui.tsx";
import { bytes, count, counted } from "./words.ts";

type Edited = Plan | "new" | null;

/** The limits of tenants, plan by plan, and how many tenants each of them binds. */
export function PlansPage(): JSX.Element {
  const plans = useLoad((signal) => call("listPlans", {}, { signal }), "");
  const [edited, setEdited] = useState<Edited>(null);
  const changes: Column<Plan> = {
    head: "Change",
    cell: (plan) => (
      <ChangeButton label={`Change ${plan.name}`} onClick={() => setEdited(plan)}>
        Change
      </ChangeButton>
    ),
  };
  const columns = useMayChange() ? [...COLUMNS, changes] : COLUMNS;
  return (
    <Page
      title="Plans"
      intro="How much each tenant may ask, send and have waiting. A change holds for all tenants of the plan within a second."
      actions={
        <ChangeButton style="primary" onClick={() => setEdited("new")}>
          Add a plan
        </ChangeButton>
      }
    >
      <Show loaded={plans}>
        {(data) => (
          <Table
            caption="Plans"
            rows={data.plans}
            keyOf={({ name }) => name}
            empty="There is no plan yet: add one, and give it to tenants on their pages."
            columns={columns}
          />
        )}
      </Show>
      {edited === null ? null : <PlanDialog plan={edited} onClose={() => setEdited(null)} onDone={plans.reload} />}
    </Page>
  );
}

const COLUMNS: readonly Column<Plan>[] = [
  { head: "Plan", isHead: true, cell: ({ name }) => name },
  { head: "Requests a minute", isNumber: true, cell: ({ requests_per_minute: most }) => count(most) },
  {
    head: "Deliveries a second",
    isNumber: true,
    cell: ({ deliveries_per_second: most }) => (most === null ? "no limit" : most),
  },
  { head: "Waiting jobs", isNumber: true, cell: ({ queued_jobs_max: most }) => count(most) },
  { head: "Waiting bytes", isNumber: true, cell: ({ queued_bytes_max: most }) => bytes(most) },
  { head: "Held for", isNumber: true, cell: ({ hold_hours: hours }) => `${count(hours)} h` },
  {
    head: "Tenants",
    isNumber: true,
    cell: ({ name, tenants }) =>
      tenants === 0 ? "none" : <a href={hrefTo(["tenants"], { plan: name })}>{counted(tenants, "tenant")}</a>,
  },
];

function PlanDialog({
  plan,
  onClose,
  onDone,
}: {
  readonly plan: Plan | "new";
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  const isNew = plan === "new";
  const name: Field = {
    kind: "text",
    name: "name",
    label: "Name",
    isRequired: true,
    hint: "Lower-case letters, digits and hyphens. A plan of this name is changed.",
  };
  return (
    <FormDialog
      title={isNew ? "Add a plan" : `Change the plan ${plan.name}`}
      intro={isNew ? undefined : `${counted(plan.tenants, "tenant")} will have the new limits at once.`}
      label={isNew ? "Add" : "Save"}
      fields={[...(isNew ? [name] : []), ...limitFields(isNew ? {} : plan)]}
      onClose={onClose}
      onDone={onDone}
      submit={(filled) => {
        const given = (member: string) => (filled.text(member) === "" ? null : Number(filled.text(member)));
        const body = {
          requests_per_minute: Number(filled.text("requests_per_minute")),
          deliveries_per_second: given("deliveries_per_second"),
          queued_jobs_max: given("queued_jobs_max"),
          queued_bytes_max: given("queued_bytes_max"),
          hold_hours: given("hold_hours"),
        };
        return call("putPlan", { path: { name: isNew ? filled.text("name") : plan.name }, body });
      }}
    />
  );
}

function limitFields(plan: Partial<Plan>): readonly Field[] {
  const number = (name: keyof Plan, label: string, hint: string): Field => {
    const value = plan[name];
    const shown = value === undefined || value === null ? "" : String(value);
    return { kind: "number", name, label, hint, min: 0, value: shown, isRequired: name === "requests_per_minute" };
  };
  return [
    number("requests_per_minute", "Requests a minute", "Beyond it, the API answers 429."),
    number("deliveries_per_second", "Deliveries a second", "Left empty: as fast as the provider takes them."),
    number("queued_jobs_max", "Waiting jobs, at most", "Left empty: the default of the plan."),
    number("queued_bytes_max", "Waiting bytes, at most", "Left empty: the default of the plan."),
    number("hold_hours", "Held for, in hours", "While a mail server or provider is away. Left empty: the default."),
  ];
}
