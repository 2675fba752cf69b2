import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { MailHistory, ReputationRules } from "../domain/tenants/reputation.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { AgreedTime } from "../runtime/agreed-time.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { ReputationGovernor } from "../tenants/reputation-governor.ts";
import { type TenantRemovalPorts, TenantRemovals } from "../tenants/tenant-removal.ts";
import { UsageCounter } from "../tenants/usage-counter.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { auditOwnAct } from "./own-acts.ts";
import type { OpenEventStore } from "./stores.ts";
import { openNewsDesk } from "./webhooks.ts";

interface SweepOptions {
  readonly channels: readonly AppChannel[];
  readonly telemetry: Telemetry;
}

/** Removes what is too old, by a time on which all clocks agree. */
export function startOldSweeps(
  { telemetry }: SweepOptions,
  shutdown: Shutdown,
  { registry, queue, eventStore }: { registry: OpenRegistry; queue: RedisQueue; eventStore: OpenEventStore },
): void {
  const time = new AgreedTime({
    clock: systemClock,
    others: [() => queue.time.nowMs(), async () => (await eventStore.health()).nowMs],
    mark: queue.time,
    newestEventMs: () => eventStore.newestEventMs(),
  });
  const agreedMs = () => time.nowMs();
  shutdown.start("history", "audit sweep", registry.audit.oldRows(agreedMs));
  shutdown.start("history", "news sweep", registry.webhookNews.oldRows(agreedMs));
  shutdown.start("history", "history sweep", eventStore.expired({ agreedMs, telemetry }));
}

/** Removes what deleted tenants leave behind. */
export function startTenantRemovals(
  { channels, telemetry }: SweepOptions,
  shutdown: Shutdown,
  ports: Pick<TenantRemovalPorts, "registry" | "beside" | "queue" | "history">,
): void {
  const names = channels.map(({ name }) => name);
  const removals = new TenantRemovals({
    ...ports,
    channels: names,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  shutdown.start("history", "tenant removals", removals);
}

/** Returns the configured rules. */
export function toReputationRules(config: Config): ReputationRules {
  const { reputationGovernor: mode, reputationBounces: bounces, reputationComplaints: complaints } = config;
  return { mode, bounces, complaints };
}

interface Governing {
  readonly registry: OpenRegistry;
  readonly queue: RedisQueue;
  readonly eventStore: { readonly mailHistory: MailHistory };
}

/** Judges tenants' e-mail by its bounces and complaints. */
export function startGovernor(
  { config, telemetry }: Pick<SweepOptions, "telemetry"> & { readonly config: Config },
  shutdown: Shutdown,
  { registry: open, queue, eventStore: { mailHistory: history } }: Governing,
): void {
  const { registry, audit } = open;
  const governor = new ReputationGovernor({
    registry,
    history,
    news: openNewsDesk({ registry: open, telemetry }, queue),
    audit: (tenantId, detail) => auditOwnAct(audit, { action: "governReputation", tenantId, target: null }, detail),
    rules: toReputationRules(config),
    clock: systemClock,
    telemetry,
  });
  shutdown.start("history", "reputation governor", governor);
}

/** Counts what tenants do at this process. */
export function startUsage({ registry }: OpenRegistry, telemetry: Telemetry, shutdown: Shutdown): UsageCounter {
  return shutdown.start("clients", "usage", new UsageCounter({ store: registry, clock: systemClock, telemetry }));
}
