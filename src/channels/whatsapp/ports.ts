import type { IncomingMessages } from "../../domain/incoming-messages.ts";
import type { WhatsappStatuses } from "./statuses.ts";

/** What the endpoint of the chat provider's callbacks needs. */
export interface WhatsappPorts {
  /** Verify tokens and HMAC keys; any of them is accepted. */
  readonly webhookSecrets: readonly string[];
  readonly statuses: Pick<WhatsappStatuses, "take">;
  readonly messages: IncomingMessages;
}
