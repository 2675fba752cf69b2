import type { IncomingMessages } from "../../domain/channels/incoming-messages.ts";
import type { ReplyWindows } from "../../domain/channels/reply-windows.ts";
import type { CallbackParts } from "./callbacks/callback-parts.ts";
import type { IncomingChat } from "./callbacks/incoming-chat.ts";
import type { WhatsappStatuses } from "./callbacks/statuses.ts";
import type { TemplateDesk } from "./templates/template-desk.ts";

/** Dependencies of the chat channel's endpoints. */
export interface WhatsappPorts {
  /** Verify tokens and HMAC keys of the provider's callbacks; any of them is accepted. */
  readonly webhookSecrets: readonly string[];
  readonly statuses: Pick<WhatsappStatuses, "take">;
  /** Stores messages that people write. */
  readonly incoming: Pick<IncomingChat, "take">;
  /** Stores reports on accounts, and content of unknown form. */
  readonly parts: Pick<CallbackParts, "take">;
  /** Lists received messages for operators. */
  readonly messages: Pick<IncomingMessages, "page">;
  /** Reads and checks the templates of tenants' own accounts. */
  readonly templates: Pick<TemplateDesk, "doubt" | "sync">;
  /** Returns the time of a person's last message. */
  readonly windows: Pick<ReplyWindows, "lastWrittenMs">;
}
