import { PassSweep, type PassSweepPorts } from "../channels/wallet/pass-sweep.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { type TenantRemovalPorts, TenantRemovals } from "../tenants/tenant-removal.ts";
import { UsageCounter } from "../tenants/usage-counter.ts";
import type { AppChannel } from "./app-channel.ts";
import type { OpenRegistry } from "./open-registry.ts";
import type { Shutdown } from "./shutdown.ts";

interface SweepOptions {
  readonly channels: readonly AppChannel[];
  readonly telemetry: Telemetry;
}

export function startPassSweep(
  { telemetry }: SweepOptions,
  shutdown: Shutdown,
  ports: Omit<PassSweepPorts, "clock" | "telemetry">,
): void {
  const sweep = new PassSweep({ ...ports, clock: systemClock, telemetry });
  sweep.start();
  shutdown.add("history", "pass sweep", () => sweep.stop());
}

export function startAuditSweep(shutdown: Shutdown, { audit }: OpenRegistry): void {
  audit.oldRows.start();
  shutdown.add("history", "audit sweep", () => audit.oldRows.stop());
}

export function startNewsSweep(shutdown: Shutdown, { webhookNews }: OpenRegistry): void {
  webhookNews.oldRows.start();
  shutdown.add("history", "news sweep", () => webhookNews.oldRows.stop());
}

/** Removes what deleted tenants leave behind. */
export function startTenantRemovals(
  { channels, telemetry }: SweepOptions,
  shutdown: Shutdown,
  ports: Pick<TenantRemovalPorts, "registry" | "queue" | "history">,
): void {
  const names = channels.map(({ name }) => name);
  const removals = new TenantRemovals({ ...ports, channels: names, clock: systemClock, telemetry });
  removals.start();
  shutdown.add("history", "tenant removals", () => removals.stop());
}

/** Counts what tenants do at this process. */
export function startUsage({ registry }: OpenRegistry, telemetry: Telemetry, shutdown: Shutdown): UsageCounter {
  const usage = new UsageCounter({ store: registry, clock: systemClock, telemetry });
  usage.start();
  shutdown.add("clients", "usage", () => usage.stop());
  return usage;
}
