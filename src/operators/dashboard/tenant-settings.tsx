import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "./api.ts";
import { FormDialog } from "./dialog.tsx";
import { useAction, useLoad } from "./load.ts";
import { useMayChange } from "./session.ts";
import type { TabProps } from "./tenant.tsx";
import { tenantFields, tenantFrom, usePlans } from "./tenants.tsx";
import { Badge, Card, Channels, type Column, Facts, ProblemBox, Table, Time } from "./ui.tsx";
import { type Channel, channelName, count, counted } from "./words.ts";

/** What a tenant may do, and what stops it. */
export function SettingsTab(props: TabProps): JSX.Element {
  const { tenant } = props;
  const mayChange = useMayChange();
  const [open, setOpen] = useState<"change" | "webhook" | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <Steering {...props} />
      <Card
        title="Settings"
        actions={
          mayChange ? (
            <>
              <button type="button" onClick={() => setOpen("change")}>
                Change
              </button>
              <button type="button" onClick={() => setOpen("webhook")}>
                Wallet webhook
              </button>
            </>
          ) : undefined
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

type Step = "pause" | "resume" | "hold" | "release";
const OPERATIONS = {
  pause: "pauseTenant",
  resume: "resumeTenant",
  hold: "holdTenant",
  release: "releaseTenant",
} as const;

/** Pause, hold and purge, channel by channel and of all at once. */
function Steering({ tenant, onChanged }: TabProps): JSX.Element {
  const mayChange = useMayChange();
  const { isRunning, problem, run } = useAction();
  const [purged, setPurged] = useState<readonly Channel[] | null>(null);
  const steer = (step: Step, channels: readonly Channel[]) =>
    void run(() => call(OPERATIONS[step], { path: { id: tenant.id }, body: { channels } })).then(
      (isDone) => isDone && onChanged(),
    );
  const button = (step: Step, label: string, channels: readonly Channel[]) => (
    <button type="button" disabled={isRunning} onClick={() => steer(step, channels)}>
      {label}
      <span class="unseen"> {channels.map(channelName).join(", ")}</span>
    </button>
  );
  const all = tenant.channels;
  const columns: readonly Column<Channel>[] = [
    { head: "Channel", isHead: true, cell: channelName },
    {
      head: "Deliveries",
      cell: (channel) => (
        <Badge tone={tenant.paused.includes(channel) ? "warn" : "good"}>
          {tenant.paused.includes(channel) ? "paused: messages wait" : "running"}
        </Badge>
      ),
    },
    {
      head: "New sends",
      cell: (channel) => (
        <Badge tone={tenant.held.includes(channel) ? "warn" : "good"}>
          {tenant.held.includes(channel) ? "on hold: refused" : "accepted"}
        </Badge>
      ),
    },
  ];
  const changes: Column<Channel> = {
    head: "Change",
    cell: (channel) => (
      <span class="actions">
        {tenant.paused.includes(channel) ? button("resume", "Resume", [channel]) : button("pause", "Pause", [channel])}
        {tenant.held.includes(channel) ? button("release", "Release", [channel]) : button("hold", "Hold", [channel])}
        <button type="button" class="danger-quiet" onClick={() => setPurged([channel])}>
          Purge…<span class="unseen"> {channelName(channel)}</span>
        </button>
      </span>
    ),
  };
  return (
    <Card
      title="Steering"
      actions={
        mayChange && all.length > 1 ? (
          <>
            {tenant.paused.length < all.length
              ? button("pause", "Pause all", all)
              : button("resume", "Resume all", all)}
            {tenant.held.length < all.length ? button("hold", "Hold all", all) : button("release", "Release all", all)}
          </>
        ) : undefined
      }
    >
      <Table
        caption="Steering"
        rows={all}
        keyOf={(channel) => channel}
        empty="The tenant has no channel."
        columns={mayChange ? [...columns, changes] : columns}
      />
      <ProblemBox problem={problem} />
      {purged === null ? null : (
        <PurgeDialog tenant={tenant} channels={purged} onChanged={onChanged} onClose={() => setPurged(null)} />
      )}
    </Card>
  );
}

/** So many unfinished jobs are counted before a purge. */
const COUNTED_MAX = 500;

function PurgeDialog({
  tenant,
  channels,
  onChanged,
  onClose,
}: TabProps & { readonly channels: readonly Channel[]; onClose(): void }): JSX.Element {
  const names = channels.map(channelName).join(", ");
  const counting = useLoad(async (signal) => {
    const lists = await Promise.all(
      channels.flatMap((channel) =>
        (["pending", "running"] as const).map((status) =>
          call("listJobs", { path: { id: tenant.id }, query: { channel, status, limit: COUNTED_MAX } }, { signal }),
        ),
      ),
    );
    const isMore = lists.some(({ next_cursor, incomplete }) => next_cursor !== null || incomplete);
    return { jobs: lists.reduce((sum, { jobs }) => sum + jobs.length, 0), isMore };
  }, channels.join());
  const { data, problem } = counting;
  const much = data === null ? "…" : `${data.isMore ? "more than " : ""}${counted(data.jobs, "unfinished job")}`;
  return (
    <FormDialog
      title={`Purge ${names} of ${tenant.name}`}
      intro={
        <>
          <p>
            <strong>{much}</strong> will end as failed with the error “purged by an operator”, and wallet tokens are
            given back. This cannot be undone. Deliveries in flight end as they end; messages that are accepted from now
            on are not touched.
          </p>
          <ProblemBox problem={problem} />
        </>
      }
      label={data === null ? "Purge" : `Purge ${much}`}
      isDangerous
      fields={[]}
      onClose={onClose}
      onDone={onChanged}
      submit={() => call("purgeTenant", { path: { id: tenant.id }, body: { channels } })}
    />
  );
}
