import type { Clock } from "../domain/clock.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { WebhookCalls } from "../domain/texts/outbound.ts";
import type { DeliveryRepository } from "./delivery-repository.ts";
import { webhookLimits } from "./limits.ts";
import { testMessage } from "./message.ts";
import { findFault } from "./progress.ts";
import { signedHeaders } from "./signature.ts";
import type { Attempt } from "./webhook.ts";
import { calledInTime, saidBy } from "./webhook-turn.ts";

export interface WebhookTestPorts {
  readonly store: Pick<DeliveryRepository, "one" | "openSecrets" | "noteTest">;
  readonly caller: WebhookCalls;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Makes test calls that tenants request, outside the order of events. */
export class WebhookTests {
  private readonly running = new Map<string, number>();

  constructor(private readonly ports: WebhookTestPorts) {}

  /** Null: there is no such webhook; `busy`: too many tests are in flight. Rejects with `UnavailableError`. */
  async run(tenantId: string, webhookId: string): Promise<Attempt | "busy" | null> {
    const own = this.running.get(tenantId) ?? 0;
    const all = this.running.values().reduce((sum, tests) => sum + tests, 0);
    if (own >= webhookLimits.tenantTestsMax || all >= webhookLimits.testsMax) return "busy";
    this.running.set(tenantId, own + 1);
    try {
      return await this.call(tenantId, webhookId);
    } finally {
      if (own === 0) this.running.delete(tenantId);
      else this.running.set(tenantId, own);
    }
  }

  private async call(tenantId: string, webhookId: string): Promise<Attempt | null> {
    const { store, caller, clock, telemetry } = this.ports;
    const webhook = await store.one(tenantId, webhookId);
    if (webhook === null) return null;
    const [atMs, beganMs] = [clock.nowMs(), clock.monotonicMs()];
    const { messageId, json } = testMessage(webhookId, atMs);
    const headers = signedHeaders({ messageId, json, atMs, secrets: store.openSecrets(webhook) });
    const { url } = webhook;
    const answer = await calledInTime(clock, NEVER, (signal) => caller.call({ url, json, headers }, signal));
    const { status, said } = saidBy(answer);
    const attempt: Attempt = {
      atMs,
      isTest: true,
      messageId,
      events: 0,
      firstEventId: null,
      lastEventId: null,
      status,
      error: findFault(answer),
      answer: said,
      ms: Math.round(clock.monotonicMs() - beganMs),
    };
    await store.noteTest({ tenantId, webhookId }, attempt).catch((error: unknown) => {
      telemetry.log("warn", "a webhook's test could not be written to its log", { error: String(error) });
    });
    return attempt;
  }
}

/** The call's own time-out is enough. */
const NEVER = new AbortController().signal;
