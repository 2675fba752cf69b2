import { createHmac } from "node:crypto";
import { type BackOffBounds, backOffMs } from "../../../domain/back-off.ts";
import { sleep } from "../../../domain/clock.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";

/** A provider's status for a message that it accepted. */
export interface MessageStatus {
  readonly phoneNumberId: string;
  readonly messageId: string;
  readonly status: "sent" | "delivered" | "read" | "failed";
  readonly to: string;
  readonly opaque: string | null;
}

export interface StatusCallbacksOptions extends RuntimePorts {
  /** Signs the callbacks. */
  readonly secret: string;
  /** Shuffles statuses, within and across messages. */
  readonly shuffled: boolean;
  /** Sends every status twice. */
  readonly doubled: boolean;
}

const BATCH_MAX = 50;
/** Statuses waiting for their callback; any beyond this are dropped. */
const PENDING_MAX = 100_000;
/** Delay from a status to its callback: lets the reply to the message arrive first and batches nearby statuses. */
const LINGER_MS = 5;
/** Long enough to collect and mix the statuses of many messages. */
const SHUFFLE_MS = 50;
const TIMEOUT_MS = 5_000;
const RETRY: BackOffBounds = { firstMs: 100, maxMs: 1_000 };

/**
 * Calls the webhook with statuses as the provider does: signed, in batches, and repeatedly until the webhook accepts
 * them.
 *
 * C1. One callback is in flight at a time, so statuses arrive in order unless `shuffled` is set.
 * C2. A callback is repeated until its answer is 2xx.
 * C3. The number of waiting statuses is bounded.
 * C4. After `stop`, no call starts; `stop` waits for the callback in flight.
 */
export class StatusCallbacks {
  private pending: MessageStatus[] = [];
  private url: string | null = null;
  private calling: Promise<void> | null = null;
  private dropped = 0;
  private readonly stopped = new AbortController();

  constructor(private readonly options: StatusCallbacksOptions) {}

  /** Sets the webhook's address; until then, statuses wait. */
  callTo(url: string): void {
    this.url = url;
    this.start();
  }

  add(statuses: readonly MessageStatus[]): void {
    if (this.stopped.signal.aborted) return;
    const room = PENDING_MAX - this.pending.length;
    const all = this.options.doubled ? [...statuses, ...statuses] : statuses;
    if (room < all.length && this.dropped === 0) {
      this.options.telemetry.log("warn", "too many sandbox callbacks wait for the API, and some are dropped");
    }
    this.dropped += Math.max(0, all.length - room);
    this.pending.push(...all.slice(0, room));
    this.start();
  }

  /** Calls the webhook once with these statuses immediately; if it refuses them, they wait like all others. */
  async sayNow(statuses: readonly MessageStatus[]): Promise<void> {
    if (!(await this.call(statuses))) this.add(statuses);
  }

  /** Safe to repeat. */
  async stop(): Promise<void> {
    this.stopped.abort();
    this.pending = [];
    await this.calling;
  }

  private start(): void {
    if (this.url === null || this.pending.length === 0) return;
    this.calling ??= this.callUntilDone().finally(() => {
      this.calling = null;
    });
  }

  private async callUntilDone(): Promise<void> {
    const { clock, random, shuffled } = this.options;
    while (this.pending.length > 0 && !this.stopped.signal.aborted) {
      await sleep(clock, shuffled ? SHUFFLE_MS : LINGER_MS, this.stopped.signal);
      const batch = this.nextBatch();
      for (let tries = 0; batch.length > 0 && !(await this.call(batch)); tries += 1) {
        await sleep(clock, backOffMs(RETRY, tries, random), this.stopped.signal);
        if (this.stopped.signal.aborted) return;
      }
    }
  }

  private nextBatch(): MessageStatus[] {
    const { shuffled, random } = this.options;
    if (!shuffled) return this.pending.splice(0, BATCH_MAX);
    const batch: MessageStatus[] = [];
    while (batch.length < BATCH_MAX) {
      // Moves the last status into the slot of the drawn one.
      const at = Math.floor(random.next() * this.pending.length);
      const last = this.pending.pop();
      if (last === undefined) break;
      const drawn = this.pending[at];
      if (drawn !== undefined) this.pending[at] = last;
      batch.push(drawn ?? last);
    }
    return batch;
  }

  /** Returns whether the webhook accepted them. */
  private async call(statuses: readonly MessageStatus[]): Promise<boolean> {
    if (this.url === null) return false;
    const { clock, secret, telemetry } = this.options;
    const body = JSON.stringify(buildNotification(statuses, clock.nowMs()));
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    try {
      const response = await fetch(this.url, {
        method: "POST",
        headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.text();
      if (!response.ok) telemetry.log("debug", "a sandbox callback was refused", { status: response.status });
      return response.ok;
    } catch (error) {
      telemetry.log("debug", "a sandbox callback got no answer", { error: String(error) });
      return false;
    }
  }
}

/** Builds a call with one change per phone number, ordered by first status. */
function buildNotification(statuses: readonly MessageStatus[], nowMs: number): JsonObject {
  const byNumber = Map.groupBy(statuses, ({ phoneNumberId }) => phoneNumberId);
  const timestamp = String(Math.floor(nowMs / 1000));
  const changes = Array.from(byNumber, ([phone_number_id, own]) => ({
    field: "messages",
    value: {
      messaging_product: "whatsapp",
      metadata: { display_phone_number: "15550000000", phone_number_id },
      statuses: own.map((status) => buildStatus(status, timestamp)),
    },
  }));
  return { object: "whatsapp_business_account", entry: [{ id: "100000000000000", changes }] };
}

function buildStatus({ messageId, status, to, opaque }: MessageStatus, timestamp: string): JsonObject {
  return {
    id: messageId,
    status,
    timestamp,
    ...(/^\d+$/.test(to) ? { recipient_id: to } : { recipient_user_id: to }),
    ...(opaque === null ? {} : { biz_opaque_callback_data: opaque }),
    ...(status === "failed"
      ? { errors: [UNDELIVERABLE] }
      : { pricing: { billable: true, pricing_model: "PMP", type: "regular", category: "utility" } }),
  };
}

const UNDELIVERABLE = {
  code: 131026,
  title: "Message undeliverable",
  message: "Message undeliverable",
  error_data: { details: "Message Undeliverable." },
} as const;
