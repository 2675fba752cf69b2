import { type Clock, waitAtMost } from "../../../domain/clock.ts";
import type { JobIds } from "../../../domain/ids.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { TenantDirectory } from "../../../domain/tenants/tenant.ts";
import type { WebhookCaller } from "../../../domain/texts/outbound.ts";
import { walletLimits } from "../limits.ts";

/** A device, or a holder of a Google pass, added or removed a pass. */
export interface DeviceChange {
  readonly action: "register" | "unregister";
  readonly tenantId: string;
  readonly passId: string;
  readonly serial: string;
  /** Null for a Google pass, whose device is unknown. */
  readonly deviceId: string | null;
}

export interface DeviceWebhooksPorts {
  readonly directory: TenantDirectory;
  readonly caller: WebhookCaller;
  readonly clock: Clock;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
}

/** A pending call. */
interface Due extends DeviceChange {
  /** Identifies the call in the log. */
  readonly id: string;
  readonly atMs: number;
}

interface TenantLine {
  readonly waiting: Due[];
  /** Device and pass pairs with a call in flight. */
  readonly busy: Set<string>;
}

/**
 * Reports changes of their passes' devices to tenants, in the background of the replies to the devices.
 *
 * W1. A change is reported at most once: no call is repeated, neither after a failure nor after a crash.
 * W2. Pending calls live in memory and in the log: one line when a call becomes due, one when it succeeds or fails. A
 *     first line without a second marks a call lost in a crash. The registry already records that the device has the
 *     pass, so only the call is lost; a stored queue would add no information.
 * W3. Calls for one device and pass go out one at a time, in the order of the changes.
 * W4. Bounds apply to pending calls, calls in flight, each tenant's share of both, and the time of a call. Tenants take
 *     turns, so a receiver that hangs delays only its own tenant's calls.
 */
export class DeviceWebhooks {
  /** Ordered by turn; only tenants with calls waiting or in flight. */
  private readonly lines = new Map<string, TenantLine>();
  private readonly calls = new Set<Promise<void>>();
  private readonly cutOff = new AbortController();
  private waiting = 0;
  private onIdle: (() => void) | null = null;

  constructor(private readonly ports: DeviceWebhooksPorts) {}

  /** Returns at once. */
  note(change: DeviceChange): void {
    const { clock, jobIds } = this.ports;
    const due = { ...change, id: jobIds.next(), atMs: clock.nowMs() };
    const line = this.lines.get(change.tenantId) ?? { waiting: [], busy: new Set<string>() };
    const isFull =
      this.waiting + this.calls.size >= walletLimits.webhooksPendingMax ||
      line.waiting.length + line.busy.size >= walletLimits.tenantWebhooksPendingMax;
    if (isFull) return this.drop(due, "too many calls are waiting");
    if (this.cutOff.signal.aborted) return this.drop(due, "the process is stopping");
    this.tell("info", "a device webhook is due", due);
    line.waiting.push(due);
    this.waiting += 1;
    this.lines.set(change.tenantId, line);
    this.begin();
  }

  /** Waits until `untilMs` (monotonic) for pending calls, then drops the rest. Resolves when no call is in flight. */
  async stop(untilMs: number): Promise<void> {
    const { clock } = this.ports;
    const idle = new Promise<void>((resolve) => (this.onIdle = resolve));
    if (this.calls.size > 0) await waitAtMost(clock, Math.max(0, untilMs - clock.monotonicMs()), idle);
    this.cutOff.abort();
    for (const line of this.lines.values()) {
      for (const due of line.waiting.splice(0)) this.drop(due, "the process is stopping");
    }
    this.waiting = 0;
    await Promise.all(this.calls);
  }

  /** Starts as many calls as the bounds allow. */
  private begin(): void {
    while (this.calls.size < walletLimits.webhookCallsMax) {
      const due = this.next();
      if (due === null) break;
      const call = this.run(due).then(() => {
        this.calls.delete(call);
        this.release(due);
        this.begin();
      });
      this.calls.add(call);
    }
    if (this.calls.size === 0) this.onIdle?.();
  }

  /** Takes the first call of the next tenant that may start one; ends that tenant's turn. */
  private next(): Due | null {
    for (const [tenantId, line] of this.lines) {
      if (line.busy.size >= walletLimits.tenantWebhookCallsMax) continue;
      const at = line.waiting.findIndex((due) => !line.busy.has(formatSubject(due)));
      const [due] = at === -1 ? [] : line.waiting.splice(at, 1);
      if (due === undefined) continue;
      line.busy.add(formatSubject(due));
      this.waiting -= 1;
      this.lines.delete(tenantId);
      this.lines.set(tenantId, line);
      return due;
    }
    return null;
  }

  private release(due: Due): void {
    const line = this.lines.get(due.tenantId);
    line?.busy.delete(formatSubject(due));
    if (line !== undefined && line.busy.size + line.waiting.length === 0) this.lines.delete(due.tenantId);
  }

  /** Never rejects. */
  private async run(due: Due): Promise<void> {
    const { directory, caller, telemetry } = this.ports;
    try {
      const tenant = await directory.byId(due.tenantId);
      const url = tenant?.wallet.webhookUrl ?? null;
      if (url === null) {
        telemetry.count("device_webhooks", { result: "no_receiver" });
        return this.tell("info", "a device webhook has no receiver", due);
      }
      const why = await this.inTime((signal) => caller.post(url, formatPayload(due), signal));
      telemetry.count("device_webhooks", { result: why === null ? "told" : "failed" });
      if (why === null) this.tell("info", "a device webhook was told", due);
      else this.tell("warn", "a device webhook failed and is not repeated", due, why);
    } catch (error) {
      telemetry.count("device_webhooks", { result: "failed" });
      this.tell("error", "a device webhook failed and is not repeated", due, String(error));
    }
  }

  private async inTime<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const timer = this.ports.clock.setTimer(walletLimits.webhookTimeoutMs, () => late.abort());
    try {
      return await call(AbortSignal.any([late.signal, this.cutOff.signal]));
    } finally {
      timer.cancel();
    }
  }

  private drop(due: Due, why: string): void {
    this.ports.telemetry.count("device_webhooks", { result: "dropped" });
    this.tell("warn", "a device webhook was not sent", due, why);
  }

  /** Logs no device id, with which anyone could query the device's passes. */
  private tell(level: "info" | "warn" | "error", message: string, due: Due, why?: string): void {
    const { id, action, tenantId, passId } = due;
    const fields = { webhook_id: id, action, tenant_id: tenantId, pass_id: passId };
    this.ports.telemetry.log(level, message, why === undefined ? fields : { ...fields, error: why });
  }
}

function formatSubject({ deviceId, passId }: DeviceChange): string {
  return `${passId} ${deviceId ?? ""}`;
}

function formatPayload({ action, passId, serial, deviceId, tenantId, atMs }: Due): string {
  return JSON.stringify({
    action,
    pass_id: passId,
    serial_number: serial,
    device_id: deviceId,
    tenant_id: tenantId,
    // ISO 8601 in whole seconds.
    timestamp: `${new Date(atMs).toISOString().slice(0, 19)}Z`,
  });
}
