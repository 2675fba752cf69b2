import type { Clock } from "../domain/clock.ts";
import { FairTurns } from "../domain/fair-turns.ts";
import { EVENT_IDS_PER_MS } from "../domain/jobs/event.ts";
import type { EventFeed } from "../domain/jobs/event-store.ts";
import type { RuntimePorts } from "../domain/runtime-ports.ts";
import { logFailure } from "../domain/telemetry.ts";
import type { WebhookAnswer, WebhookCalls } from "../domain/texts/outbound.ts";
import type { DeliveryRepository, DisabledWebhook } from "./delivery-repository.ts";
import { webhookLimits } from "./limits.ts";
import { buildMessages, type Message, type Told, toldEvent } from "./message.ts";
import type { NewsRepository } from "./news-repository.ts";
import type { Notes } from "./notes.ts";
import { failed, findFault, nextRange, passed, told } from "./progress.ts";
import { signedHeaders } from "./signature.ts";
import {
  type Attempt,
  type EventRange,
  type Progress,
  type SealedWebhook,
  type Stream,
  selectEventTypes,
} from "./webhook.ts";

export interface TurnPorts extends RuntimePorts {
  readonly store: Pick<DeliveryRepository, "openSecrets" | "trim">;
  readonly notes: Pick<Notes, "write">;
  readonly feed: EventFeed;
  readonly news: Pick<NewsRepository, "after">;
  readonly caller: WebhookCalls;
  /** Announces that a webhook is disabled, before that is stored. Safe to repeat. */
  onDisabled(webhook: DisabledWebhook): Promise<void>;
}

export interface TurnOrder {
  readonly webhook: SealedWebhook;
  readonly stream: Stream;
  /** The last id up to which the stream can be read without gaps. */
  readonly mark: number;
  /** How many event ids one read covers. */
  readonly span: number;
  /** The stream's position that is on disk. */
  readonly notedPosition: number;
  /** Aborts calls in flight; their results are discarded. */
  readonly cutOff: AbortSignal;
  /** Whether the next call may begin. */
  mayGoOn(): boolean;
}

export interface TurnEnd {
  /** `stale`: the webhook was changed meanwhile, and the progress is discarded; `away`: a store did not answer. */
  readonly kind: "on" | "stale" | "away";
  readonly progress: Progress;
  readonly span: number;
  readonly notedPosition: number;
  readonly attempts: number;
}

const MINUTE_IDS = 60_000 * EVENT_IDS_PER_MS;
export const FIRST_SPAN = 24 * 60 * MINUTE_IDS;
const SPAN_MAX = 100 * FIRST_SPAN;

/**
 * A turn of a webhook: reads the next part of a stream and delivers it, one call after the other, for about a second.
 *
 * T1. A position moves only after the call's 2xx, and is stored after that: a process that dies in between causes repeated
 *     calls, never skipped events.
 * T2. A failed call ends the turn. Later events are not delivered before it succeeds.
 * T3. A webhook is disabled on disk only after the notice was written.
 */
export class WebhookTurns {
  private readonly reads = new FairTurns({ all: webhookLimits.readsMax, each: 1 });

  constructor(private readonly ports: TurnPorts) {}

  /** Never rejects. */
  async run(order: TurnOrder): Promise<TurnEnd> {
    const { webhook, span, notedPosition } = order;
    try {
      return await this.turn(order);
    } catch (error) {
      const { telemetry } = this.ports;
      const { tenantId, webhookId, progress } = webhook;
      const fields = { tenant_id: tenantId, webhook_id: webhookId };
      logFailure(telemetry, "a webhook's events could not be read", error, fields);
      // A range that cannot be read in time is tried in smaller parts.
      return { kind: "away", progress, span: Math.max(MINUTE_IDS, span / 8), notedPosition, attempts: 0 };
    }
  }

  private async turn(order: TurnOrder): Promise<TurnEnd> {
    const { webhook, stream, mark, span } = order;
    const { afterEventId, throughEventId: end } = nextRange(webhook.progress[stream], mark);
    // A tenant's news is little, and found by its index.
    const throughEventId = stream === "news" ? end : Math.min(end, afterEventId + span);
    const limit = Math.max(webhookLimits.pageMin, webhook.batchMax);
    const range = { afterEventId, throughEventId };
    const all = await (stream === "news" ? this.news(webhook, range, limit) : this.events(webhook, range, limit));
    const { progress: reached, attempts, isWhole } = await this.tell(order, all);
    const isShort = all.length < limit;
    const progress = isWhole && isShort ? passed(reached, stream, throughEventId) : reached;
    const next = isShort && stream === "events" ? Math.min(span * 4, SPAN_MAX) : span;
    return { ...(await this.note(order, progress, attempts)), span: next };
  }

  private async events(webhook: SealedWebhook, range: EventRange, limit: number): Promise<readonly Told[]> {
    const { tenantId, channels } = webhook;
    const types = selectEventTypes(webhook);
    if (types?.length === 0) return [];
    const read = () => this.ports.feed.after({ tenantId, ...range, channels, types, limit });
    return this.reads.inTurn(tenantId, async () => (await read()).map(toldEvent));
  }

  private news({ tenantId, eventTypes, channels }: SealedWebhook, range: EventRange, limit: number) {
    return this.reads.inTurn(tenantId, () => this.ports.news.after({ tenantId, eventTypes, channels }, range, limit));
  }

  /** `isWhole`: all of it was delivered. */
  private async tell({ webhook, stream, cutOff, mayGoOn }: TurnOrder, all: readonly Told[]) {
    const { clock, random, store } = this.ports;
    const beganMs = clock.monotonicMs();
    const attempts: Attempt[] = [];
    let progress = webhook.progress;
    if (all.length === 0) return { progress, attempts, isWhole: true };
    const secrets = store.openSecrets(webhook);
    let isFirst = true;
    for (const message of buildMessages(webhook, stream, all)) {
      const isLate = !isFirst && clock.monotonicMs() - beganMs > webhookLimits.turnMs;
      if (isLate || !mayGoOn()) return { progress, attempts, isWhole: false };
      isFirst = false;
      const { answer, ...call } = await this.call(webhook, { ...message, secrets }, cutOff);
      const error = findFault(answer);
      // It is unknown whether the receiver has it, so it is delivered again.
      if (error !== null && cutOff.aborted) return { progress, attempts, isWhole: false };
      attempts.push(toAttempt(stream, message, answer, { ...call, error }));
      if (error !== null) {
        const failure = { answer, stream, lastId: message.lastId, nowMs: clock.nowMs() };
        return { progress: failed(progress, failure, random), attempts, isWhole: false };
      }
      progress = told(progress, stream, message.lastId);
    }
    return { progress, attempts, isWhole: true };
  }

  private async call(
    { url }: SealedWebhook,
    { messageId, json, events, secrets }: Message & { readonly secrets: readonly string[] },
    cutOff: AbortSignal,
  ) {
    const { clock, caller, telemetry } = this.ports;
    const [atMs, beganMs] = [clock.nowMs(), clock.monotonicMs()];
    const headers = signedHeaders({ messageId, json, atMs, secrets });
    const answer = await calledInTime(clock, cutOff, (signal) => caller.call({ url, json, headers }, signal));
    const ms = Math.round(clock.monotonicMs() - beganMs);
    const isTaken = findFault(answer) === null;
    telemetry.time("webhook_call_seconds", ms / 1000);
    telemetry.count("webhook_calls", { result: isTaken ? "taken" : "failed" });
    if (isTaken) telemetry.count("webhook_events", {}, events);
    return { answer, atMs, ms };
  }

  private async note(
    { webhook, stream, notedPosition }: TurnOrder,
    progress: Progress,
    attempts: readonly Attempt[],
  ): Promise<Omit<TurnEnd, "span">> {
    const { tenantId, webhookId, epoch } = webhook;
    const [before, place] = [webhook.progress[stream], progress[stream]];
    const far = place.position - notedPosition > webhookLimits.unnotedMs * EVENT_IDS_PER_MS;
    const isSame = place.replay === before.replay && place.retryThrough === before.retryThrough;
    const isQuiet = attempts.length === 0 && !far && isSame;
    if (isQuiet) return { kind: "on", progress, notedPosition, attempts: 0 };
    const { disabled } = progress;
    if (disabled !== null) await this.ports.onDisabled({ tenantId, webhookId, ...disabled });
    const kept = attempts.slice(-webhookLimits.attemptsPerNoteMax);
    const isNoted = await this.ports.notes.write({ tenantId, webhookId, epoch, progress, attempts: kept });
    return {
      kind: isNoted ? "on" : "stale",
      progress,
      notedPosition: isNoted ? place.position : notedPosition,
      attempts: kept.length,
    };
  }
}

/** The answer within a call's time. */
export async function calledInTime(
  clock: Clock,
  cutOff: AbortSignal,
  call: (signal: AbortSignal) => Promise<WebhookAnswer>,
): Promise<WebhookAnswer> {
  const late = new AbortController();
  const timer = clock.setTimer(webhookLimits.callTimeoutMs, () => late.abort());
  try {
    return await call(AbortSignal.any([late.signal, cutOff]));
  } finally {
    timer.cancel();
  }
}

function toAttempt(
  stream: Stream,
  { messageId, events, firstId, lastId }: Message,
  answer: WebhookAnswer,
  call: { readonly atMs: number; readonly ms: number; readonly error: string | null },
): Attempt {
  const { status, said } = saidBy(answer);
  const [firstEventId, lastEventId] = stream === "events" ? [firstId, lastId] : [null, null];
  return { ...call, isTest: false, messageId, events, firstEventId, lastEventId, status, answer: said };
}

/** Returns the members of an answer that the log of calls keeps. */
export function saidBy(answer: WebhookAnswer): { readonly status: number | null; readonly said: string | null } {
  return answer.kind === "failed"
    ? { status: null, said: null }
    : { status: answer.status, said: answer.text === "" ? null : (answer.text ?? null) };
}
