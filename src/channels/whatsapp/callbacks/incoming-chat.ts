import type { IncomingMessages } from "../../../domain/channels/incoming-messages.ts";
import type { ReplyWindows } from "../../../domain/channels/reply-windows.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { JobAddress, ProviderReferences } from "../../../domain/jobs/queue.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { TenantNews, TenantNewsDesk } from "../../../domain/tenants/tenant-news.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import type { NumberOwners } from "../number-owners.ts";
import { type ChangedPerson, listIds } from "../person.ts";
import type { WhatsappPlatform } from "../platform.ts";
import type { ChatMessage } from "./webhook.ts";

/** A tenant's list of people who must not receive messages. */
export interface SuppressionsOfPeople {
  /** Adds the other ids to the list if one of the former ids is on it. Safe to repeat. */
  follow(tenantId: string, former: readonly string[], others: readonly string[]): Promise<void>;
}

export interface IncomingChatPorts {
  readonly messages: Pick<IncomingMessages, "record">;
  readonly windows: Pick<ReplyWindows, "note" | "lastWrittenMs">;
  readonly suppressions: SuppressionsOfPeople;
  readonly owners: Pick<NumberOwners, "of">;
  readonly references: ProviderReferences;
  readonly news: Pick<TenantNewsDesk, "tell">;
  readonly platform: WhatsappPlatform;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Stores the messages that people write to the sending numbers.
 *
 * I1. A message belongs to the tenants whose own number received it. A message to the platform's number belongs to no
 *     tenant, not even to one whose own credentials name that number: other tenants send from it and receive answers
 *     there.
 * I2. `take` resolves once the tenants' events, the writers and the messages are on disk. The provider repeats a call
 *     that was not answered 200, so each step is safe to repeat: an event keeps its id.
 * I3. A writer is known by number and by id, whichever a message names. When the provider changes them, the time of the
 *     person's last message and a suppression move from the former ones to the new ones.
 * I4. Writers are stored only for numbers that messages are sent from, so a signed call cannot fill Redis with others.
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
    const isSender = (number: string) => number === platformNumber || owned.has(number);
    const written = messages.flatMap(({ message: { phoneNumberId }, writer, writtenAtMs, isNotice }) =>
      phoneNumberId !== null && !isNotice && isSender(phoneNumberId)
        ? listIds(writer).map((from) => ({ phoneNumberId, from, writtenAtMs }))
        : [],
    );
    if (written.length > 0) await windows.note(written);
    for (const { message, changed } of messages) {
      const { phoneNumberId } = message;
      if (changed === null || phoneNumberId === null || !isSender(phoneNumberId)) continue;
      await this.follow(changed, phoneNumberId, owned.get(phoneNumberId) ?? []);
    }
    const told = await this.collectUpdates(messages, owned);
    if (told.length > 0) await news.tell(told);
    const fresh = await this.ports.messages.record(messages.map(({ message }) => message));
    telemetry.count("incoming_messages", { result: "recorded" }, fresh);
    telemetry.count("incoming_messages", { result: "duplicate" }, messages.length - fresh);
  }

  private async follow(
    { before, after }: ChangedPerson,
    phoneNumberId: string,
    tenantIds: readonly string[],
  ): Promise<void> {
    const { windows, suppressions } = this.ports;
    const [former, others] = [listIds(before), listIds(after)];
    const writtenAtMs = await windows.lastWrittenMs(phoneNumberId, former);
    if (writtenAtMs !== null) await windows.note(others.map((from) => ({ phoneNumberId, from, writtenAtMs })));
    for (const tenantId of tenantIds) await suppressions.follow(tenantId, former, others);
  }

  private async collectUpdates(
    messages: readonly ChatMessage[],
    owned: ReadonlyMap<string, readonly string[]>,
  ): Promise<readonly TenantNews[]> {
    if (owned.size === 0) return [];
    const findOwners = ({ message }: ChatMessage) => owned.get(message.phoneNumberId ?? "") ?? [];
    const theirs = messages.filter((one) => findOwners(one).length > 0);
    const jobs = await this.jobsAnsweredBy(theirs);
    return theirs.flatMap((one) =>
      findOwners(one).map((tenantId): TenantNews => {
        const { message, writtenAtMs, said } = one;
        const job = said.answers === null ? undefined : jobs.get(said.answers);
        return {
          tenantId,
          id: `whatsapp:${message.id}`,
          type: "message.received",
          channel: "whatsapp",
          atMs: writtenAtMs ?? this.ports.clock.nowMs(),
          data: toEventData(one, job?.tenantId === tenantId ? job.jobId : null),
        };
      }),
    );
  }

  /** Finds the jobs of the messages that these answer, if still known, by the provider's ids. */
  private async jobsAnsweredBy(messages: readonly ChatMessage[]): Promise<ReadonlyMap<string, JobAddress>> {
    const ids = [...new Set(messages.flatMap(({ said }) => said.answers ?? []))];
    if (ids.length === 0) return new Map();
    const jobs = await this.ports.references.findReferencedJobs(ids);
    return new Map(ids.flatMap((id, i) => (jobs[i] ? [[id, jobs[i]] as const] : [])));
  }
}

/** Converts a message to the data of a tenant's event. */
function toEventData({ message, said, changed }: ChatMessage, jobId: string | null): JsonObject {
  const { id, phoneNumberId, from, userId, username, name, type, content } = message;
  return {
    message_id: id,
    phone_number_id: phoneNumberId,
    from,
    user_id: userId,
    username,
    name,
    ...(changed && { changed: { from: changed.after.from, user_id: changed.after.userId } }),
    type,
    text: said.text,
    button: said.button === null ? null : { ...said.button },
    in_reply_to: said.answers === null ? null : { message_id: said.answers, job_id: jobId },
    content,
  };
}
