import type { EventType } from "../../domain/jobs/event.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { QueueFacts } from "../../domain/jobs/queue-depth.ts";
import { type Facts, MINUTE_MS } from "./facts.ts";

/** The urgency: a person is needed now (`page`), or soon (`ticket`). */
export interface Alarm extends Found {
  readonly severity: "page" | "ticket";
  /** The section of the runbook. */
  readonly runbook: string;
}

interface Found {
  readonly title: string;
  readonly detail: string;
  /** The channel and the tenant that it is about, where it is about one. */
  readonly channel?: ChannelName;
  readonly tenantId?: string;
  /** The last minutes over which the rates of its channel were measured. */
  readonly minutes?: number;
}

interface Rule {
  /** The name of the alert in `infra/prometheus/alerts.yaml` with the same thresholds. */
  readonly alert: string;
  readonly severity: Alarm["severity"];
  find(facts: Facts): readonly Found[];
}

const BACKLOG_SECONDS = 900;
const LAG_SECONDS = 60;
const MEMORY_PART = 0.8;
const EXPIRY_DAYS = 14;
const LOOP_DELAY_MS = 250;
const BREAKER_MS = 5 * MINUTE_MS;
const BOUNCED_PART = 0.05;
const BOUNCE_SENT_MIN = 100;
const FAILED_PART = 0.1;
const FAILED_MIN = 20;
const FAILED_MINUTES = 30;
const DAY_MS = 86_400_000;
/** Alarms per rule; the last one counts the rest. */
const FOUND_MAX = 10;

/** Parts with a separate alert. */
const OWN_ALERTS = /^(?:relay |relays of |mail log$|process |dispatcher$|recorder$)/;

/**
 * The alerts whose values the overview contains, with their thresholds. Prometheus waits before it notifies; the overview shows
 * them at once.
 */
const RULES: readonly Rule[] = [
  {
    alert: "WaybillPartAway",
    severity: "page",
    find: (facts) => partsAway(facts).map((part) => ({ title: `${part} is away`, detail: "it does not answer" })),
  },
  {
    alert: "WaybillProcessDown",
    severity: "page",
    find: ({ readiness }) =>
      (readiness?.away ?? [])
        .filter(({ part }) => part.startsWith("process "))
        .map(({ part, sinceMs }) => ({
          title: `the ${part} does not come back`,
          detail: `down since ${isoTime(sinceMs)}`,
        })),
  },
  {
    alert: "WaybillShardUnowned",
    severity: "page",
    find: ({ queue }) =>
      (["dispatcher", "recorder"] as const).flatMap((role) => {
        const count = queue?.unowned[role] ?? 0;
        return count === 0
          ? []
          : [{ title: `${shards(count)} no ${role}`, detail: `no running process ${WORK[role]} what waits there` }];
      }),
  },
  {
    alert: "WaybillRedisMemoryHigh",
    severity: "page",
    find({ queue }) {
      const { usedBytes = 0, maxBytes = null } = queue?.memory ?? {};
      if (maxBytes === null || usedBytes <= MEMORY_PART * maxBytes) return [];
      return [{ title: `Redis uses ${percent(usedBytes / maxBytes)} of its memory`, detail: "full, it refuses jobs" }];
    },
  },
  {
    alert: "WaybillBacklogOld",
    severity: "ticket",
    find: ({ queue, channels, nowMs }) =>
      channels.flatMap((channel) => {
        const oldest = oldestInTurn(queue, channel);
        const seconds = oldest === null ? 0 : (nowMs - oldest.oldestMs) / 1_000;
        if (oldest === null || seconds <= BACKLOG_SECONDS) return [];
        const detail = `the oldest, of ${oldest.tenantId}, for ${duration(seconds)}`;
        const { tenantId } = oldest;
        return [{ title: `messages on ${channel} wait`, detail, channel, tenantId }];
      }),
  },
  {
    alert: "WaybillBreakerOpen",
    severity: "ticket",
    find: ({ processes, nowMs }) =>
      (processes?.statuses ?? [])
        .flatMap(({ breakers }) => breakers)
        .filter(({ sinceMs }) => nowMs - sinceMs > BREAKER_MS)
        .map(({ channel, relay, sinceMs, why, waitingJobs }) => ({
          title: `${relay} is away`,
          channel,
          detail: `since ${isoTime(sinceMs)}; ${waitingJobs} messages on ${channel} wait for it${why ? `: ${why}` : ""}`,
        })),
  },
  {
    alert: "WaybillEventStoreLag",
    severity: "ticket",
    find({ queue, nowMs }) {
      const seconds = lagSeconds(queue, nowMs);
      if (seconds <= LAG_SECONDS) return [];
      return [{ title: "events reach the event store late", detail: `the oldest waits for ${duration(seconds)}` }];
    },
  },
  {
    alert: "WaybillBounceRateHigh",
    severity: "ticket",
    find: (facts) =>
      facts.channels.flatMap((channel) => {
        const [bounced, sent] = [countEvents(facts, channel, "bounced", 60), countEvents(facts, channel, "sent", 60)];
        if (sent <= BOUNCE_SENT_MIN || bounced <= BOUNCED_PART * sent) return [];
        const title = `${percent(bounced / sent)} of ${channel} bounces`;
        return [{ title, detail: `${bounced} in the last hour`, channel, minutes: 60 }];
      }),
  },
  {
    alert: "WaybillFailureRateHigh",
    severity: "ticket",
    find: (facts) =>
      facts.channels.flatMap((channel) => {
        const failed = countEvents(facts, channel, "failed", FAILED_MINUTES);
        const all = failed + countEvents(facts, channel, "sent", FAILED_MINUTES);
        if (failed <= FAILED_MIN || failed <= FAILED_PART * all) return [];
        const title = `${percent(failed / all)} of ${channel} fails`;
        return [{ title, detail: `${failed} in the last half hour`, channel, minutes: FAILED_MINUTES }];
      }),
  },
  {
    alert: "WaybillCredentialExpiring",
    severity: "ticket",
    find: ({ registry, nowMs }) =>
      (registry?.expiring ?? [])
        .filter(({ kind, expiresAtMs }) => kind !== "api_key" && expiresAtMs - nowMs < EXPIRY_DAYS * DAY_MS)
        .map(({ name, tenantId, expiresAtMs }) => ({
          title: `the certificate ${name} of ${tenantId ?? "the platform"} ${expiresAtMs < nowMs ? "has expired" : "expires"}`,
          detail: `on ${isoTime(expiresAtMs)}`,
        })),
  },
  {
    alert: "WaybillWebhookDisabled",
    severity: "ticket",
    find: ({ registry }) =>
      (registry?.disabledWebhooks ?? []).map(({ tenantId, webhookId, reason, atMs }) => ({
        title: `a webhook of ${tenantId} is disabled`,
        tenantId,
        detail: `${webhookId}, since ${isoTime(atMs)}: ${reason === "gone" ? "its receiver answered 410" : "it took nothing for three days"}`,
      })),
  },
  {
    alert: "WaybillTenantGoverned",
    severity: "ticket",
    find: ({ registry }) =>
      (registry?.governed ?? []).map(({ tenantId, level, sinceMs }) => ({
        title: `the e-mail of ${tenantId} is ${GOVERNED[level]}`,
        detail: `too much of it bounces or is reported as spam, since ${isoTime(sinceMs)}`,
      })),
  },
  {
    alert: "WaybillEventLoopSlow",
    severity: "ticket",
    find: ({ processes }) =>
      (processes?.statuses ?? [])
        .filter(({ loopDelayMs }) => loopDelayMs > LOOP_DELAY_MS)
        .map(({ name, loopDelayMs }) => ({
          title: `${name} stands still`,
          detail: `for ${Math.round(loopDelayMs)} ms at a time`,
        })),
  },
  {
    alert: "WaybillMailLogBehind",
    severity: "ticket",
    find: ({ readiness }) =>
      (readiness?.away ?? [])
        .filter(({ part }) => part === "mail log")
        .map(({ sinceMs }) => ({ title: "the mail log is not followed", detail: `since ${isoTime(sinceMs)}` })),
  },
];

const GOVERNED = { warned: "near its limits", slowed: "slowed", held: "on hold" } as const;
const WORK = { dispatcher: "delivers", recorder: "records" } as const;

/** Returns the active alarms, urgent ones first. Pure. */
export function findAlarms(facts: Facts): readonly Alarm[] {
  const alarms = RULES.flatMap(({ alert, severity, find }) =>
    limited(find(facts)).map((found) => ({ severity, ...found, runbook: linkRunbook(alert) })),
  );
  return [...alarms.filter(({ severity }) => severity === "page"), ...alarms.filter((one) => one.severity !== "page")];
}

/** The alerts in the overview, with the values that they share with it. */
export const KNOWN_ALERTS: readonly Pick<Rule, "alert" | "severity">[] = RULES;

export function linkRunbook(alert: string): string {
  return `docs/runbook.md#${alert.toLowerCase()}`;
}

function limited(found: readonly Found[]): readonly Found[] {
  const more = found.length - FOUND_MAX;
  if (more <= 0) return found;
  return [...found.slice(0, FOUND_MAX), { title: `${more} more`, detail: "of the same kind" }];
}

/** Part names, as in `/ready`. */
function partsAway({ queue, processes, rates, registry, readiness }: Facts): readonly string[] {
  const parts = new Set((readiness?.away ?? []).map(({ part }) => part).filter((part) => !OWN_ALERTS.test(part)));
  const hasPart = (name: string) => Array.from(parts).some((part) => part === name || part.startsWith(`${name} `));
  for (const [name, known] of [
    ["redis", queue !== null && processes !== null],
    ["clickhouse", rates !== null],
    ["registry", registry !== null],
  ] as const) {
    if (!known && !hasPart(name)) parts.add(name);
  }
  return [...parts];
}

/** Finds the tenant queue whose first job has waited longest, except for paused ones. */
function oldestInTurn(queue: QueueFacts | null, channel: ChannelName) {
  let oldest: { readonly tenantId: string; readonly oldestMs: number } | null = null;
  for (const { tenantId, oldestMs, ...one } of (queue?.depths ?? []).flatMap(({ measured }) => measured)) {
    if (one.channel !== channel || one.waits !== "turn" || oldestMs === null) continue;
    if (oldest === null || oldestMs < oldest.oldestMs) oldest = { tenantId, oldestMs };
  }
  return oldest;
}

/** Returns how long the oldest event has waited for the event store. */
export function lagSeconds(queue: Pick<QueueFacts, "depths"> | null, nowMs: number): number {
  const times = (queue?.depths ?? []).flatMap(({ oldestEventMs }) => oldestEventMs ?? []);
  return Math.max(0, (nowMs - Math.min(nowMs, ...times)) / 1_000);
}

function countEvents({ rates, nowMs }: Facts, channel: ChannelName, type: EventType, minutes: number): number {
  const fromMs = nowMs - minutes * MINUTE_MS;
  return (rates?.minutes ?? [])
    .filter((one) => one.channel === channel && one.type === type && one.minuteMs >= fromMs)
    .reduce((sum, { events }) => sum + events, 0);
}

function shards(count: number): string {
  return count === 1 ? "1 shard has" : `${count} shards have`;
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

function isoTime(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
