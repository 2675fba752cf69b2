import type { IncomingMessages } from "../../domain/incoming-messages.ts";
import type { WhatsappStatuses } from "./statuses.ts";

/** What takes the chat provider's callbacks. */
export interface WhatsappPorts {
  /** Verify tokens and HMAC keys: any of them will do. */
  readonly webhookSecrets: readonly string[];
  readonly statuses: Pick<WhatsappStatuses, "take">;
  readonly messages: IncomingMessages;
}
