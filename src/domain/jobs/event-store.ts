import type { JsonObject } from "../texts/json.ts";
import type { DeliveryEvent, EventType } from "./event.ts";
import type { Attempt, ChannelName, FinalStatus, JobRecord, KeptContent } from "./job.ts";
import type { Tag } from "./tags.ts";

/** One event to be written to the event store, with the job's final state if the event ended the job. */
export interface StoredEventRow {
  readonly tenantId: string;
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly eventId: number;
  readonly type: EventType;
  readonly result: JsonObject;
  /** When it happened by the provider's own clock (unix ms); absent: the provider did not say. */
  readonly occurredAtMs?: number;
  readonly finished: FinishedJob | null;
}

export interface FinishedJob {
  readonly status: FinalStatus;
  readonly attempts: number;
  readonly result: JsonObject;
  /** The tenant's name of the template that the job was made from; absent: none. */
  readonly template?: string;
  /** The job's normalised recipient, of which only a keyed hash and the domain are stored; absent: not known. */
  readonly recipient?: string;
  /** Absent: none was kept. */
  readonly tries?: readonly Attempt[];
  /** As in `JobRecord`. */
  readonly began?: number;
  /** The content with which a failed job is retried; absent: it was not kept, for lack of space. */
  readonly kept?: KeptContent;
  /** Absent: none, or its recipient was erased. */
  readonly tags?: readonly Tag[];
}

/**
 * The history of a batch that is to be written. `new`: no process can have tried before. `again`: a process may have
 * tried, however long ago, so the store may have forgotten its token. `apart`: it was refused repeatedly; faulty rows
 * are to be set aside.
 */
export type WriteAttempt = "new" | "again" | "apart";

export interface WriteOutcome {
  /** Whether the store already had rows of the batch. */
  readonly wereThere: boolean;
  /** Rows that were set aside because no table accepts them. */
  readonly setAside: number;
}

export interface EventWriter {
  /**
   * Writes the rows once, however often it is called with the same token. Resolves when they can be read. Rejects with
   * `RowsRefusedError` if the event store would refuse them forever.
   */
  // A writer may return no result.
  write(token: string, rows: readonly StoredEventRow[], attempt?: WriteAttempt): Promise<WriteOutcome | void>;
}

/** The event store was reached and refused the rows; it will refuse the same rows again. */
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

/** How many events of a type a tenant had on a channel in a UTC month, `YYYY-MM`. */
export interface MonthlyEvents {
  readonly tenantId: string;
  readonly month: string;
  readonly channel: ChannelName;
  readonly type: EventType;
  readonly events: number;
}

export interface MonthsQuery {
  readonly tenantIds: readonly string[];
  /** UTC months, `YYYY-MM`, both inclusive. */
  readonly from: string;
  readonly to: string;
}

export interface EventSums {
  /** Sums of some tenants' events, also of events that have expired since. */
  months(query: MonthsQuery): Promise<readonly MonthlyEvents[]>;
}

/** How many events of a type all tenants had on a channel in a minute. */
export interface MinuteEvents {
  /** Unix ms of the minute's begin. */
  readonly minuteMs: number;
  readonly channel: ChannelName;
  readonly type: EventType;
  readonly events: number;
}

/** Event counts for operators. Rejects with `UnavailableError`. */
export interface EventRates {
  /** Returns the minutes that begin at `fromMs` (unix) or later; kept for two days. */
  minutes(fromMs: number): Promise<readonly MinuteEvents[]>;
  /** Returns the sums of all channels' events since then, by type. */
  sumsSince(fromMs: number): Promise<ReadonlyMap<EventType, number>>;
}

export interface EventReader {
  page(query: EventQuery): Promise<EventPage>;
  /** Returns a finished job with all its events, or null. */
  job(tenantId: string, jobId: string): Promise<JobRecord | null>;
}

/** A query for a tenant's events after a known one: ids in (afterEventId, throughEventId]. */
export interface EventsAfter {
  readonly tenantId: string;
  readonly afterEventId: number;
  readonly throughEventId: number;
  /** Null: all. */
  readonly channels: readonly ChannelName[] | null;
  /** Null: all. */
  readonly types: readonly EventType[] | null;
  readonly limit: number;
}

/** A position in a tenant's history. */
export interface EventPosition {
  readonly tenantId: string;
  readonly afterEventId: number;
}

/**
 * Follows tenants' histories without gaps: a tenant's events become visible in the order of their ids, so a reader that
 * has the id of a stored event can read everything up to it. Rejects with `UnavailableError`.
 */
export interface EventFeed {
  /**
   * How long after an id was read everything up to it can be read (ms). In a cluster of ClickHouse a lagging replica
   * may show newer events before older ones, but replicas that lag for longer are not queried.
   */
  readonly settleMs: number;
  /** Returns events, the oldest first, each once; fewer than the limit only if there are no more. */
  after(query: EventsAfter): Promise<readonly TenantEvent[]>;
  /** Returns the last event of each tenant that has one after its position. */
  marks(positions: readonly EventPosition[]): Promise<ReadonlyMap<string, number>>;
}

/** The address at which a user of a ClickHouse server is served, and the user's credentials. */
export interface ClickHouseAddress {
  /** `http://…` or `https://…`, without credentials. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
}
