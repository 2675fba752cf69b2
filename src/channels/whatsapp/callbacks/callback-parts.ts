import type { IncomingMessages } from "../../../domain/channels/incoming-messages.ts";
import type { NumberOfAccount, SenderAccounts } from "../../../domain/channels/sender-accounts.ts";
import type { Clock } from "../../../domain/clock.ts";
import { FailureLog } from "../../../domain/failure-log.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { TenantNewsDesk } from "../../../domain/tenants/tenant-news.ts";
import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import { chatLimits } from "../limits.ts";
import type { NumberOwners } from "../number-owners.ts";
import type { WhatsappPlatform } from "../platform.ts";
import { templateNews } from "../templates/template-news.ts";
import type { TemplateRepository } from "../templates/template-repository.ts";
import { shortened } from "./shortened.ts";
import type { CallbackPart, WhatsappWebhook } from "./webhook.ts";

export interface CallbackPartsPorts {
  readonly messages: Pick<IncomingMessages, "record">;
  readonly accounts: SenderAccounts;
  readonly owners: Pick<NumberOwners, "of">;
  readonly news: Pick<TenantNewsDesk, "tell">;
  readonly templates: Pick<TemplateRepository, "note">;
  readonly platform: WhatsappPlatform;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Stands for the tenant in log lines about a part that belongs to none. */
const NOBODY = "-";

/**
 * Stores the provider's reports on accounts, numbers and templates, and parts of unknown form.
 *
 * P1. A part belongs to the tenants whose own number it names, or whose number is known to be in its account, except
 *     the platform's number. Operators see it in any case, so a part whose tenant is unknown is not lost.
 * P2. `take` resolves once all is on disk. The provider repeats other calls: each step is safe to repeat, under ids made of the
 *     content.
 */
export class CallbackParts {
  private readonly failures: FailureLog;

  constructor(private readonly ports: CallbackPartsPorts) {
    this.failures = new FailureLog(ports.telemetry, ports.clock);
  }

  /** Rejects if a store is unavailable; the whole call may then be repeated. */
  async take({ parts, numbers, dropped }: Pick<WhatsappWebhook, "parts" | "numbers" | "dropped">): Promise<void> {
    await this.noteNumbers(numbers);
    if (dropped > 0) this.count("dropped", dropped);
    if (parts.length === 0) return;
    for (const part of parts) {
      const news = templateNews(part);
      if (news !== null && part.accountId !== null) await this.ports.templates.note(part.accountId, news);
    }
    const found = await Promise.all(
      parts.map(async (part) => ({ part, id: computeId(part), owners: await this.findOwners(part) })),
    );
    const { clock, news, messages } = this.ports;
    const told = found.flatMap(({ part, id, owners }) =>
      owners.map((tenantId) => {
        const { type, atMs } = part;
        return {
          tenantId,
          id,
          type,
          channel: "whatsapp" as const,
          atMs: atMs ?? clock.nowMs(),
          data: toEventData(part),
        };
      }),
    );
    if (told.length > 0) await news.tell(told);
    await messages.record(
      found.map(({ part, id }) => {
        const { phoneNumberId, type } = part;
        return {
          id,
          phoneNumberId,
          from: null,
          userId: null,
          username: null,
          name: null,
          type,
          content: toEventData(part),
        };
      }),
    );
    for (const { part, id, owners } of found) this.report(part, id, owners[0] ?? NOBODY);
  }

  /** Logs how many lines the log has suppressed. Safe to call twice. */
  stop(): void {
    this.failures.stop();
  }

  /** Ignores numbers that no message is sent from, so a signed call cannot fill Redis with others. */
  private async noteNumbers(numbers: readonly NumberOfAccount[]): Promise<void> {
    if (numbers.length === 0) return;
    const owned = await this.ports.owners.of(new Set(numbers.map(({ phoneNumberId }) => phoneNumberId)));
    const known = numbers.filter(({ phoneNumberId }) => owned.has(phoneNumberId));
    if (known.length > 0) await this.ports.accounts.note(known);
  }

  private async findOwners({ phoneNumberId, accountId, displayNumber }: CallbackPart): Promise<readonly string[]> {
    const { owners, accounts, platform } = this.ports;
    const named = phoneNumberId ?? (accountId === null ? null : await accounts.findNumbers(accountId, displayNumber));
    const numbers = new Set(typeof named === "string" ? [named] : (named ?? []));
    // Several tenants send from it.
    if (platform.whatsapp !== null) numbers.delete(platform.whatsapp.phoneNumberId);
    if (numbers.size === 0) return [];
    return [...new Set([...(await owners.of(numbers)).values()].flat())];
  }

  private report(part: CallbackPart, id: string, tenantId: string): void {
    const { type, what, field, event, isAlarming, accountId, phoneNumberId } = part;
    const fields = () => ({ channel: "whatsapp", field, event, account_id: accountId, phone_number_id: phoneNumberId });
    if (type === "message.unknown") {
      this.count(what, 1);
      // Its content, which may be what a person wrote, is among the operators' messages under this id.
      const kept = () => ({ ...fields(), what, message_id: id });
      this.failures.note(tenantId, "a part of a chat provider's call is not understood", kept);
      return;
    }
    this.ports.telemetry.count("chat_account_news", { field: field ?? "other", alarming: isAlarming ? "yes" : "no" });
    if (isAlarming) this.failures.note(tenantId, "the chat provider warns of an account", fields);
  }

  private count(what: string, parts: number): void {
    this.ports.telemetry.count("webhook_parts_unknown", { what }, parts);
  }
}

function computeId({ type, accountId, atMs, content }: CallbackPart): string {
  const text = JSON.stringify([accountId, atMs, content]);
  return `${type}:${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32)}`;
}

/** Converts a part to the data of a tenant's event. */
function toEventData({
  type,
  what,
  accountId,
  phoneNumberId,
  displayNumber,
  field,
  event,
  isAlarming,
  content,
}: CallbackPart): JsonObject {
  const text = JSON.stringify(content);
  const isKept = text.length <= chatLimits.incomingMessageCharsMax && isJsonObject(content);
  const where = { account_id: accountId, phone_number_id: phoneNumberId, phone_number: displayNumber, field };
  const more = isKept ? { content } : { content: null, excerpt: shortened(text, chatLimits.incomingMessageCharsMax) };
  return type === "message.unknown"
    ? { ...where, part: what, ...more }
    : { ...where, event, alarming: isAlarming, ...more };
}
