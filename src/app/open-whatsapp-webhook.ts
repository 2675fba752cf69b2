import { CallbackData } from "../channels/whatsapp/callback-keys.ts";
import type { WhatsappPorts } from "../channels/whatsapp/ports.ts";
import { WhatsappStatuses } from "../channels/whatsapp/statuses.ts";
import type { Config } from "../config/config.ts";
import type { EventReader } from "../domain/event-store.ts";
import type { PlatformCredentials } from "../domain/platform.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { Shutdown } from "./shutdown.ts";

export interface WebhookContext {
  readonly config: Config;
  readonly queue: RedisQueue;
  readonly directory: TenantDirectory;
  readonly eventStore: { readonly reader: EventReader };
  readonly platform: PlatformCredentials;
  readonly telemetry: Telemetry;
}

/** What the API needs to take the chat provider's callbacks. */
export function openWhatsappWebhook(context: WebhookContext, shutdown: Shutdown): WhatsappPorts {
  const { config, queue, directory, eventStore, platform, telemetry } = context;
  const statuses = new WhatsappStatuses({
    queue,
    references: queue,
    directory,
    eventStore: eventStore.reader,
    callbacks: new CallbackData(config.masterKeys),
    platform,
    clock: systemClock,
    telemetry,
  });
  // Stopped after the API, which hands over no more statuses by then.
  shutdown.add("history", "early statuses", () => statuses.stop());
  return { webhookSecrets: config.webhookSecrets, statuses, messages: queue.incomingMessages };
}
