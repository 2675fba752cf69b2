import type { Config } from "../config/config.ts";
import type { EventFeed } from "../domain/jobs/event-store.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { ChangeFeed } from "../domain/tenants/tenant.ts";
import type { TenantNewsDesk } from "../domain/tenants/tenant-news.ts";
import { outboundGuard } from "../runtime/network-guard.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { WebhookClient } from "../runtime/webhook-client.ts";
import type { DisabledWebhook } from "../webhooks/delivery-repository.ts";
import { NewsDesk } from "../webhooks/news-desk.ts";
import type { WebhookEndpointPorts } from "../webhooks/webhook-endpoints.ts";
import { WebhookSender } from "../webhooks/webhook-sender.ts";
import { WebhookTests } from "../webhooks/webhook-tests.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { auditOwnAct } from "./own-acts.ts";

interface WebhookContext {
  readonly config: Config;
  readonly registry: Pick<OpenRegistry, "webhookDeliveries" | "webhookNews" | "audit">;
  readonly eventStore: { readonly feed: EventFeed };
  readonly telemetry: Telemetry;
}

/** Creates the sender that calls the webhooks of the tenants whose shards this process records, without starting it. */
export function webhookSender(
  { config, registry, eventStore, telemetry }: WebhookContext,
  changes: Pick<ChangeFeed, "onChange">,
): WebhookSender {
  const { webhookDeliveries: store, webhookNews: news, audit } = registry;
  return new WebhookSender({
    store,
    feed: eventStore.feed,
    news,
    caller: new WebhookClient({ guard: outboundGuard(config) }),
    changes,
    async onDisabled({ tenantId, webhookId, reason }: DisabledWebhook) {
      await auditOwnAct(audit, { action: "disableWebhook", tenantId, target: webhookId }, { reason });
      telemetry.log("warn", "a webhook is disabled", { tenant_id: tenantId, webhook_id: webhookId, reason });
    },
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
}

/** Takes what tenants are to hear of over their webhooks. */
export function openNewsDesk(
  { registry: { webhookNews: store }, telemetry }: Pick<WebhookContext, "registry" | "telemetry">,
  changes: Pick<ChangeFeed, "announce">,
): TenantNewsDesk {
  return new NewsDesk({ store, changes, clock: systemClock, telemetry });
}

/** Creates the API's dependencies for webhooks, without starting them. */
export function openWebhooks({
  config,
  registry: { webhookDeliveries: store },
  eventStore: { feed },
  telemetry,
}: WebhookContext): WebhookEndpointPorts["webhooks"] {
  const outbound = outboundGuard(config);
  const caller = new WebhookClient({ guard: outbound });
  return { feed, outbound, tests: new WebhookTests({ store, caller, clock: systemClock, telemetry }) };
}
