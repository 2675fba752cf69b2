import { CallbackData } from "../channels/whatsapp/callback-keys.ts";
import type { WhatsappPorts } from "../channels/whatsapp/ports.ts";
import { WhatsappStatuses } from "../channels/whatsapp/statuses.ts";
import type { Config } from "../config/config.ts";
import type { LedgerReader } from "../domain/event-store.ts";
import type { PlatformCredentials } from "../domain/platform.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import type { RedisJournal } from "../engine/queue/redis-journal.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { Shutdown } from "./shutdown.ts";

export interface WebhookSurroundings {
  readonly config: Config;
  readonly journal: RedisJournal;
  readonly directory: TenantDirectory;
  readonly ledger: { readonly reader: LedgerReader };
  readonly platform: PlatformCredentials;
  readonly telemetry: Telemetry;
}

/** What the API needs to take the chat provider's callbacks. */
export function openWhatsappWebhook(surroundings: WebhookSurroundings, shutdown: Shutdown): WhatsappPorts {
  const { config, journal, directory, ledger, platform, telemetry } = surroundings;
  const statuses = new WhatsappStatuses({
    journal,
    references: journal,
    directory,
    ledger: ledger.reader,
    callbacks: new CallbackData(config.masterKeys),
    platform,
    clock: systemClock,
    telemetry,
  });
  // After the API: nobody hands over another one.
  shutdown.add("history", "early statuses", () => statuses.stop());
  return { webhookSecrets: config.webhookSecrets, statuses, messages: journal.incomingMessages };
}
