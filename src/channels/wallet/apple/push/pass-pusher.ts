import { type Clock, sleep, type Timer } from "../../../../domain/clock.ts";
import type { Random } from "../../../../domain/random.ts";
import type { Telemetry } from "../../../../domain/telemetry.ts";
import { walletLimits } from "../../limits.ts";
import type { PassDevices } from "../../passes.ts";
import type { PassSigner } from "../pass-signers.ts";
import type { ApnsConnections } from "./apns-connections.ts";
import { type ApnsAnswer, type PushOutcome, pushOutcomeOf } from "./push-outcome.ts";

export interface PassPusherOptions {
  readonly connections: Pick<ApnsConnections, "post" | "close">;
  readonly devices: Pick<PassDevices, "targets" | "forget">;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

type PushSigner = Pick<PassSigner, "id" | "passTypeId" | "tls">;

/** Delays in milliseconds before each retry of a push; after the last one it is abandoned. */
const WAITS: Readonly<Partial<Record<PushOutcome, readonly number[]>>> = {
  transient: [1_000, 5_000, 25_000],
  throttled: [10_000, 60_000],
};

/**
 * Tells devices that one of their passes changed. A push carries no data, so a waiting push stands for all later ones,
 * and a lost push costs only time: devices also ask by themselves.
 *
 * Invariants:
 * A1. At most `apnsConcurrencyMax` requests are in flight, and at most `apnsPendingMax` pushes are pending.
 * A2. A push is retried no more often than `WAITS` allows. After Apple refuses a signer, none of its pushes is tried
 *     for `apnsPauseMs`.
 * A3. A device is forgotten only when Apple says that it is gone, and not if it has registered since then.
 * A4. After `stop`, nothing is sent and no timer runs.
 */
export class PassPusher {
  private readonly ready: Push[] = [];
  /** Pushes that are not in flight: ready, or waiting for a retry. */
  private readonly pending = new Map<string, Push>();
  private readonly pausedUntilMs = new Map<string, number>();
  private inFlight = 0;
  private stopped = false;

  constructor(private readonly options: PassPusherOptions) {}

  /**
   * Resolves when each device that has the pass was tried once, or after `apnsFirstRoundMs`; retries continue in the
   * background. Rejects if the registry cannot list the devices.
   */
  async push(passId: string, signer: PushSigner, signal: AbortSignal): Promise<void> {
    const targets = await this.options.devices.targets(passId);
    const tokens = new Set(targets.map(({ pushToken }) => pushToken));
    const tries = Array.from(tokens, (token) => this.enter(signer, token));
    this.work();
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    await Promise.race([Promise.all(tries), sleep(this.options.clock, walletLimits.apnsFirstRoundMs, stop)]);
    over.abort();
  }

  /** Drops pushes that are not in flight, and closes the connections. Safe to call twice. */
  stop(): void {
    this.stopped = true;
    for (const push of this.pending.values()) this.drop(push);
    this.ready.length = 0;
    this.options.connections.close();
  }

  /** Resolves when the device was tried, or will not be tried. */
  private enter(signer: PushSigner, token: string): Promise<void> {
    const key = `${signer.id} ${token}`;
    const known = this.pending.get(key);
    if (known?.timer === null) return known.tried;
    if (this.stopped || (known === undefined && this.pending.size >= walletLimits.apnsPendingMax)) {
      this.count("dropped");
      return Promise.resolve();
    }
    if (known !== undefined) this.drop(known);
    const { promise: tried, resolve } = Promise.withResolvers<void>();
    this.makeReady({ key, signer, token, failures: 0, timer: null, tried, onTried: resolve });
    return tried;
  }

  private makeReady(push: Push): void {
    push.timer = null;
    this.pending.set(push.key, push);
    this.ready.push(push);
  }

  private drop(push: Push): void {
    push.timer?.cancel();
    this.pending.delete(push.key);
    push.onTried();
  }

  private work(): void {
    while (this.inFlight < walletLimits.apnsConcurrencyMax) {
      const push = this.ready.shift();
      if (push === undefined) return;
      this.pending.delete(push.key);
      this.inFlight += 1;
      void this.attempt(push).finally(() => {
        this.inFlight -= 1;
        push.onTried();
        this.work();
      });
    }
  }

  private async attempt(push: Push): Promise<void> {
    const { connections, devices, clock, telemetry } = this.options;
    const { signer, token } = push;
    if (clock.monotonicMs() < (this.pausedUntilMs.get(signer.id) ?? 0)) return this.count("paused");
    const answer = await connections.post(signer, token);
    const outcome = pushOutcomeOf(answer);
    this.count(outcome);
    try {
      if (outcome === "gone") await devices.forget(signer.passTypeId, token, goneAtMsOf(answer));
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
    if (waitMs === undefined || this.stopped || this.pending.size >= walletLimits.apnsPendingMax) return;
    // Somebody has asked for the same meanwhile.
    if (this.pending.has(push.key)) return;
    const { clock, random } = this.options;
    push.failures += 1;
    this.pending.set(push.key, push);
    push.timer = clock.setTimer(waitMs * (0.75 + random.next() / 2), () => {
      this.makeReady(push);
      this.work();
    });
  }

  private count(outcome: string): void {
    this.options.telemetry.count("apple_pushes", { outcome });
  }
}

/** A push to one device. */
interface Push {
  readonly key: string;
  readonly signer: PushSigner;
  readonly token: string;
  /** Failed tries. */
  failures: number;
  /** Null: ready. */
  timer: Timer | null;
  readonly tried: Promise<void>;
  onTried(): void;
}

function goneAtMsOf(answer: ApnsAnswer): number | null {
  return answer.kind === "answered" ? answer.goneAtMs : null;
}

function said({ passTypeId }: PushSigner, answer: ApnsAnswer): Record<string, string | number | null> {
  const detail = answer.kind === "answered" ? { status: answer.status, reason: answer.reason } : { why: answer.why };
  return { pass_type: passTypeId, ...detail };
}
