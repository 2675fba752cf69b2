import type { WhatsappPorts } from "../api/api-ports.ts";
import type { Config } from "../config.ts";
import type { LedgerReader } from "../core/ledger.ts";
import type { PlatformCredentials } from "../core/platform.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { TenantDirectory } from "../core/tenant.ts";
import { WhatsappStatuses } from "../intake/whatsapp-statuses.ts";
import type { RedisJournal } from "../journal/redis-journal.ts";
import { CallbackData } from "../links/callback-data.ts";
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
