import { Type } from "@sinclair/typebox";
import { EVENT_TYPES } from "../../domain/jobs/event.ts";
import type { EventReader, EventPage as FoundPage } from "../../domain/jobs/event-store.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { type QueryParameter, queryChoice } from "../../http/parameters.ts";
import { invalidCursor } from "../../http/store-results.ts";
import { DAY_MS, type DayRange, dayParameter, requireOrder, toEventIds } from "../day-range.ts";
import { eventLimits } from "../limits.ts";
import { EXAMPLE_EVENT, EXAMPLE_JOB_ID, eventPageSchema, shownEvent } from "./answer-schemas.ts";

/** `GET /v1/events`: the tenant's delivery history, newest first. */
export function eventEndpoint(
  { eventStore }: { readonly eventStore: Pick<EventReader, "page"> },
  channels: readonly ChannelName[],
): Endpoint {
  return tenantEndpoint({
    method: "GET",
    path: "/v1/events",
    name: "events",
    operation: "listEvents",
    tag: "Events",
    summary: "Delivery history of the tenant, newest first",
    description: "For more than 31 days, split the export into several calls. Unknown parameters are refused.",
    query: declareQuery(channels),
    answers: {
      200: {
        description: "One page.",
        schema: eventPageSchema(channels),
        examples: [
          {
            events: [{ ...EXAMPLE_EVENT, job_id: EXAMPLE_JOB_ID, channel: "email" }],
            has_more: true,
            next_cursor: EXAMPLE_EVENT.event_id,
          },
        ],
      },
    },
    async handle({
      tenant: { tenantId },
      query: { from: fromMs, to: toMs, cursor, channel, event_type: type, limit },
    }) {
      const { fromEventId, toEventId: end } = toEventIds(shortRange({ fromMs, toMs }));
      const toEventId = Math.min(end, cursor ?? end);
      // A cursor from before the first day leaves an empty range.
      const { events, hasMore } =
        fromEventId < toEventId
          ? await eventStore.page({ tenantId, fromEventId, toEventId, channel, type, limit })
          : NOTHING;
      const last = hasMore ? events.at(-1) : undefined;
      return reply(200, { events: events.map(shownEvent), has_more: hasMore, next_cursor: last?.eventId ?? 0 });
    },
  });
}

const cursor: QueryParameter<number | null> = {
  description: "The `next_cursor` of the previous page.",
  schema: Type.Integer({ format: "int64", minimum: 1 }),
  read(text) {
    if (text === undefined) return null;
    const given = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    // 0 means that there is no further page: a client that sends it back would start over and never finish.
    if (Number.isSafeInteger(given) && given > 0) return given;
    throw invalidCursor("cursor must be the next_cursor of a page that has more; omit it on the first page");
  },
};

const limit: QueryParameter<number> = {
  description: `Page size; above ${eventLimits.eventPageMax} counts as ${eventLimits.eventPageMax}.`,
  schema: Type.Integer({ minimum: 1, default: eventLimits.eventPageDefault }),
  read(text) {
    if (text === undefined) return eventLimits.eventPageDefault;
    if (!/^\d+$/.test(text) || Number(text) < 1) throw new ApiError(400, "limit must be an integer of at least 1");
    return Math.min(Number(text), eventLimits.eventPageMax);
  },
};

const declareQuery = (channels: readonly ChannelName[]) => ({
  from: dayParameter("from", "First UTC day, inclusive.", "2026-11-01"),
  to: dayParameter(
    "to",
    `Last UTC day, inclusive; at most ${eventLimits.eventWindowDaysMax} days after \`from\`.`,
    "2026-11-21",
  ),
  channel: queryChoice("channel", channels, {
    description: "Only this channel. Without it: e-mail and chat.",
    absent: null,
  }),
  event_type: queryChoice("event_type", EVENT_TYPES, { description: "Only this type.", absent: null }),
  limit,
  cursor,
});

const NOTHING: FoundPage = { events: [], hasMore: false };

/** Throws an `ApiError` 400 that names the parameter. */
function shortRange(days: DayRange): DayRange {
  requireOrder(days);
  if (days.toMs - days.fromMs > eventLimits.eventWindowDaysMax * DAY_MS) {
    throw new ApiError(
      400,
      `to must be at most ${eventLimits.eventWindowDaysMax} days after from: split a longer export`,
    );
  }
  return days;
}
