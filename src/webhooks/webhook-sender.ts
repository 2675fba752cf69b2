import { sleep, waitAtMost } from "../domain/clock.ts";
import { FairTurns } from "../domain/fair-turns.ts";
import type { StoredEventRow } from "../domain/jobs/event-store.ts";
import { Repeated } from "../domain/repeated.ts";
import { logFailure } from "../domain/telemetry.ts";
import type { ChangeFeed } from "../domain/tenants/tenant.ts";
import type { DeliveryRepository } from "./delivery-repository.ts";
import {
  type Followed,
  getMark,
  getNewsMark,
  type Held,
  type HeldShard,
  nextStream,
  readPositions,
} from "./followed.ts";
import { webhookLimits } from "./limits.ts";
import { Notes } from "./notes.ts";
import { type SealedWebhook, wants } from "./webhook.ts";
import { FIRST_SPAN, type TurnPorts, WebhookTurns } from "./webhook-turn.ts";

export interface WebhookSenderPorts extends Omit<TurnPorts, "notes" | "store"> {
  readonly store: Pick<DeliveryRepository, "ofShards" | "ofTenants" | "note" | "trim" | "openSecrets">;
  readonly changes: Pick<ChangeFeed, "onChange">;
}

const TENANTS_AT_ONCE = 500;
const TRIM_AFTER = 100;

/**
 * Calls the webhooks of the tenants whose shards this process records.
 *
 * Invariants:
 * W1. Each webhook gets one call at a time, in the order of its events: the process that records a shard calls its tenants'
 *     webhooks, and begins no call unless it surely holds the shard's lease.
 * W2. Events are read from the event store, from the position that the registry holds. The recorder only signals new
 *     events. Completeness does not depend on its signals, because a new holder of a shard compares every webhook with the
 *     event store, and every holder repeats this every few minutes.
 * W3. An idle webhook costs no work: a few hundred bytes of memory, no timer, no connection.
 * W4. News is read from the registry. Storing it announces a change of the tenant, and a check of the registry every minute
 *     finds missed announcements. A failed call is repeated first; otherwise events and news alternate.
 * W5. Tenants take turns, within bounds of each tenant and of the process (`FairTurns`), and a turn lasts about a second or one call.
 */
export class WebhookSender {
  private readonly held = new Map<number, Held>();
  private readonly byTenant = new Map<string, Map<string, Followed>>();
  private readonly running = new Map<Followed, Promise<void>>();
  private readonly dirtyShards = new Set<number>();
  private readonly dirtyTenants = new Set<string>();
  private readonly toLook = new Set<Followed>();
  private readonly turns = new FairTurns({ all: webhookLimits.callsMax, each: webhookLimits.tenantCallsMax });
  private readonly notes: Notes;
  private readonly work: WebhookTurns;
  private readonly rounds: Repeated;
  private readonly stopping = new AbortController();
  private refreshing: Promise<void> | null = null;
  private lookedAtMs: number;
  private unsubscribe: (() => void) | null = null;

  constructor(private readonly ports: WebhookSenderPorts) {
    this.notes = new Notes(ports);
    this.work = new WebhookTurns({ ...ports, notes: this.notes });
    this.lookedAtMs = ports.clock.monotonicMs();
    this.rounds = new Repeated(
      async () => this.round(),
      ports.clock,
      () => webhookLimits.reloadMs,
    );
  }

  /** Call once only. */
  start(): void {
    this.unsubscribe = this.ports.changes.onChange((tenantId) => {
      if (tenantId === null || this.held.size === 0) return;
      this.dirtyTenants.add(tenantId);
      this.refreshSoon();
    });
    this.rounds.start();
  }

  /** After its shards have been given up. Safe to repeat. */
  async stop(): Promise<void> {
    this.unsubscribe?.();
    this.stopping.abort();
    this.notes.stop();
    await this.rounds.stop();
    await this.refreshing;
  }

  /** Notes that the event store has these rows. Returns at once. */
  onRecorded(rows: readonly StoredEventRow[]): void {
    if (this.byTenant.size === 0) return;
    const news = new Map<Followed, number>();
    for (const row of rows) {
      for (const one of this.byTenant.get(row.tenantId)?.values() ?? []) {
        if (wants(one.webhook, row)) news.set(one, row.eventId);
      }
    }
    for (const [one, eventId] of news) this.offer(one, eventId);
  }

  /** Calls for the shard's tenants until `ending` aborts. Resolves soon after that. */
  async follow(term: HeldShard, ending: AbortSignal): Promise<void> {
    const held: Held = { term, cutOff: new AbortController() };
    const cutOff = () => held.cutOff.abort();
    this.held.set(term.shard, held);
    this.dirtyShards.add(term.shard);
    this.refreshSoon();
    await aborted(ending);
    if (this.held.get(term.shard) === held) this.held.delete(term.shard);
    const own = this.all().filter((one) => one.held === held);
    for (const one of own) this.drop(one);
    term.lost.addEventListener("abort", cutOff, { once: true });
    if (term.lost.aborted) cutOff();
    const { clock } = this.ports;
    const timer = clock.setTimer(webhookLimits.closingMs, cutOff);
    const turns = own.flatMap((one) => this.running.get(one) ?? []);
    // An unavailable registry does not delay the hand-over: unrecorded calls are repeated.
    if (turns.length > 0) await waitAtMost(clock, 2 * webhookLimits.closingMs, Promise.all(turns));
    timer.cancel();
    term.lost.removeEventListener("abort", cutOff);
    cutOff();
  }

  private all(): readonly Followed[] {
    return Array.from(this.byTenant.values(), (ofTenant) => [...ofTenant.values()]).flat();
  }

  private round(): void {
    const nowMs = this.ports.clock.monotonicMs();
    const all = this.all();
    const failing = all.filter(({ webhook }) => webhook.progress.failures > 0).length;
    this.ports.telemetry.gauge("webhooks_followed", all.length);
    this.ports.telemetry.gauge("webhooks_failing", failing);
    for (const shard of this.held.keys()) this.dirtyShards.add(shard);
    if (nowMs - this.lookedAtMs >= webhookLimits.lookMs) {
      this.lookedAtMs = nowMs;
      for (const one of all) if (one.state === "idle") this.toLook.add(one);
    }
    this.refreshSoon();
  }

  private refreshSoon(): void {
    this.refreshing ??= this.refreshAll().then(() => {
      this.refreshing = null;
      // Changes noted while the last round ended.
      if (this.isDirty && !this.stopping.signal.aborted) this.refreshSoon();
    });
  }

  private get isDirty(): boolean {
    return this.dirtyShards.size + this.dirtyTenants.size + this.toLook.size > 0;
  }

  /** Reloads changed webhooks until no change is left. Never rejects. */
  private async refreshAll(): Promise<void> {
    const { clock, telemetry } = this.ports;
    const { signal } = this.stopping;
    while (this.isDirty && !signal.aborted) {
      // Changes come in groups, and so do shards.
      await sleep(clock, webhookLimits.announcedLingerMs, signal);
      try {
        await this.refresh();
      } catch (error) {
        logFailure(telemetry, "the webhooks could not be read", error);
        await sleep(clock, webhookLimits.outageMs, signal);
      }
    }
  }

  private async refresh(): Promise<void> {
    const { store } = this.ports;
    const shards = [...this.dirtyShards].filter((shard) => this.held.has(shard));
    this.dirtyShards.clear();
    const tenantIds = [...this.dirtyTenants].slice(0, TENANTS_AT_ONCE);
    for (const tenantId of tenantIds) this.dirtyTenants.delete(tenantId);
    try {
      if (shards.length > 0) {
        const found = await store.ofShards(shards);
        const asked = new Set(shards);
        this.take(
          found,
          this.all().filter(({ webhook }) => asked.has(webhook.shard)),
        );
      }
      if (tenantIds.length > 0) {
        const found = await store.ofTenants(tenantIds);
        this.take(
          found,
          tenantIds.flatMap((tenantId) => [...(this.byTenant.get(tenantId)?.values() ?? [])]),
        );
      }
    } catch (error) {
      for (const shard of shards) this.dirtyShards.add(shard);
      for (const tenantId of tenantIds) this.dirtyTenants.add(tenantId);
      throw error;
    }
    await this.look();
  }

  /** Adopts the webhooks found, and drops the requested ones that were not. */
  private take(found: readonly SealedWebhook[], asked: readonly Followed[]): void {
    const ids = new Set(found.map(({ webhookId }) => webhookId));
    for (const one of asked) if (!ids.has(one.webhook.webhookId)) this.drop(one);
    for (const webhook of found) {
      const held = this.held.get(webhook.shard);
      const known = this.byTenant.get(webhook.tenantId)?.get(webhook.webhookId);
      if (known !== undefined && known.held === held) this.renew(known, webhook);
      else if (held !== undefined) this.add(webhook, held);
    }
  }

  private add(webhook: SealedWebhook, held: Held): void {
    const one: Followed = {
      webhook,
      held,
      mark: 0,
      seen: 0,
      newsMark: getNewsMark(webhook),
      lastTurn: "news",
      isSettling: false,
      state: "idle",
      timer: null,
      notBeforeMs: 0,
      span: FIRST_SPAN,
      notedPositions: readPositions(webhook.progress),
      untrimmed: 0,
      isGone: false,
    };
    const ofTenant = this.byTenant.get(webhook.tenantId) ?? new Map<string, Followed>();
    this.byTenant.set(webhook.tenantId, ofTenant.set(webhook.webhookId, one));
    this.toLook.add(one);
    this.schedule(one);
  }

  private renew(one: Followed, webhook: SealedWebhook): void {
    const { progress, epoch } = one.webhook;
    if (webhook.epoch < epoch) return;
    const isAnew = webhook.epoch > epoch;
    // Within an epoch, this process's progress is ahead of the stored one.
    one.webhook = isAnew ? webhook : { ...webhook, progress };
    one.newsMark = getNewsMark(one.webhook);
    if (isAnew) {
      one.notBeforeMs = 0;
      one.notedPositions = readPositions(webhook.progress);
      this.toLook.add(one);
    }
    this.schedule(one);
  }

  private drop(one: Followed): void {
    const { tenantId, webhookId } = one.webhook;
    one.isGone = true;
    one.timer?.cancel();
    this.toLook.delete(one);
    const ofTenant = this.byTenant.get(tenantId);
    if (ofTenant?.get(webhookId) === one) ofTenant.delete(webhookId);
    if (ofTenant?.size === 0) this.byTenant.delete(tenantId);
  }

  /** Compares webhooks with the event store. */
  private async look(): Promise<void> {
    const looked = [...this.toLook].filter(({ isGone }) => !isGone);
    this.toLook.clear();
    if (looked.length === 0) return;
    const positions = new Map<string, number>();
    for (const { webhook } of looked) {
      const { tenantId, progress } = webhook;
      positions.set(tenantId, Math.min(positions.get(tenantId) ?? Number.MAX_SAFE_INTEGER, progress.events.position));
    }
    try {
      const asked = Array.from(positions, ([tenantId, afterEventId]) => ({ tenantId, afterEventId }));
      const marks = await this.ports.feed.marks(asked);
      for (const one of looked) this.offer(one, marks.get(one.webhook.tenantId) ?? 0);
    } catch (error) {
      for (const one of looked) this.toLook.add(one);
      throw error;
    }
  }

  /** Notes an event of this id. It can be read without gaps after the store has settled. */
  private offer(one: Followed, eventId: number): void {
    const { clock, feed } = this.ports;
    one.seen = Math.max(one.seen, eventId);
    if (one.isGone || one.isSettling || one.seen <= one.mark) return;
    const settled = (through: number) => {
      one.isSettling = false;
      one.mark = Math.max(one.mark, through);
      this.schedule(one);
      this.offer(one, one.seen);
    };
    if (feed.settleMs === 0) return settled(one.seen);
    one.isSettling = true;
    const through = one.seen;
    clock.setTimer(feed.settleMs, () => settled(through));
  }

  private schedule(one: Followed): void {
    if (one.isGone || one.state === "queued" || one.state === "running") return;
    one.timer?.cancel();
    one.timer = null;
    one.state = "idle";
    const waitMs = this.computeWait(one);
    if (waitMs === null) return;
    if (waitMs > 0) {
      one.state = "waiting";
      one.timer = this.ports.clock.setTimer(waitMs, () => {
        one.state = "idle";
        this.schedule(one);
      });
      return;
    }
    one.state = "queued";
    this.turns.enter(one.webhook.tenantId, () => this.run(one));
  }

  /** Returns the milliseconds until its next turn; null: it has none. */
  private computeWait(one: Followed): number | null {
    const { clock } = this.ports;
    if (nextStream(one) === null) return null;
    const { progress } = one.webhook;
    return Math.max(0, (progress.nextAtMs ?? 0) - clock.nowMs(), one.notBeforeMs - clock.monotonicMs());
  }

  private run(one: Followed): Promise<void> {
    const running = this.runTurn(one).finally(() => {
      // Its next turn may have begun already.
      if (this.running.get(one) === running) this.running.delete(one);
    });
    this.running.set(one, running);
    return running;
  }

  /** Never rejects. */
  private async runTurn(one: Followed): Promise<void> {
    const { clock } = this.ports;
    const { webhook, held, span } = one;
    const stream = nextStream(one);
    const beganMs = clock.monotonicMs();
    const mayGoOn = () => !one.isGone && one.webhook.epoch === webhook.epoch && held.term.isSurelyHeld();
    if (stream === null || !mayGoOn() || this.computeWait(one) !== 0) {
      one.notBeforeMs = beganMs + webhookLimits.turnMs;
      return this.idle(one);
    }
    one.state = "running";
    one.lastTurn = stream;
    const [mark, notedPosition] = [getMark(one, stream), one.notedPositions[stream]];
    const order = { webhook, stream, mark, span, notedPosition, cutOff: held.cutOff.signal, mayGoOn };
    const end = await this.work.run(order);
    if (end.kind === "stale") {
      this.dirtyTenants.add(webhook.tenantId);
      this.refreshSoon();
    }
    // Otherwise the tenant has changed the webhook since.
    if (one.webhook.epoch === webhook.epoch) {
      one.webhook = { ...one.webhook, progress: end.progress };
      one.span = end.span;
      one.notedPositions = { ...one.notedPositions, [stream]: end.notedPosition };
      one.notBeforeMs = beganMs + pauseMs(end.kind, nextStream(one) !== null);
    }
    const isDisabled = end.progress.disabled !== null && end.kind === "on";
    if (isDisabled) this.drop(one);
    // The count restarts when it is enabled again: a webhook disabled at each call would never be trimmed.
    await this.trimAfter(one, isDisabled ? TRIM_AFTER : end.attempts);
    this.idle(one);
  }

  private idle(one: Followed): void {
    one.state = "idle";
    this.schedule(one);
  }

  private async trimAfter(one: Followed, attempts: number): Promise<void> {
    one.untrimmed += attempts;
    if (one.untrimmed < TRIM_AFTER) return;
    one.untrimmed = 0;
    const { store, telemetry } = this.ports;
    await store.trim(one.webhook.webhookId).catch((error: unknown) => {
      telemetry.log("warn", "old attempts of a webhook could not be removed", { error: String(error) });
    });
  }
}

/** Returns the time from the start of a turn to the next one. */
function pauseMs(kind: "on" | "stale" | "away", goesOn: boolean): number {
  if (kind !== "on") return webhookLimits.outageMs;
  return goesOn ? 0 : webhookLimits.paceMs;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
