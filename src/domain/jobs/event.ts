import type { JsonObject } from "../texts/json.ts";

export const EVENT_TYPES = [
  "sent",
  "delivered",
  "read",
  "opened",
  "clicked",
  "bounced",
  "complained",
  "failed",
  "suppressed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/**
 * Whether readers' programs report the event by following links. A gateway does that, too, while it refuses the
 * message, so such a report does not show that the provider has it.
 */
export const isByReader = (type: EventType): boolean => type === "opened" || type === "clicked";

/** Whether a machine opened the message or followed its link, as the event's result says. */
export const isByMachine = ({ result }: Pick<DeliveryEvent, "result">): boolean => result["machine"] === true;

/** A fact about a job. Its id contains its time (`eventTimeMs`). */
export interface DeliveryEvent {
  readonly eventId: number;
  readonly type: EventType;
  readonly result: JsonObject;
}

/**
 * A member of an event's result while the event is in the queue: the provider's own time (unix ms). It is not part of
 * the result and is removed when the result is read; the event store has a column for it.
 */
export const OCCURRED_AT = "$at";

/** Splits a result into the part to display and the provider's own time, if it has one. */
export function withoutTime({ [OCCURRED_AT]: at, ...result }: JsonObject): {
  readonly result: JsonObject;
  readonly occurredAtMs?: number;
} {
  return typeof at === "number" ? { result, occurredAtMs: at } : { result };
}

/**
 * The event clock. `event_id = max(last + 1, (unix_ms - EPOCH) * 4096)`: strictly increasing for a tenant, ordered by
 * time, an exact JSON number (below 2^53 until 2094), and continuous even if the store lost `last`.
 */
export const EVENT_EPOCH_MS = 1_735_689_600_000;
export const EVENT_IDS_PER_MS = 4096;

/** Returns the smallest id that an event at `unixMs` or later can have. */
export function firstEventIdAt(unixMs: number): number {
  return (unixMs - EVENT_EPOCH_MS) * EVENT_IDS_PER_MS;
}

/** Returns the time at which the event was recorded, in unix milliseconds. */
export function eventTimeMs(eventId: number): number {
  return Math.floor(eventId / EVENT_IDS_PER_MS) + EVENT_EPOCH_MS;
}

/** Returns the id that follows `last` at `unixMs`. */
export function nextEventId(last: number, unixMs: number): number {
  return Math.max(last + 1, firstEventIdAt(unixMs));
}
