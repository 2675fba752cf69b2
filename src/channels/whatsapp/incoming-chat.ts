import type { Clock } from "../../domain/clock.ts";
import type { IncomingMessages } from "../../domain/incoming-messages.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { PlatformCredentials } from "../../domain/platform.ts";
import type { JobAddress, ProviderReferences } from "../../domain/queue.ts";
import type { ReplyWindows } from "../../domain/reply-windows.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { TenantNews, TenantNewsDesk } from "../../domain/tenant-news.ts";
import type { NumberOwners } from "./number-owners.ts";
import type { ChatMessage } from "./webhook.ts";

export interface IncomingChatPorts {
  readonly messages: Pick<IncomingMessages, "record">;
  readonly windows: Pick<ReplyWindows, "note">;
  readonly owners: Pick<NumberOwners, "of">;
  readonly references: ProviderReferences;
  readonly news: TenantNewsDesk;
  readonly platform: Pick<PlatformCredentials, "whatsapp">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Takes what people write to the sending numbers.
 *
 * I1. A message belongs to the tenants whose own number it came to. What came to the platform's number belongs to no
 *     tenant, even to one whose own credentials name that number: other tenants write from it, and get answers there.
 * I2. `take` resolves once the tenants' news, the writers and the messages are on disk. The provider repeats a call that
 *     was not answered 200, so each step is safe to repeat: news under the same id.
 * I3. Writers are noted only for numbers that are sent from, so no signed call makes Redis remember any others.
 */
export class IncomingChat {
  constructor(private readonly ports: IncomingChatPorts) {}

  /** Rejects if a store is unavailable; the whole call may then be repeated. */
  async take(messages: readonly ChatMessage[]): Promise<void> {
    if (messages.length === 0) return;
    const { platform, owners, windows, news, telemetry } = this.ports;
    const platformNumber = platform.whatsapp?.phoneNumberId;
    const numbers = new Set(messages.flatMap(({ message }) => message.phoneNumberId ?? []));
    if (platformNumber !== undefined) numbers.delete(platformNumber);
    const owned = numbers.size === 0 ? new Map<string, readonly string[]>() : await owners.of(numbers);
    const written = messages.flatMap(({ message: { phoneNumberId, from }, writtenAtMs, isNotice }) =>
      phoneNumberId !== null && !isNotice && (phoneNumberId === platformNumber || owned.has(phoneNumberId))
        ? [{ phoneNumberId, from, writtenAtMs }]
        : [],
    );
    if (written.length > 0) await windows.note(written);
    const told = await this.newsOf(messages, owned);
    if (told.length > 0) await news.tell(told);
    const fresh = await this.ports.messages.record(messages.map(({ message }) => message));
    telemetry.count("incoming_messages", { result: "recorded" }, fresh);
    telemetry.count("incoming_messages", { result: "duplicate" }, messages.length - fresh);
  }

  private async newsOf(
    messages: readonly ChatMessage[],
    owned: ReadonlyMap<string, readonly string[]>,
  ): Promise<readonly TenantNews[]> {
    if (owned.size === 0) return [];
    const ownersOf = ({ message }: ChatMessage) => owned.get(message.phoneNumberId ?? "") ?? [];
    const theirs = messages.filter((one) => ownersOf(one).length > 0);
    const jobs = await this.jobsAnsweredBy(theirs);
    return theirs.flatMap((one) =>
      ownersOf(one).map((tenantId): TenantNews => {
        const { message, writtenAtMs, said } = one;
        const job = said.answers === null ? undefined : jobs.get(said.answers);
        return {
          tenantId,
          id: `whatsapp:${message.id}`,
          type: "message.received",
          channel: "whatsapp",
          atMs: writtenAtMs ?? this.ports.clock.nowMs(),
          data: dataOf(one, job?.tenantId === tenantId ? job.jobId : null),
        };
      }),
    );
  }

  /** The jobs of the messages that these answer, as far as they are still known, by the provider's ids. */
  private async jobsAnsweredBy(messages: readonly ChatMessage[]): Promise<ReadonlyMap<string, JobAddress>> {
    const ids = [...new Set(messages.flatMap(({ said }) => said.answers ?? []))];
    if (ids.length === 0) return new Map();
    const jobs = await this.ports.references.jobsOf(ids);
    return new Map(ids.flatMap((id, i) => (jobs[i] ? [[id, jobs[i]] as const] : [])));
  }
}

/** What a tenant hears of a message. */
function dataOf({ message, said }: ChatMessage, jobId: string | null): JsonObject {
  const { id, phoneNumberId, from, name, type, content } = message;
  return {
    message_id: id,
    phone_number_id: phoneNumberId,
    from,
    name,
    type,
    text: said.text,
    button: said.button === null ? null : { ...said.button },
    in_reply_to: said.answers === null ? null : { message_id: said.answers, job_id: jobId },
    content,
  };
}
