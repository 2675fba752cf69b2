import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "./api.ts";
import { FormDialog } from "./dialog.tsx";
import { useAction, useLoad } from "./load.ts";
import { ChangeButton, useMayChange } from "./session.tsx";
import type { TabProps } from "./tab.ts";
import { Badge, Card, type Column, ProblemBox, Table } from "./ui.tsx";
import { type Channel, channelName, counted, listed } from "./words.ts";

const OPERATIONS = {
  pause: "pauseTenant",
  resume: "resumeTenant",
  hold: "holdTenant",
  release: "releaseTenant",
} as const;
type Step = keyof typeof OPERATIONS;

/** Pause, hold and purge, channel by channel and of all at once. */
export function Steering({ tenant, onChanged }: TabProps): JSX.Element {
  const mayChange = useMayChange();
  const { isRunning, problem, run } = useAction();
  const [purged, setPurged] = useState<Channel | null>(null);
  const { id, channels: all, paused, held } = tenant;
  const steer = async (step: Step, channels: readonly Channel[]) => {
    if (await run(() => call(OPERATIONS[step], { path: { id }, body: { channels } }))) onChanged();
  };
  const button = (step: Step, label: string, channels: readonly Channel[]) => (
    <ChangeButton isDisabled={isRunning} onClick={() => void steer(step, channels)}>
      {label}
      <span class="unseen"> {listed(channels.map(channelName))}</span>
    </ChangeButton>
  );
  const changes: Column<Channel> = {
    head: "Change",
    cell: (channel) => (
      <span class="actions">
        {paused.includes(channel) ? button("resume", "Resume", [channel]) : button("pause", "Pause", [channel])}
        {held.includes(channel) ? button("release", "Release", [channel]) : button("hold", "Hold", [channel])}
        <ChangeButton style="danger-quiet" onClick={() => setPurged(channel)}>
          Purge…<span class="unseen"> {channelName(channel)}</span>
        </ChangeButton>
      </span>
    ),
  };
  return (
    <Card
      title="Steering"
      actions={
        <>
          {paused.length < all.length ? button("pause", "Pause all", all) : button("resume", "Resume all", all)}
          {held.length < all.length ? button("hold", "Hold all", all) : button("release", "Release all", all)}
        </>
      }
    >
      <Table
        caption="Steering"
        rows={all}
        keyOf={(channel) => channel}
        empty="The tenant has no channel."
        columns={[...buildColumns(tenant), ...(mayChange ? [changes] : [])]}
      />
      <ProblemBox problem={problem} />
      {purged === null ? null : (
        <PurgeDialog tenant={tenant} channel={purged} onChanged={onChanged} onClose={() => setPurged(null)} />
      )}
    </Card>
  );
}

function buildColumns({ paused, held }: TabProps["tenant"]): readonly Column<Channel>[] {
  const state = (isStopped: boolean, stopped: string, running: string) => (
    <Badge tone={isStopped ? "warn" : "good"}>{isStopped ? stopped : running}</Badge>
  );
  return [
    { head: "Channel", isHead: true, cell: channelName },
    { head: "Deliveries", cell: (channel) => state(paused.includes(channel), "paused: messages wait", "running") },
    { head: "New sends", cell: (channel) => state(held.includes(channel), "on hold: refused", "accepted") },
  ];
}

/** Bound on the unfinished jobs counted before a purge. */
const COUNTED_MAX = 500;

function PurgeDialog({
  tenant: { id, name },
  channel,
  onChanged,
  onClose,
}: TabProps & { readonly channel: Channel; onClose(): void }): JSX.Element {
  const counting = useLoad(async (signal) => {
    const lists = await Promise.all(
      (["pending", "running"] as const).map((status) =>
        call("listJobs", { path: { id }, query: { channel, status, limit: COUNTED_MAX } }, { signal }),
      ),
    );
    const isMore = lists.some(({ next_cursor, incomplete }) => next_cursor !== null || incomplete);
    return { jobs: lists.reduce((sum, { jobs }) => sum + jobs.length, 0), isMore };
  }, channel);
  const { data, problem } = counting;
  const much = data === null ? "…" : `${data.isMore ? "more than " : ""}${counted(data.jobs, "unfinished job")}`;
  return (
    <FormDialog
      title={`Purge ${channelName(channel)} of ${name}`}
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
      submit={() => call("purgeTenant", { path: { id }, body: { channels: [channel] } })}
    />
  );
}
