import type { Clock } from "../../../../domain/clock.ts";
import { TransportError } from "../../../../domain/errors.ts";
import type { Telemetry } from "../../../../domain/telemetry.ts";
import { walletLimits } from "../../limits.ts";
import { boundedFetch } from "../bounded-fetch.ts";
import { type RootKey, rootKeysIn } from "./signed-callback.ts";

export interface CallbackKeysOptions {
  /** The address of the root keys; null if callbacks are not used. */
  readonly url: string | null;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log">;
}

interface Held {
  readonly roots: readonly RootKey[];
  /** Monotonic ms. */
  readonly fetchedMs: number;
  readonly freshUntilMs: number;
}

/**
 * Fetches the root keys with which Google signs callbacks on first use, and caches them according to their
 * `Cache-Control`.
 *
 * K1. One fetch is in flight at a time, and the next waits for a while after a failed one, so forged callbacks cannot
 *     make us call Google often.
 * K2. While Google's address for them is unavailable, earlier keys remain in use for `callbackKeysKeptMs`, or until
 *     they expire. Without any, no callback is judged: the caller must retry.
 */
export class CallbackKeys {
  private held: Held | null = null;
  private fetching: Promise<void> | null = null;
  /** When the last fetch began (monotonic ms). */
  private triedMs = Number.NEGATIVE_INFINITY;
  private readonly stopped = new AbortController();

  constructor(private readonly options: CallbackKeysOptions) {}

  /** Returns the current keys, or null if there are none. */
  async current(): Promise<readonly RootKey[] | null> {
    const nowMs = this.options.clock.monotonicMs();
    if (this.held !== null && nowMs < this.held.freshUntilMs) return this.held.roots;
    if (this.fetching !== null || nowMs - this.triedMs >= walletLimits.callbackKeysRetryMs) await this.fetch();
    const isOld = this.held !== null && nowMs - this.held.fetchedMs >= walletLimits.callbackKeysKeptMs;
    return isOld ? null : (this.held?.roots ?? null);
  }

  /**
   * Fetches the keys again because none of them signed a callback's key; null if it is too soon for that. Never
   * rejects.
   */
  async renewed(): Promise<readonly RootKey[] | null> {
    const { held } = this;
    const sinceMs = this.options.clock.monotonicMs() - this.triedMs;
    if (this.fetching === null && sinceMs < walletLimits.callbackKeysRenewMs) return null;
    await this.fetch();
    return this.held === null || this.held === held ? null : this.held.roots;
  }

  /** Aborts a fetch. Safe to repeat. */
  close(): void {
    this.stopped.abort();
  }

  private async fetch(): Promise<void> {
    this.fetching ??= this.tryFetch().finally(() => {
      this.fetching = null;
    });
    await this.fetching;
  }

  private async tryFetch(): Promise<void> {
    const { url, clock, telemetry } = this.options;
    this.triedMs = clock.monotonicMs();
    if (url === null) return;
    try {
      const { status, headers, text } = await boundedFetch({
        url,
        method: "GET",
        headers: { accept: "application/json" },
        body: null,
        signal: this.stopped.signal,
        timeoutMs: walletLimits.callbackKeysTimeoutMs,
        answerBytesMax: walletLimits.callbackKeysBytesMax,
      });
      const roots = status === 200 ? rootKeysIn(text) : [];
      if (roots.length === 0) throw new TransportError(`the answer (${status}) holds no key`);
      const fetchedMs = clock.monotonicMs();
      this.held = { roots, fetchedMs, freshUntilMs: fetchedMs + freshMs(headers) };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      telemetry.log("warn", "Google's keys for callbacks could not be fetched", { error: error.message });
    }
  }
}

const HOUR_MS = 60 * 60 * 1000;

/** Returns how long an answer may be cached (RFC 9111, 4.2.1), within bounds. */
function freshMs(headers: Headers): number {
  const directives = headers.get("cache-control") ?? "";
  const maxAge = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(directives)?.[1];
  const age = /^\d{1,9}$/.exec(headers.get("age") ?? "0")?.[0] ?? "0";
  const isUncached = /(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/i.test(directives);
  const ms = maxAge === undefined ? HOUR_MS : (Number(maxAge) - Number(age)) * 1000;
  const { callbackKeysRenewMs: min, callbackKeysFreshMsMax: max } = walletLimits;
  return isUncached ? min : Math.min(Math.max(ms, min), max);
}
