import type { Clock } from "../../../../domain/clock.ts";
import { TransportError } from "../../../../domain/errors.ts";
import type { Telemetry } from "../../../../domain/telemetry.ts";
import { walletLimits } from "../../limits.ts";
import { boundedFetch } from "../bounded-fetch.ts";
import { type RootKey, rootKeysIn } from "./signed-callback.ts";

export interface CallbackKeysOptions {
  /** Null: nobody signs callbacks here. */
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
 * The root keys with which Google signs callbacks, fetched when they are first needed and kept as their `Cache-Control` says.
 *
 * K1. One fetch is under way at a time, and none follows a failed one for a while: forged callbacks cannot have us call Google often.
 * K2. While Google's address for them is away, keys of an earlier answer hold on, for `callbackKeysKeptMs` and until they end. Without
 *     any, no callback is judged: who calls is told to come again.
 */
export class CallbackKeys {
  private held: Held | null = null;
  private fetching: Promise<void> | null = null;
  /** When the last fetch began (monotonic ms). */
  private triedMs = Number.NEGATIVE_INFINITY;
  private readonly stopped = new AbortController();

  constructor(private readonly options: CallbackKeysOptions) {}

  /** Null: there are none now. */
  async current(): Promise<readonly RootKey[] | null> {
    const nowMs = this.options.clock.monotonicMs();
    if (this.held !== null && nowMs < this.held.freshUntilMs) return this.held.roots;
    if (this.fetching !== null || nowMs - this.triedMs >= walletLimits.callbackKeysRetryMs) await this.fetch();
    const isOld = this.held !== null && nowMs - this.held.fetchedMs >= walletLimits.callbackKeysKeptMs;
    return isOld ? null : (this.held?.roots ?? null);
  }

  /** Fetched anew because a callback's key is of none of them; null: they are as new as may be. Never rejects. */
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

/** How long an answer may be used (RFC 9111, 4.2.1), within bounds. */
function freshMs(headers: Headers): number {
  const directives = headers.get("cache-control") ?? "";
  const maxAge = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(directives)?.[1];
  const age = /^\d{1,9}$/.exec(headers.get("age") ?? "0")?.[0] ?? "0";
  const isUncached = /(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/i.test(directives);
  const ms = maxAge === undefined ? HOUR_MS : (Number(maxAge) - Number(age)) * 1000;
  const { callbackKeysRenewMs: min, callbackKeysFreshMsMax: max } = walletLimits;
  return isUncached ? min : Math.min(Math.max(ms, min), max);
}
