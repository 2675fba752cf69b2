import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { MeasuredShard } from "../../src/domain/jobs/queue-depth.ts";
import type { ProcessStatus } from "../../src/domain/process-status.ts";
import { findAlarms, KNOWN_ALERTS, linkRunbook } from "../../src/operators/overview/alarms.ts";
import { overviewBody } from "../../src/operators/overview/body.ts";
import { type Facts, firstMinuteMs, MINUTE_MS } from "../../src/operators/overview/facts.ts";
import { Overview, type OverviewPorts } from "../../src/operators/overview/overview.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

const NOW_MS = Date.parse("2026-11-22T20:00:30Z");
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

function depth(shard: number, changes: Partial<MeasuredShard> = {}): MeasuredShard {
  return { shard, tenantQueues: 0, measured: [], parked: 0, oldestEventMs: null, ...changes };
}

function status(name: string, changes: Partial<ProcessStatus> = {}): ProcessStatus {
  return {
    name,
    roles: ["dispatcher"],
    startedAtMs: NOW_MS - DAY_MS,
    toldAtMs: NOW_MS,
    delivers: [],
    records: [],
    loopDelayMs: 2,
    breakers: [],
    paused: [],
    ...changes,
  };
}

const CALM: Facts = {
  nowMs: NOW_MS,
  channels: ["email", "wallet"],
  queue: {
    depths: [depth(0)],
    memory: { usedBytes: 100, maxBytes: 1_000 },
    unowned: { dispatcher: 0, recorder: 0 },
  },
  processes: { statuses: [status("a")], accepted: [], acceptedToday: 0 },
  rates: { minutes: [], today: new Map() },
  registry: { tenants: 1, expiring: [], disabledWebhooks: [], governed: [] },
  readiness: { failing: [], away: [] },
};

const { queue: CALM_QUEUE } = CALM;
if (CALM_QUEUE === null) throw new Error("the queue is known");
const events = (type: "sent" | "bounced" | "failed", count: number) => ({
  minuteMs: firstMinuteMs(NOW_MS) + 50 * MINUTE_MS,
  channel: "email",
  type,
  events: count,
});
const breaker = (sinceMs: number) =>
  ({ channel: "email", relay: "mx:25", state: "open", sinceMs, waitingJobs: 3 }) as const;
const waiting = (seconds: number, waits: "turn" | "paused" = "turn") =>
  depth(0, {
    tenantQueues: 1,
    measured: [{ tenantId: "acme", channel: "email", jobs: 1, oldestMs: NOW_MS - seconds * SECOND_MS, waits }],
  });
const away = (part: string): Partial<Facts> => ({ readiness: { failing: [], away: [{ part, sinceMs: NOW_MS }] } });
const oneProcess = (changes: Partial<ProcessStatus>): Partial<Facts> => ({
  processes: { statuses: [status("a", changes)], accepted: [], acceptedToday: 0 },
});
const ending = (days: number, kind = "apple_certificate"): Partial<Facts> => ({
  registry: {
    tenants: 1,
    expiring: [{ kind, tenantId: null, name: "n", expiresAtMs: NOW_MS + days * DAY_MS }],
    disabledWebhooks: [],
    governed: [],
  },
});
const rates = (sent: number, other: ReturnType<typeof events>): Partial<Facts> => ({
  rates: { minutes: [events("sent", sent), other], today: new Map() },
});

const DISABLED = { tenantId: "acme", webhookId: "w", reason: "gone", atMs: NOW_MS } as const;

const GOVERNED = { tenantId: "acme", level: "warned", sinceMs: NOW_MS } as const;

/** The facts that raise each alert, and facts just below its threshold. */
const CASES: readonly [alert: string, raised: Partial<Facts>, calm: Partial<Facts>][] = [
  ["WaybillPartAway", away("clickhouse"), away("relay mx:25")],
  ["WaybillProcessDown", away("process api-1"), {}],
  [
    "WaybillShardUnowned",
    { queue: { ...CALM_QUEUE, unowned: { dispatcher: 0, recorder: 2 } } },
    { queue: { ...CALM_QUEUE, unowned: { dispatcher: 0, recorder: 0 } } },
  ],
  [
    "WaybillRedisMemoryHigh",
    { queue: { ...CALM_QUEUE, memory: { usedBytes: 801, maxBytes: 1_000 } } },
    { queue: { ...CALM_QUEUE, memory: { usedBytes: 801, maxBytes: null } } },
  ],
  [
    "WaybillBacklogOld",
    { queue: { ...CALM_QUEUE, depths: [waiting(901)] } },
    { queue: { ...CALM_QUEUE, depths: [waiting(899), waiting(9_000, "paused")] } },
  ],
  [
    "WaybillBreakerOpen",
    oneProcess({ breakers: [breaker(NOW_MS - 6 * MINUTE_MS)] }),
    oneProcess({ breakers: [breaker(NOW_MS - 4 * MINUTE_MS)] }),
  ],
  [
    "WaybillEventStoreLag",
    { queue: { ...CALM_QUEUE, depths: [depth(0, { oldestEventMs: NOW_MS - 61 * SECOND_MS })] } },
    { queue: { ...CALM_QUEUE, depths: [depth(0, { oldestEventMs: NOW_MS - 59 * SECOND_MS })] } },
  ],
  ["WaybillBounceRateHigh", rates(101, events("bounced", 6)), rates(99, events("bounced", 50))],
  ["WaybillFailureRateHigh", rates(100, events("failed", 21)), rates(300, events("failed", 21))],
  ["WaybillCredentialExpiring", ending(13), ending(15)],
  [
    "WaybillWebhookDisabled",
    { registry: { tenants: 1, expiring: [], disabledWebhooks: [DISABLED], governed: [] } },
    {},
  ],
  ["WaybillTenantGoverned", { registry: { tenants: 1, expiring: [], disabledWebhooks: [], governed: [GOVERNED] } }, {}],
  ["WaybillEventLoopSlow", oneProcess({ loopDelayMs: 251 }), oneProcess({ loopDelayMs: 249 })],
  ["WaybillMailLogBehind", away("mail log"), away("spam filter was away")],
];

test.each(CASES)("the alarm of %s is raised at its threshold, and not below it", (alert, raised, calm) => {
  const alarmsAt = (changes: Partial<Facts>) => findAlarms({ ...CALM, ...changes }).map(({ runbook }) => runbook);
  expect(alarmsAt(raised)).toEqual([linkRunbook(alert)]);
  expect(alarmsAt(calm)).not.toContain(linkRunbook(alert));
});

test("every alarm is an alert of Prometheus, of the same weight, with a section in the runbook", async () => {
  const read = (file: string) => readFile(join(import.meta.dir, "../..", file), "utf8");
  const [alerts, runbook] = await Promise.all([read("infra/prometheus/alerts.yaml"), read("docs/runbook.md")]);
  expect(KNOWN_ALERTS.map(({ alert }) => alert).toSorted()).toEqual(CASES.map(([alert]) => alert).toSorted());
  for (const { alert, severity } of KNOWN_ALERTS) {
    const [, known] = new RegExp(`alert: ${alert}\\n[^]*?severity: (\\w+)`).exec(alerts) ?? [];
    expect([alert, severity]).toEqual([alert, known === "critical" ? "page" : "ticket"]);
    expect(runbook).toContain(`## ${alert}\n`);
  }
});

test("nothing is wrong, and nobody is told so", () => {
  expect(findAlarms(CALM)).toEqual([]);
  expect(findAlarms({ ...CALM, ...ending(3, "api_key") })).toEqual([]);
});

test("what many share is told in a few lines", () => {
  const breakers = Array.from({ length: 40 }, () => breaker(NOW_MS - DAY_MS));
  expect(findAlarms({ ...CALM, ...oneProcess({ breakers }) }).map(({ title }) => title)).toEqual([
    ...Array.from({ length: 10 }, () => "mx:25 is away"),
    "30 more",
  ]);
});

test("the overview counts the minutes of an hour, and names the longest and the oldest tenant queues", () => {
  const fromMs = firstMinuteMs(NOW_MS);
  const queues = (shard: number) =>
    Array.from({ length: 60 }, (_, n) => ({
      tenantId: `t${shard}-${n}`,
      channel: "email",
      jobs: 100 - n,
      oldestMs: NOW_MS - n * SECOND_MS,
      waits: "turn" as const,
    }));
  const body = overviewBody({
    ...CALM,
    queue: {
      ...CALM_QUEUE,
      depths: [
        depth(0, { measured: queues(0), tenantQueues: 61, parked: 5, oldestEventMs: NOW_MS - 400 }),
        depth(1, { measured: [], oldestEventMs: NOW_MS - 2_600 }),
      ],
    },
    processes: {
      statuses: [status("a", { delivers: [0, 1], records: [0] }), status("b", { records: [1] })],
      accepted: [
        { minuteMs: fromMs - MINUTE_MS, channel: "email", jobs: 100 },
        { minuteMs: fromMs, channel: "email", jobs: 4 },
        { minuteMs: fromMs + 59 * MINUTE_MS, channel: "wallet", jobs: 2 },
      ],
      acceptedToday: 106,
    },
    rates: {
      minutes: [{ minuteMs: fromMs + MINUTE_MS, channel: "email", type: "delivered", events: 3 }],
      today: new Map([["delivered", 7]]),
    },
  });
  expect(body.totals).toMatchObject({ tenants: 1, accepted_today: 106, delivered_today: 7, failed_today: 0 });
  expect(body.queue).toMatchObject({ incomplete: true, oldest_seconds: 59, outbox_oldest_seconds: 2.6 });
  expect(body.queue.depth).toBe(queues(0).reduce((sum, { jobs }) => sum + jobs, 5));
  expect([body.rates.from, body.rates.series.length]).toEqual(["2026-11-22T19:01:00.000Z", 10]);
  const counts = (channel: string, outcome: string) =>
    body.rates.series.find((one) => one.channel === channel && one.outcome === outcome)?.counts ?? [];
  expect([counts("email", "accepted").length, counts("email", "accepted")[0]]).toEqual([60, 4]);
  expect([counts("wallet", "accepted")[59], counts("email", "delivered")[1]]).toEqual([2, 3]);
  expect(body.shards.map(({ shard, process }) => [shard, process])).toEqual([
    [0, "a"],
    [1, "a"],
  ]);
  expect(body.processes.map(({ shards, event_store_lag_seconds: lag }) => [shards, lag])).toEqual([
    [2, 0.4],
    [1, 2.6],
  ]);
  // The fifty longest are t0-0 to t0-49, the fifty oldest t0-10 to t0-59.
  expect(new Set(body.tenants.map(({ tenant_id: id }) => id)).size).toBe(60);
});

/** The two shards of `ports`. */
const OWNS_BOTH = { delivers: [0, 1], records: [0, 1] };

function ports(changes: Partial<OverviewPorts> = {}): OverviewPorts {
  return {
    queue: {
      depth: async (shard) => depth(shard),
      memory: async () => ({ usedBytes: 1, maxBytes: null }),
      statuses: { statuses: async () => ({ statuses: [status("a", OWNS_BOTH)], accepted: [], acceptedToday: 9 }) },
    },
    rates: { minutes: async () => [], sumsSince: async () => new Map() },
    registry: { tenantCount: async () => 2, expiring: async () => [], reputations: async () => new Map() },
    webhooks: { disabled: async () => [] },
    platformExpiring: () => [],
    readiness: { look: async () => ({ failing: [], away: [] }) },
    shards: 2,
    channels: ["email"],
    clock: new ManualClock(),
    telemetry: new QuietTelemetry(),
    ...changes,
  };
}

const gone = () => Promise.reject(new Error("gone"));
const silent = () => new Promise<never>(() => {});

test("a store that fails, or never answers, costs the overview its own members alone, and an alarm says which it is", async () => {
  const noEvents = await new Overview(ports({ rates: { minutes: gone, sumsSince: gone } })).now();
  expect(noEvents.totals).toMatchObject({ tenants: 2, accepted_today: 9, delivered_today: null });
  expect(noEvents.rates.series.map(({ outcome }) => outcome)).toEqual(["accepted"]);
  expect(noEvents.alarms.map(({ severity, title }) => [severity, title])).toEqual([["page", "clickhouse is away"]]);

  const clock = new ManualClock();
  const queue = { depth: silent, memory: silent, statuses: { statuses: silent } };
  const overview = new Overview(ports({ clock, queue }));
  const asked = overview.now();
  await Bun.sleep(0);
  clock.forward(1_600);
  const noRedis = await asked;
  expect(noRedis).toMatchObject({ totals: { tenants: 2, accepted_today: null }, shards: [], tenants: [] });
  expect(noRedis.queue.depth).toBeNull();
  expect(noRedis.alarms.map(({ title }) => title)).toEqual(["redis is away"]);
});

test("many who ask at once, and again, cost one look; a slow store has one reading at a time", async () => {
  const clock = new ManualClock();
  let [depths, sums] = [0, 0];
  const slow = Promise.withResolvers<readonly never[]>();
  const given = ports({ clock, shards: 1 });
  const overview = new Overview({
    ...given,
    queue: { ...given.queue, depth: async (shard) => depth(shard, { parked: (depths += 1) }) },
    rates: {
      minutes: () => {
        sums += 1;
        return slow.promise;
      },
      sumsSince: async () => new Map(),
    },
  });
  for (let round = 1; round <= 3; round += 1) {
    const asked = Array.from({ length: 10 }, () => overview.now());
    await Bun.sleep(0);
    clock.forward(1_600);
    const told = await Promise.all(asked);
    expect(new Set(told.map(({ queue }) => queue.depth))).toEqual(new Set([round]));
    expect((await overview.now()).queue.depth).toBe(round);
    expect([depths, sums, told[0]?.totals.delivered_today]).toEqual([round, 1, null]);
    clock.forward(2_000);
  }
  slow.resolve([]);
  await Bun.sleep(0);
  expect((await overview.now()).totals.delivered_today).toBe(0);
});
