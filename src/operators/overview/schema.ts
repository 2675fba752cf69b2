import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { QUEUE_WAITS } from "../../domain/process-status.ts";
import { enumSchema, Timestamp } from "../../http/schemas.ts";

export const OUTCOMES = ["accepted", "delivered", "bounced", "failed", "suppressed"] as const;

const nullable = <S extends TSchema>(schema: S, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });

const Count = Type.Integer({ minimum: 0 });
const Seconds = Type.Number({ minimum: 0 });
const Counts = Type.Array(Count, { description: "By minute, oldest first; the last minute is still running." });
const TenantId = Type.String();

const Totals = Type.Object({
  tenants: nullable(Count),
  accepted_today: nullable(Count, "Since the UTC day began, as all of these."),
  sent_today: nullable(Count, "Handed over to a provider."),
  delivered_today: nullable(Count),
  bounced_today: nullable(Count),
  failed_today: nullable(Count),
});

const QueueTotals = Type.Object({
  depth: nullable(Count, "Unfinished jobs."),
  incomplete: Type.Boolean({ description: "There are more tenant queues than are measured: depths are too low." }),
  oldest_seconds: nullable(Seconds, "Age of the oldest job in a tenant queue; 0: none waits."),
  outbox_oldest_seconds: nullable(
    Seconds,
    "Age of the oldest event that the event store does not have; 0: it has all.",
  ),
  redis_memory_bytes: nullable(Count, "For a cluster, the memory of its fullest server."),
  redis_memory_limit_bytes: nullable(Count, "The memory that it may use, or that its machine has."),
});

function ratesSchema(channels: readonly ChannelName[]) {
  const channel = enumSchema(channels);
  return Type.Object({
    from: Timestamp,
    interval_seconds: Type.Integer(),
    series: Type.Array(Type.Object({ channel, outcome: enumSchema(OUTCOMES), counts: Counts })),
    sent: Type.Array(Type.Object({ channel, counts: Counts }), { description: "Handed over to a provider." }),
  });
}

const Shard = Type.Object({
  shard: Type.Integer(),
  depth: Count,
  oldest_seconds: Seconds,
  process: nullable(Type.String(), "The process that delivers it."),
});

function processSchema(channels: readonly ChannelName[]) {
  const channel = enumSchema(channels);
  return Type.Object({
    name: Type.String({ description: "Host, place in its start, process id." }),
    roles: Type.Array(Type.String()),
    started_at: Timestamp,
    shards: Count,
    loop_delay_ms: Type.Number({ description: "By how much its event loop was late in the last seconds, at most." }),
    event_store_lag_seconds: nullable(Seconds, "The lag of the shards that it records; null: it records none."),
    breakers: Type.Array(
      Type.Object({
        channel,
        relay: Type.String(),
        state: enumSchema(["open", "half_open"]),
        since: Timestamp,
        why: Type.Optional(Type.String({ description: "The server's last words, or what it did instead." })),
        waiting_jobs: Count,
      }),
      { description: "Relays that it finds away; at most 50, those with the most waiting jobs." },
    ),
    paused: Type.Array(Type.Object({ tenant_id: TenantId, channel }), {
      description: "Tenants whose jobs wait because an operator paused them; at most 50.",
    }),
  });
}

const Expiring = Type.Object({
  kind: Type.String({ description: "`apple_certificate` or `api_key`." }),
  tenant_id: nullable(TenantId, "Null: the platform's own."),
  name: Type.String(),
  expires_at: Timestamp,
});

function alarmSchema(channels: readonly ChannelName[]) {
  return Type.Object({
    severity: enumSchema(["page", "ticket"], "`page`: now; `ticket`: soon."),
    title: Type.String(),
    detail: Type.String(),
    runbook: Type.String({ description: "The section of the runbook with the remedy." }),
    channel: Type.Optional(enumSchema(channels)),
    tenant_id: Type.Optional(TenantId),
    minutes: Type.Optional(Type.Integer({ description: "The last minutes of the rates over which it was measured." })),
  });
}

export function overviewSchema(channels: readonly ChannelName[]) {
  return Type.Object(
    {
      at: Timestamp,
      totals: Totals,
      queue: QueueTotals,
      rates: ratesSchema(channels),
      shards: Type.Array(Shard),
      tenants: Type.Array(
        Type.Object({
          tenant_id: TenantId,
          channel: enumSchema(channels),
          depth: Count,
          oldest_seconds: Seconds,
          waits: enumSchema(
            QUEUE_WAITS,
            "Why its first job waits: for its turn, because an operator paused it, for the warm-up or the pace of its sender, or for a relay that is away.",
          ),
        }),
        { description: "The 50 longest tenant queues, and the 50 with the oldest jobs." },
      ),
      processes: Type.Array(processSchema(channels)),
      expiring: Type.Array(Expiring, { description: "Within 30 days, soonest first; at most 50." }),
      alarms: Type.Array(alarmSchema(channels), { description: "The urgent first." }),
    },
    { $id: "Overview" },
  );
}

export type OverviewBody = Static<ReturnType<typeof overviewSchema>>;

export const OVERVIEW_EXAMPLE: OverviewBody = {
  at: "2026-11-22T20:00:00.000Z",
  totals: {
    tenants: 3,
    accepted_today: 120,
    sent_today: 104,
    delivered_today: 100,
    bounced_today: 1,
    failed_today: 2,
  },
  queue: {
    depth: 17,
    incomplete: false,
    oldest_seconds: 4.2,
    outbox_oldest_seconds: 0.3,
    redis_memory_bytes: 52_428_800,
    redis_memory_limit_bytes: null,
  },
  rates: {
    from: "2026-11-22T19:01:00.000Z",
    interval_seconds: 60,
    series: [{ channel: "email", outcome: "delivered", counts: Array.from({ length: 60 }, (_, at) => at % 7) }],
    sent: [{ channel: "email", counts: Array.from({ length: 60 }, (_, at) => at % 7) }],
  },
  shards: [{ shard: 0, depth: 3, oldest_seconds: 1, process: "mail-1/main:4711" }],
  tenants: [{ tenant_id: "acme", channel: "email", depth: 3, oldest_seconds: 1, waits: "turn" }],
  processes: [
    {
      name: "mail-1/main:4711",
      roles: ["api", "dispatcher", "recorder"],
      started_at: "2026-11-22T08:00:00.000Z",
      shards: 16,
      loop_delay_ms: 2.1,
      event_store_lag_seconds: 0.4,
      breakers: [
        {
          channel: "email",
          relay: "mx.example.org:25",
          state: "open",
          since: "2026-11-22T19:58:30.000Z",
          why: "the mail server could not be reached or dropped the connection",
          waiting_jobs: 12,
        },
      ],
      paused: [{ tenant_id: "acme", channel: "email" }],
    },
  ],
  expiring: [
    {
      kind: "apple_certificate",
      tenant_id: "acme",
      name: "pass.com.acme.ticket",
      expires_at: "2026-12-01T00:00:00.000Z",
    },
  ],
  alarms: [
    {
      severity: "ticket",
      title: "the certificate pass.com.acme.ticket of acme expires",
      detail: "on 2026-12-01T00:00:00.000Z",
      runbook: "docs/runbook.md#waybillcredentialexpiring",
    },
  ],
};
