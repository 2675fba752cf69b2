import { DeviceLog } from "../channels/wallet/devices/device-log.ts";
import { DeviceWebhooks } from "../channels/wallet/devices/device-webhooks.ts";
import type { PassKitPorts } from "../channels/wallet/devices/pass-kit-ports.ts";
import type { Config } from "../config/config.ts";
import type { JobIds } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { WebhookClient } from "../runtime/webhook-client.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { outboundGuard } from "./outbound-guard.ts";

export interface PassKit extends PassKitPorts {
  readonly log: DeviceLog;
  /** Delivers pending notifications until `limits.drainMs` have passed since `drainedFromMs` (monotonic). */
  stop(drainedFromMs: number): Promise<void>;
}

/** The service for devices that hold passes. Starts nothing. */
export function openPassKit({
  config,
  registry: { passes, devices, directory },
  jobIds,
  telemetry,
}: {
  readonly config: Config;
  readonly registry: OpenRegistry;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
}): PassKit {
  const clock = systemClock;
  const caller = new WebhookClient({ guard: outboundGuard(config) });
  const webhooks = new DeviceWebhooks({ directory, caller, clock, jobIds, telemetry });
  const log = new DeviceLog({ clock, telemetry, keptMax: config.providers === "live" ? 0 : COMPLAINTS_KEPT });
  return { passes, devices, webhooks, log, stop: (drainedFromMs) => webhooks.stop(drainedFromMs + limits.drainMs) };
}

/** Most complaints kept for the sandbox view. */
const COMPLAINTS_KEPT = 1_000;
