import { randomUUID } from "node:crypto";
import { type BackOffBounds, longestBackOffMs } from "../../../domain/back-off.ts";
import { type Clock, sleep } from "../../../domain/clock.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import { CALLBACK_PATH } from "../google/callbacks/google-callbacks.ts";
import type { GoogleCallbackSigner } from "./google-callback-signer.ts";
import type { GoogleResources } from "./google-resources.ts";

export interface SandboxCallbacksOptions {
  readonly resources: GoogleResources;
  readonly signer: GoogleCallbackSigner;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log">;
}

/** Callbacks that wait for their answer; further ones are dropped. */
const PENDING_MAX = 10_000;
/** Delay from an event to its callback, in place of a person who opens the link. */
const DELAY_MS = 20;
const VALID_MS = 60 * 60 * 1000;
const TIMEOUT_MS = 5_000;
const RETRY: BackOffBounds = { firstMs: 100, maxMs: 2_000 };
const TRIES_MAX = 60;

/**
 * Calls the service when an object is saved or removed, as Google does for classes with `callbackOptions`, but only at
 * the service's own address, so no call leaves this machine. A callback is repeated, with its nonce, until it is
 * answered 200.
 */
export class SandboxCallbacks {
  private url: string | null = null;
  private readonly calls = new Set<Promise<unknown>>();
  private readonly stopped = new AbortController();

  constructor(private readonly options: SandboxCallbacksOptions) {}

  /** Sets the service's address for callbacks. */
  callTo(url: string): void {
    this.url = url;
  }

  /**
   * Simulates a save, or a removal by the only holder. Resolves once the service has accepted the callback; null if
   * none is due.
   */
  async change(kind: string, objectId: string, eventType: "save" | "del"): Promise<JsonObject | null> {
    const { resources, signer, clock } = this.options;
    resources.set(kind, objectId, { hasUsers: eventType === "save" });
    const { classId } = resources.data(kind, objectId) ?? {};
    const options = resources.data(kind.replace(/Object$/, "Class"), String(classId))?.["callbackOptions"];
    const url = isJsonObject(options) ? options["url"] : null;
    if (typeof url !== "string" || !url.endsWith(CALLBACK_PATH)) return null;
    const message = {
      classId: String(classId),
      objectId,
      eventType,
      expTimeMillis: clock.nowMs() + VALID_MS,
      count: 1,
    };
    const body = signer.sign({ ...message, nonce: randomUUID() });
    await this.say(body);
    return body;
  }

  /** Does the same in the background for an object that was just inserted: saved, and then perhaps removed. */
  afterInsertion(kind: string, objectId: string, events: readonly ("save" | "del")[]): void {
    if (this.calls.size >= PENDING_MAX) return;
    const call = (async () => {
      for (const event of events) {
        await sleep(this.options.clock, DELAY_MS, this.stopped.signal);
        if (!this.stopped.signal.aborted) await this.change(kind, objectId, event);
      }
    })().finally(() => this.calls.delete(call));
    this.calls.add(call);
  }

  /** Waits for the calls in flight. Safe to repeat. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await Promise.all(this.calls);
  }

  private async say(body: JsonObject): Promise<void> {
    const { clock, telemetry } = this.options;
    for (let tries = 0; tries < TRIES_MAX && !this.stopped.signal.aborted; tries += 1) {
      if (this.url !== null && (await this.call(this.url, body))) return;
      await sleep(clock, longestBackOffMs(RETRY, tries), this.stopped.signal);
    }
    if (!this.stopped.signal.aborted) telemetry.log("warn", "a sandbox callback of a Google pass was given up");
  }

  private async call(url: string, body: JsonObject): Promise<boolean> {
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), this.stopped.signal]),
      });
      await response.text();
      return response.ok;
    } catch {
      return false;
    }
  }
}
