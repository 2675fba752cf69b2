import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TenantWebhook, WebhookAttempt } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { Dialog, FormDialog } from "./dialog.tsx";
import { useAction, useLoadPages } from "./load.ts";
import { goTo, hrefTo } from "./route.ts";
import { ChangeButton } from "./session.tsx";
import { Ago, Badge, type Column, More, Page, ProblemBox, Table, Time, type Tone } from "./ui.tsx";
import { duration, listed } from "./words.ts";

const PAGE = 100;
const STATES = ["disabled", "failing", "enabled"] as const;
type State = (typeof STATES)[number];
const TONES: Readonly<Record<State, Tone>> = { disabled: "bad", failing: "warn", enabled: "good" };
const REASONS = { gone: "its receiver answered 410", failing: "it took nothing for three days" } as const;

/** The webhooks of all tenants: the disabled ones, those that are behind, and the last answer of each receiver. */
export function WebhooksPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const tenant = query.get("tenant") ?? "";
  const state = STATES.find((each) => each === query.get("state"));
  return (
    <Page
      title="Webhooks"
      intro="Where tenants have themselves told of events. One that failed is called again by itself; after three days without success it is disabled."
    >
      <div class="search">
        <div class="field">
          <label for="webhook-state">State</label>
          <select
            id="webhook-state"
            onChange={({ currentTarget }) => goTo(["webhooks"], { tenant, state: currentTarget.value })}
          >
            {["", ...STATES].map((each) => (
              <option key={each} value={each} selected={each === (state ?? "")}>
                {each === "" ? "any" : each}
              </option>
            ))}
          </select>
        </div>
        {tenant === "" ? null : (
          <p>
            Of <a href={hrefTo(["tenants", tenant])}>{tenant}</a> alone.{" "}
            <a href={hrefTo(["webhooks"], { state })}>All tenants</a>
          </p>
        )}
      </div>
      <WebhookList tenant={tenant} state={state} />
    </Page>
  );
}

/** `tenant` "": of all tenants. */
export function WebhookList({
  tenant,
  state,
}: {
  readonly tenant: string;
  readonly state: State | undefined;
}): JSX.Element {
  const asked = { limit: PAGE, ...(tenant === "" ? {} : { tenant }), ...(state === undefined ? {} : { state }) };
  const { items, problem, more, isLoading, reload } = useLoadPages<TenantWebhook>(async (cursor, signal) => {
    const query = cursor === undefined ? asked : { ...asked, cursor };
    const { webhooks, next_cursor: next } = await call("listTenantWebhooks", { query }, { signal });
    return { items: webhooks, next };
  }, JSON.stringify(asked));
  const actions: Column<TenantWebhook> = {
    head: "Calls",
    cell: (webhook) => <Actions webhook={webhook} onChanged={reload} />,
  };
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      {items === null ? null : (
        <Table
          caption="Webhooks"
          rows={items.toSorted((one, other) => rank(one) - rank(other))}
          keyOf={({ webhook_id }) => webhook_id}
          empty={
            state === undefined
              ? "There is none. Tenants make their own: POST /v1/webhooks, with a key of the scope manage."
              : `None is ${state}.`
          }
          columns={[...(tenant === "" ? [OWNER] : []), ...COLUMNS, actions]}
        />
      )}
      <More more={more} isLoading={isLoading} />
    </>
  );
}

/** Trouble comes first. */
function rank({ state, behind_seconds: behind }: TenantWebhook): number {
  return STATES.indexOf(state) * 2 + (behind === null || behind === 0 ? 1 : 0);
}

const OWNER: Column<TenantWebhook> = {
  head: "Tenant",
  cell: ({ tenant_id: id }) => <a href={hrefTo(["tenants", id, "webhooks"])}>{id}</a>,
};

const COLUMNS: readonly Column<TenantWebhook>[] = [
  { head: "Address", isHead: true, isLong: true, cell: ({ url }) => url },
  { head: "State", cell: (webhook) => <StateCell webhook={webhook} /> },
  { head: "Behind", isNumber: true, cell: ({ behind_seconds: behind }) => behindWords(behind) },
  { head: "Last answer", isLong: true, cell: ({ last_call: last }) => <LastCall last={last} /> },
  { head: "Told of", cell: ({ event_types: types }) => (types === null ? "all events" : listed(types)) },
];

function behindWords(seconds: number | null): string {
  if (seconds === null) return "?";
  return seconds === 0 ? "" : duration(seconds);
}

function StateCell({ webhook }: { readonly webhook: TenantWebhook }): JSX.Element {
  const { state, disabled_reason: reason, disabled_at: at, next_attempt_at: next, failing_since: since } = webhook;
  return (
    <>
      <Badge tone={TONES[state]}>{state}</Badge>{" "}
      {reason === null || at === null ? null : (
        <span class="small">
          <Ago at={at} />: {REASONS[reason]}
        </span>
      )}
      {state !== "failing" || since === null ? null : (
        <span class="small">
          since <Time at={since} />
          {next === null ? null : (
            <>
              ; next call <Ago at={next} />
            </>
          )}
        </span>
      )}
    </>
  );
}

function LastCall({ last }: { readonly last: TenantWebhook["last_call"] }): JSX.Element {
  if (last === null) return <span class="soft">not called within seven days</span>;
  return (
    <>
      {last.error ?? String(last.status)}, <Ago at={last.at} />
    </>
  );
}

type Asked = "calls" | "replay" | null;

function Actions({ webhook, onChanged }: { readonly webhook: TenantWebhook; onChanged(): void }): JSX.Element {
  const { tenant_id: id, webhook_id, url, state } = webhook;
  const path = { id, webhook_id };
  const [asked, setAsked] = useState<Asked>(null);
  const { isRunning, problem, run } = useAction();
  const enable = () => void run(() => call("enableTenantWebhook", { path })).then((isDone) => isDone && onChanged());
  return (
    <>
      <span class="actions">
        <button type="button" aria-label={`Look at ${url}`} onClick={() => setAsked("calls")}>
          Look
        </button>
        {state === "enabled" ? null : (
          <ChangeButton label={`${ENABLE[state]} ${url}`} isDisabled={isRunning} onClick={enable}>
            {ENABLE[state]}
          </ChangeButton>
        )}
        <ChangeButton label={`Tell again… ${url}`} onClick={() => setAsked("replay")}>
          Tell again…
        </ChangeButton>
      </span>
      <ProblemBox problem={problem} />
      {asked === "calls" ? <CallsDialog webhook={webhook} onClose={() => setAsked(null)} /> : null}
      {asked === "replay" ? <ReplayDialog webhook={webhook} onClose={() => setAsked(null)} onDone={onChanged} /> : null}
    </>
  );
}

/** Both are one step of the API. */
const ENABLE = { disabled: "Enable", failing: "Call now" } as const;

function ReplayDialog({
  webhook: { tenant_id: id, webhook_id, url, blocked_by: blocked },
  onClose,
  onDone,
}: {
  readonly webhook: TenantWebhook;
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  return (
    <FormDialog
      title="Tell events again"
      intro={
        <>
          <p>
            <code>{url}</code> of {id} is told the events of a span of time again, in their order and under their ids.
          </p>
          {blocked === null ? null : (
            <p>
              It is stuck at the events through {blocked.through_event_id}. The event id behind which it is to go on
              skips them.
            </p>
          )}
        </>
      }
      label="Tell again"
      fields={[
        { kind: "datetime-local", name: "from", label: "From" },
        { kind: "datetime-local", name: "to", label: "To", hint: "Left empty: until now." },
        {
          kind: "number",
          name: "after",
          label: "Or everything behind this event id",
          min: 0,
          ...(blocked === null ? {} : { value: String(blocked.through_event_id) }),
        },
      ]}
      onClose={onClose}
      onDone={onDone}
      submit={(filled) => {
        const moment = (name: string) => {
          const text = filled.text(name);
          return text === "" ? {} : { [name]: new Date(text).toISOString() };
        };
        const after = filled.text("after");
        const isTimed = filled.text("from") !== "";
        const body =
          isTimed || after === "" ? { ...moment("from"), ...moment("to") } : { after_event_id: Number(after) };
        return call("replayTenantWebhook", { path: { id, webhook_id }, body });
      }}
    />
  );
}

function CallsDialog({
  webhook: { tenant_id: id, webhook_id, url },
  onClose,
}: {
  readonly webhook: TenantWebhook;
  onClose(): void;
}): JSX.Element {
  const path = { id, webhook_id };
  const pages = useLoadPages<WebhookAttempt>(async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    const { attempts, next_cursor } = await call("listTenantWebhookAttempts", { path, query }, { signal });
    return { items: attempts, next: next_cursor };
  }, webhook_id);
  const { isRunning, problem, run } = useAction();
  const test = () => void run(() => call("testTenantWebhook", { path })).then((isDone) => isDone && pages.reload());
  return (
    <Dialog title="Calls of a webhook" onClose={onClose}>
      <p class="intro">
        <code>{url}</code> of {id}
      </p>
      <p class="actions">
        <ChangeButton isDisabled={isRunning} onClick={test}>
          {isRunning ? "Calling…" : "Call it for a test"}
        </ChangeButton>
      </p>
      <ProblemBox problem={problem ?? pages.problem} />
      {pages.items === null ? null : (
        <Table
          caption="Calls"
          rows={pages.items}
          keyOf={({ at, message_id }) => `${at} ${message_id}`}
          empty="It was not called within seven days: its tenant had no event that it asks for."
          columns={CALLS}
        />
      )}
      <More more={pages.more} isLoading={pages.isLoading} />
    </Dialog>
  );
}

const CALLS: readonly Column<WebhookAttempt>[] = [
  { head: "When", isHead: true, cell: ({ at }) => <Time at={at} /> },
  {
    head: "Answer",
    isLong: true,
    cell: ({ delivered, status, error, answer }) => (
      <>
        <Badge tone={delivered ? "good" : "bad"}>{status ?? "none"}</Badge> {error}
        {answer === null ? null : <q>{answer}</q>}
      </>
    ),
  },
  { head: "Of", cell: ({ kind, events }) => (kind === "test" ? "a test" : `${events} ${kind}`) },
  { head: "Took", isNumber: true, cell: ({ duration_ms: ms }) => `${ms} ms` },
];
