import type { Elysia } from "elysia";
import { ApiError } from "../domain/errors.ts";
import { EVENT_TYPES } from "../domain/event.ts";
import type { EventPage, EventQuery } from "../domain/event-store.ts";
import { CHANNELS } from "../domain/job.ts";
import { limits } from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { readQuery } from "../http/request-query.ts";
import { DAY_MS, eventIdsOf, readDayRange } from "./day-range.ts";
import { eventCreatedAt } from "./job-routes.ts";

/** `GET /v1/events`: the tenant's delivery history, newest first. */
export function eventRoutes(app: Elysia, door: FrontDoor): void {
  const work = (exchange: Exchange) => listEvents(door, exchange);
  app.get("/v1/events", ({ request }) => door.serve("events", request, work));
}

async function listEvents(door: FrontDoor, exchange: Exchange): Promise<Response> {
  const tenant = await door.authenticate(exchange);
  const page = await door.read(exchange, tenant, async () => {
    const query = parseQuery(tenant.tenantId, exchange.request);
    // A cursor from before the first day leaves nothing to look for.
    return query.fromEventId < query.toEventId ? door.ports.ledger.page(query) : NOTHING;
  });
  return exchange.json(200, toBody(page));
}

const NOTHING: EventPage = { events: [], hasMore: false };
const PARAMETERS = ["from", "to", "channel", "event_type", "limit", "cursor"] as const;

/** Throws an `ApiError` 400 that names the parameter. */
function parseQuery(tenantId: string, request: Request): EventQuery {
  const query = readQuery(request, PARAMETERS);
  const days = readDayRange(query);
  if (days.toMs - days.fromMs > limits.eventWindowDaysMax * DAY_MS) {
    throw new ApiError(400, `to must be at most ${limits.eventWindowDaysMax} days after from: split a longer export`);
  }
  const { fromEventId, toEventId: end } = eventIdsOf(days);
  return {
    tenantId,
    fromEventId,
    toEventId: Math.min(end, query.cursor === undefined ? end : parseCursor(query.cursor)),
    channel: query.channel === undefined ? null : oneOf("channel", CHANNELS, query.channel),
    type: query.event_type === undefined ? null : oneOf("event_type", EVENT_TYPES, query.event_type),
    limit: query.limit === undefined ? limits.eventPageDefault : parseLimit(query.limit),
  };
}

function parseLimit(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) < 1) throw new ApiError(400, "limit must be an integer of at least 1");
  return Math.min(Number(text), limits.eventPageMax);
}

/** 0 says that there is no further page: a client that asks for it would begin anew, and never end. */
function parseCursor(text: string): number {
  const cursor = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(cursor) && cursor > 0) return cursor;
  throw new ApiError(400, "cursor must be the next_cursor of a page that has more; omit it on the first page");
}

function oneOf<T extends string>(name: string, known: readonly T[], text: string): T {
  const match = known.find((value) => value === text);
  if (match === undefined) throw new ApiError(400, `${name} must be one of ${known.join(", ")}`);
  return match;
}

function toBody({ events, hasMore }: EventPage): object {
  return {
    events: events.map(({ eventId, jobId, channel, type, result }) => ({
      event_id: eventId,
      job_id: jobId,
      channel,
      event_type: type,
      result,
      created_at: eventCreatedAt(eventId),
    })),
    has_more: hasMore,
    next_cursor: hasMore ? (events.at(-1)?.eventId ?? 0) : 0,
  };
}
