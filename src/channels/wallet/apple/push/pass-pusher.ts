import { sleep, type Timer } from "../../../../domain/clock.ts";
import { Counts } from "../../../../domain/counts.ts";
import { FairTurns } from "../../../../domain/fair-turns.ts";
import type { RuntimePorts } from "../../../../domain/runtime-ports.ts";
import { walletLimits } from "../../limits.ts";
import type { Pass, PassDevices } from "../../passes.ts";
import type { PassSigner } from "../pass-signers.ts";
import type { ApnsConnections } from "./apns-connections.ts";
import { type ApnsAnswer, type PushOutcome, toPushOutcome } from "./push-outcome.ts";

export interface PassPusherOptions extends RuntimePorts {
  readonly connections: Pick<ApnsConnections, "post" | "close">;
  readonly devices: Pick<PassDevices, "targets" | "forget">;
}

type PushSigner = Pick<PassSigner, "id" | "passTypeId" | "tls">;

/** Delays in milliseconds before each retry of a push; after the last one it is abandoned. */
const WAITS: Readonly<Partial<Record<PushOutcome, readonly number[]>>> = {
  transient: [1_000, 5_000, 25_000],
  throttled: [10_000, 60_000],
};

/**
 * Notifies devices that one of their passes changed. A push carries no data, so a waiting push stands for all later
 * ones, and a lost push costs only time: devices also check for updates by themselves.
 *
 * Invariants:
 * A1. Requests are in flight within `apnsRequests`, in which tenants take turns. At most `apnsPendingMax` pushes are
 *     pending, and a tenant may have as many as there are free places: one with many updates leaves places for the
 *     first push of every other.
 * A2. A push is retried no more often than `WAITS` allows. After Apple refuses a signer, none of its pushes is tried
 *     for `apnsPauseMs`.
 * A3. A device is forgotten only when Apple reports that it no longer exists, and not if it has registered since then.
 * A4. After `stop`, no push is sent and no timer runs.
 */
export class PassPusher {
  private readonly turns = new FairTurns(walletLimits.apnsRequests);
  /** Pushes that are not in flight: ready, or waiting for a retry. */
  private readonly pending = new Map<string, Push>();
  /** The number of pending pushes by tenant. */
  private readonly pendingCounts = new Counts();
  private readonly pausedUntilMs = new Map<string, number>();
  private stopped = false;

  constructor(private readonly options: PassPusherOptions) {}

  /**
   * Resolves when each device that has the pass was tried once, or after `apnsFirstRoundMs`; retries continue in the
   * background. Rejects if the registry cannot list the devices.
   */
  async push(
    { passId, tenantId }: Pick<Pass, "passId" | "tenantId">,
    signer: PushSigner,
    signal: AbortSignal,
  ): Promise<void> {
    const targets = await this.options.devices.targets(passId);
    const tokens = new Set<string>();
    for (const { pushToken } of targets) {
      if (FOREIGN.test(pushToken)) this.count("foreign");
      else tokens.add(pushToken);
    }
    const tries = Array.from(tokens, (token) => this.enter(tenantId, signer, token));
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    await Promise.race([Promise.all(tries), sleep(this.options.clock, walletLimits.apnsFirstRoundMs, stop)]);
    over.abort();
  }

  /** Drops pushes that are not in flight, and closes the connections. Safe to call twice. */
  stop(): void {
    this.stopped = true;
    for (const push of this.pending.values()) this.drop(push);
    this.options.connections.close();
  }

  /** Adds a push. Resolves when the device was tried, or will not be tried. */
  private enter(tenantId: string, signer: PushSigner, token: string): Promise<void> {
    // Pushes of different tenants are separate, or one would wait for another tenant's turn: a device may get a push
    // for each.
    const key = `${tenantId} ${signer.id} ${token}`;
    const known = this.pending.get(key);
    if (known?.timer === null) return known.tried;
    if (this.stopped || (known === undefined && !this.hasRoom(tenantId))) {
      this.count("dropped");
      return Promise.resolve();
    }
    if (known !== undefined) this.drop(known);
    const { promise: tried, resolve } = Promise.withResolvers<void>();
    const push = { key, tenantId, signer, token, failures: 0, timer: null, tried, onTried: resolve };
    this.keep(push);
    this.makeReady(push);
    return tried;
  }

  private makeReady(push: Push): void {
    push.timer = null;
    this.turns.enter(push.tenantId, async () => {
      if (!this.leave(push)) return;
      await this.attempt(push);
      push.onTried();
    });
  }

  private drop(push: Push): void {
    push.timer?.cancel();
    this.leave(push);
    push.onTried();
  }

  private hasRoom(tenantId: string): boolean {
    return this.pendingCounts.of(tenantId) < walletLimits.apnsPendingMax - this.pending.size;
  }

  private keep(push: Push): void {
    this.pending.set(push.key, push);
    this.pendingCounts.add(push.tenantId);
  }

  /** Removes a push. Returns whether it was pending. */
  private leave({ key, tenantId }: Push): boolean {
    if (!this.pending.delete(key)) return false;
    this.pendingCounts.remove(tenantId);
    return true;
  }

  private async attempt(push: Push): Promise<void> {
    const { connections, devices, clock, telemetry } = this.options;
    const { signer, token } = push;
    if (clock.monotonicMs() < (this.pausedUntilMs.get(signer.id) ?? 0)) return this.count("paused");
    const answer = await connections.post(signer, token);
    const outcome = toPushOutcome(answer);
    this.count(outcome);
    try {
      if (outcome === "gone") await devices.forget(signer.passTypeId, token, readGoneAtMs(answer));
    } catch (error) {
      telemetry.log("warn", "a device that is gone could not be forgotten", { error: String(error) });
    }
    if (outcome === "credentials") this.pause(signer, answer);
    if (outcome === "refused") telemetry.log("error", "Apple refused a push", said(signer, answer));
    this.retry(push, outcome);
  }

  /** Pauses the signer: none of its pushes would pass, and Apple would hold each against the certificate. */
  private pause(signer: PushSigner, answer: ApnsAnswer): void {
    const { clock, telemetry } = this.options;
    const nowMs = clock.monotonicMs();
    for (const [each, untilMs] of this.pausedUntilMs) if (untilMs <= nowMs) this.pausedUntilMs.delete(each);
    if (this.pausedUntilMs.has(signer.id)) return;
    this.pausedUntilMs.set(signer.id, nowMs + walletLimits.apnsPauseMs);
    telemetry.count("apple_push_pauses");
    telemetry.log("error", "Apple takes no pushes with this certificate; they pause", said(signer, answer));
  }

  private retry(push: Push, outcome: PushOutcome): void {
    const waitMs = WAITS[outcome]?.[push.failures];
    if (waitMs === undefined || this.stopped || !this.hasRoom(push.tenantId)) return;
    // An equal push was added in the meantime.
    if (this.pending.has(push.key)) return;
    const { clock, random } = this.options;
    push.failures += 1;
    this.keep(push);
    push.timer = clock.setTimer(waitMs * (0.75 + random.next() / 2), () => this.makeReady(push));
  }

  private count(outcome: string): void {
    this.options.telemetry.count("apple_pushes", { outcome });
  }
}

/**
 * Tokens of Google's and Huawei's push services, which wallets for Android register: Apple would refuse them and count
 * it against the certificate. Such wallets poll for updates.
 */
const FOREIGN = /[:.=+~]|^APA91b/;

/** A push to one device. */
interface Push {
  readonly key: string;
  /** The pass's tenant. */
  readonly tenantId: string;
  readonly signer: PushSigner;
  readonly token: string;
  /** Failed tries. */
  failures: number;
  /** The wait before a retry; null if the push is ready. */
  timer: Timer | null;
  readonly tried: Promise<void>;
  onTried(): void;
}

function readGoneAtMs(answer: ApnsAnswer): number | null {
  return answer.kind === "answered" ? answer.goneAtMs : null;
}

function said({ passTypeId }: PushSigner, answer: ApnsAnswer): Record<string, string | number | null> {
  const detail = answer.kind === "answered" ? { status: answer.status, reason: answer.reason } : { why: answer.why };
  return { pass_type: passTypeId, ...detail };
}
