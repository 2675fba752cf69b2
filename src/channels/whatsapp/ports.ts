import type { IncomingMessages } from "../../domain/channels/incoming-messages.ts";
import type { ReplyWindows } from "../../domain/channels/reply-windows.ts";
import type { CallbackParts } from "./callbacks/callback-parts.ts";
import type { IncomingChat } from "./callbacks/incoming-chat.ts";
import type { WhatsappStatuses } from "./callbacks/statuses.ts";
import type { TemplateDesk } from "./templates/template-desk.ts";

/** What the endpoints of the chat channel need. */
export interface WhatsappPorts {
  /** Verify tokens and HMAC keys of the provider's callbacks; any of them is accepted. */
  readonly webhookSecrets: readonly string[];
  readonly statuses: Pick<WhatsappStatuses, "take">;
  /** Takes what people write. */
  readonly incoming: Pick<IncomingChat, "take">;
  /** Takes news of accounts, and what is not understood. */
  readonly parts: Pick<CallbackParts, "take">;
  /** Shows operators what people wrote. */
  readonly messages: Pick<IncomingMessages, "page">;
  /** Knows the templates of tenants' own accounts. */
  readonly templates: Pick<TemplateDesk, "doubt" | "sync">;
  /** Says who wrote lately. */
  readonly windows: Pick<ReplyWindows, "lastWrittenMs">;
}
