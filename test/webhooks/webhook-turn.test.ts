import { expect, test } from "bun:test";
import { UnavailableError } from "../../src/domain/errors.ts";
import { EVENT_IDS_PER_MS } from "../../src/domain/jobs/event.ts";
import { retryAfterMs } from "../../src/webhooks/progress.ts";
import type { Progress, SealedWebhook } from "../../src/webhooks/webhook.ts";
import { FIRST_SPAN, type TurnOrder, type TurnPorts, WebhookTurns } from "../../src/webhooks/webhook-turn.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { machineRandom } from "../tenants/machine.ts";

const HOUR_IDS = 3_600_000 * EVENT_IDS_PER_MS;
const DAY_IDS = 24 * HOUR_IDS;
const MINUTE_IDS = HOUR_IDS / 60;
const START = { position: 0, replay: null, retryThrough: null };
const AT_START: Progress = {
  events: START,
  news: START,
  failures: 0,
  failingSinceMs: null,
  nextAtMs: null,
  lastError: null,
  disabled: null,
};

const WEBHOOK: SealedWebhook = {
  webhookId: "w",
  tenantId: "acme",
  url: "https://acme.test/",
  description: null,
  eventTypes: null,
  channels: null,
  batchMax: 1,
  epoch: 1,
  progress: AT_START,
  createdAtMs: 0,
  shard: 0,
  secret: "",
  formerSecret: null,
  formerUntilMs: null,
  newsMark: 0,
};

const PORTS: TurnPorts = {
  store: { openSecrets: () => [], trim: async () => undefined },
  notes: { write: async () => true },
  feed: { settleMs: 0, marks: async () => new Map(), after: async () => [] },
  news: { after: async () => [] },
  caller: { call: async () => ({ kind: "failed", why: "nobody is called" }) },
  onDisabled: async () => undefined,
  clock: new ManualClock(),
  random: machineRandom,
  telemetry: new QuietTelemetry(),
};

/** Turns of a webhook without events, one after the other, as long as there are event ids to look through. */
class QuietWebhook {
  readonly ranges: number[] = [];
  readonly noted: number[] = [];
  isAway = false;
  private progress = AT_START;
  private span = FIRST_SPAN;
  private notedPosition = 0;
  private readonly turns: WebhookTurns;

  constructor() {
    const ports: TurnPorts = {
      ...PORTS,
      notes: {
        write: async ({ progress }) => {
          this.noted.push(progress.events.position);
          return true;
        },
      },
      feed: {
        ...PORTS.feed,
        after: async ({ afterEventId, throughEventId }) => {
          this.ranges.push(throughEventId - afterEventId);
          if (this.isAway) throw new UnavailableError("away");
          return [];
        },
      },
    };
    this.turns = new WebhookTurns(ports);
  }

  /** With event ids through `mark`. */
  async turn(mark: number): Promise<void> {
    const { progress, span, notedPosition } = this;
    const webhook = { ...WEBHOOK, progress };
    const cutOff = new AbortController().signal;
    const order: TurnOrder = { webhook, stream: "events", mark, span, notedPosition, cutOff, mayGoOn: () => true };
    const end = await this.turns.run(order);
    this.progress = end.progress;
    this.span = end.span;
    this.notedPosition = end.notedPosition;
  }
}

test("a turn that may not go on makes no call, and tells nothing as told", async () => {
  const atEvent = (eventId: number) => ({ jobId: "j", channel: "email", eventId, type: "sent", result: {} }) as const;
  const told = async (callsMax: number) => {
    let calls = 0;
    const turns = new WebhookTurns({
      ...PORTS,
      feed: { ...PORTS.feed, after: async () => [1, 2, 3].map(atEvent) },
      caller: {
        call: async () => {
          calls += 1;
          return { kind: "answered", status: 204, retryAfter: null };
        },
      },
    });
    const cutOff = new AbortController().signal;
    const order = { webhook: WEBHOOK, stream: "events", mark: 9, span: FIRST_SPAN, notedPosition: 0, cutOff } as const;
    const { progress } = await turns.run({ ...order, mayGoOn: () => calls < callsMax });
    return [calls, progress.events.position];
  };
  expect([await told(0), await told(2), await told(9)]).toEqual([
    [0, 0],
    [2, 2],
    [3, 9],
  ]);
});

test.each([
  ["120", 120_000],
  ["0", 0],
  ["Sun, 22 Nov 2026 05:02:00 GMT", 120_000],
  ["Sun, 22 Nov 2026 04:00:00 GMT", 0],
  ["2026-11-22T05:02:00Z", null],
  ["soon", null],
  ["1.5", null],
  [null, null],
])("Retry-After: %p asks for %p ms", (text, expected) => {
  expect(retryAfterMs(text, Date.UTC(2026, 10, 22, 5))).toBe(expected);
});

test("a position that moves without a call is written down once an hour", async () => {
  const webhook = new QuietWebhook();
  for (let minute = 20; minute <= 240; minute += 20) await webhook.turn(minute * MINUTE_IDS);
  expect(webhook.noted).toEqual([80 * MINUTE_IDS, 160 * MINUTE_IDS, 240 * MINUTE_IDS]);
});

test("a long silence is looked through in ever larger spans, up to a hundred days", async () => {
  const webhook = new QuietWebhook();
  for (let turn = 0; turn < 6; turn += 1) await webhook.turn(365 * DAY_IDS);
  expect(webhook.ranges.map((ids) => ids / DAY_IDS)).toEqual([1, 4, 16, 64, 100, 100]);
});

test("a span that the event store does not manage is cut, down to a minute", async () => {
  const webhook = new QuietWebhook();
  webhook.isAway = true;
  for (let turn = 0; turn < 6; turn += 1) await webhook.turn(365 * DAY_IDS);
  const minutes = webhook.ranges.map((ids) => ids / MINUTE_IDS);
  expect(minutes).toEqual([1440, 180, 22.5, 2.8125, 1, 1]);
});
