import type { DeliveryEvent, EventType } from "./event.ts";
import type { ChannelName, FinalStatus, JobRecord } from "./job.ts";
import type { JsonObject } from "./json.ts";

/** One event on its way into the event store, with the job's final state where the event is what ended it. */
export interface StoredEventRow {
  readonly tenantId: string;
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly eventId: number;
  readonly type: EventType;
  readonly result: JsonObject;
  readonly finished: FinishedJob | null;
}

export interface FinishedJob {
  readonly status: FinalStatus;
  readonly attempts: number;
  readonly result: JsonObject;
  /** What its tenant calls the template that it was made from; absent: none. */
  readonly template?: string;
}

/**
 * What is known of a batch that is to be written. `new`: nobody can have tried before. `again`: somebody may have, however
 * long ago, so its token may be forgotten. `apart`: it was refused again and again; rows at fault are to be set aside.
 */
export type WriteAttempt = "new" | "again" | "apart";

export interface WriteOutcome {
  /** Whether rows of the batch were there already. */
  readonly wereThere: boolean;
  /** Rows that no table takes, which were set aside. */
  readonly setAside: number;
}

export interface EventWriter {
  /**
   * Writes the rows once, however often it is called with the same token. Resolves when they can be read. Rejects with
   * `RowsRefusedError` where the event store would refuse them for ever.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a writer that has nothing to say of a batch says nothing.
  write(token: string, rows: readonly StoredEventRow[], attempt?: WriteAttempt): Promise<WriteOutcome | void>;
}

/** The event store was reached, and refused what it was given: the same rows again are refused again. */
export class RowsRefusedError extends Error {
  override readonly name = "RowsRefusedError";
}

export interface EventQuery {
  readonly tenantId: string;
  /** Event ids in [from, to). */
  readonly fromEventId: number;
  readonly toEventId: number;
  /** Null: e-mail and chat, without wallet. */
  readonly channel: ChannelName | null;
  readonly type: EventType | null;
  readonly limit: number;
}

export interface TenantEvent extends DeliveryEvent {
  readonly jobId: string;
  readonly channel: ChannelName;
}

export interface EventPage {
  /** Newest first. */
  readonly events: readonly TenantEvent[];
  readonly hasMore: boolean;
}

export interface EventReader {
  page(query: EventQuery): Promise<EventPage>;
  /** A finished job with all its events, or null. */
  job(tenantId: string, jobId: string): Promise<JobRecord | null>;
}
