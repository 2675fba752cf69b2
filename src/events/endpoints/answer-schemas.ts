import { type Static, type TObject, type TProperties, Type } from "@sinclair/typebox";
import { type DeliveryEvent, EVENT_TYPES, type EventType, eventTimeMs } from "../../domain/jobs/event.ts";
import type { TenantEvent } from "../../domain/jobs/event-store.ts";
import { type ChannelName, END_REASONS, isFinal, type JobRecord } from "../../domain/jobs/job.ts";
import { enumSchema, Uuid } from "../../http/schemas.ts";

/** Jobs and events in tenants' answers. A job's status and an event's type determine the shape of its result. */

const EmptyResult = Type.Object({}, { $id: "EmptyResult", additionalProperties: false });

const PassResult = Type.Object(
  {
    pass_id: Uuid,
    pkpass_base64: Type.Optional(Type.String({ description: "For an Apple pass: its current file, in base64." })),
    download_url: Type.Optional(
      Type.String({ description: "For an Apple pass that came with a message: the public link to its file." }),
    ),
    save_link: Type.Optional(
      Type.String({ description: "For a Google pass: the link that saves its current version." }),
    ),
  },
  { $id: "PassResult" },
);

const FailedJobResult = Type.Object(
  {
    error: Type.String(),
    spam_score: Type.Optional(Type.Number({ description: "The score of an e-mail that the spam filter stopped." })),
    spam_rules: Type.Optional(
      Type.Array(Type.Object({ rule: Type.String(), score: Type.Number(), description: Type.String() }), {
        description: "The rules that made the spam score, highest first.",
      }),
    ),
  },
  { $id: "FailedJobResult" },
);

const stoppedTopic = Type.Optional(
  Type.String({ description: "The suppression is for this topic alone; absent: for all messages." }),
);

/** The recipient of an e-mail with cc or bcc. */
const recipient = Type.Optional(
  Type.String({ description: "The address in cc or bcc that it is about; absent: the message's `to_address`." }),
);

const RecipientResult = Type.Object({ recipient }, { $id: "RecipientResult", additionalProperties: false });

const FailedResult = Type.Object({ recipient, error: Type.String() }, { $id: "FailedResult" });

const BouncedResult = Type.Object(
  {
    recipient,
    code: Type.Union([Type.Integer(), Type.Null()], { description: "Reply code (RFC 5321); null: there was none." }),
    enhanced_code: Type.Union([Type.String(), Type.Null()], {
      description: "Status code (RFC 3463), such as 5.1.1; null: none is known.",
    }),
    diagnostic: Type.String({ description: "The answer of the recipient's mail server." }),
  },
  { $id: "BouncedResult" },
);

/** Members of an open or a click that distinguish people from machines. */
const reader = {
  machine: Type.Optional(
    Type.Literal(true, {
      description: "A machine did it by itself: a scanner, or a program that loads pictures unread.",
    }),
  ),
  by: Type.Optional(Type.String({ description: "The program, where it is known by its name." })),
};

const OpenedResult = Type.Object(reader, { $id: "OpenedResult", additionalProperties: false });

const ClickedResult = Type.Object(
  { url: Type.String({ description: "Where the click led." }), ...reader },
  { $id: "ClickedResult" },
);

const SuppressedResult = Type.Object(
  { reason: enumSchema(END_REASONS), topic: stoppedTopic },
  { $id: "SuppressedResult" },
);

/** A finished job's result, whatever its status. */
export const JobResult = Type.Union([PassResult, FailedJobResult, SuppressedResult, EmptyResult], { $id: "JobResult" });

export const Job = Type.Union(
  [
    Type.Object(
      {
        job_id: Uuid,
        status: enumSchema(["pending", "running"]),
        scheduled_at: Type.Optional(
          Type.String({ format: "date-time", description: "It waits for this time; absent: it waits for none." }),
        ),
        fallback_of: Type.Optional(
          Type.String({
            format: "uuid",
            description: "While it waits for its time: the message that it is a fallback of.",
          }),
        ),
      },
      { description: "In progress." },
    ),
    Type.Object({
      job_id: Uuid,
      status: Type.Literal("success"),
      result: Type.Union([PassResult, EmptyResult], {
        description: "The result of an e-mail or a chat message: empty, except for the pass that it carried.",
      }),
    }),
    Type.Object({ job_id: Uuid, status: Type.Literal("failed"), result: FailedJobResult }),
    Type.Object({ job_id: Uuid, status: Type.Literal("suppressed"), result: SuppressedResult }),
  ],
  { $id: "Job" },
);

const EventId = Type.Integer({ format: "int64", description: "Increasing: newer events have larger ids." });
const CreatedAt = Type.String({ format: "date-time", description: "UTC, as YYYY-MM-DDTHH:MM:SSZ." });

/** The members of each event type's result. */
const RESULTS = {
  sent: EmptyResult,
  delivered: RecipientResult,
  read: EmptyResult,
  opened: OpenedResult,
  clicked: ClickedResult,
  bounced: BouncedResult,
  complained: EmptyResult,
  failed: FailedResult,
  suppressed: Type.Object(
    { recipient, reason: enumSchema(END_REASONS), topic: stoppedTopic },
    { $id: "SuppressedEventResult" },
  ),
} as const satisfies Readonly<Record<EventType, TObject>>;

/** An event with additional members. */
function eventWith<M extends TProperties>($id: string, more: M) {
  const variants = EVENT_TYPES.map((type) => {
    const what = { event_type: Type.Literal(type), result: RESULTS[type], created_at: CreatedAt };
    return Type.Object({ event_id: EventId, ...more, ...what });
  });
  return Type.Union(variants, { $id });
}

const JobEvent = eventWith("JobEvent", {});

export const JobEvents = Type.Object({ job_id: Uuid, events: Type.Array(JobEvent) }, { $id: "JobEvents" });

export function eventPageSchema(channels: readonly ChannelName[]) {
  const Event = eventWith("Event", { job_id: Uuid, channel: enumSchema(channels) });
  return Type.Object(
    {
      events: Type.Array(Event),
      has_more: Type.Boolean(),
      next_cursor: Type.Integer({ format: "int64", description: "Pass it as `cursor`; 0 on the last page." }),
    },
    { $id: "EventPage" },
  );
}

export const EXAMPLE_JOB_ID = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
export const EXAMPLE_EVENT = {
  event_id: 243_943_833_600_000,
  event_type: "sent",
  result: {},
  created_at: "2026-11-21T07:30:00Z",
} as const;

export function shownJob({ jobId: job_id, status, result, dueMs, fallbackOf }: JobRecord): Static<typeof Job> {
  if (!isFinal(status)) {
    const time = dueMs === undefined ? {} : { scheduled_at: isoTime(dueMs) };
    return { job_id, status, ...time, ...(fallbackOf !== undefined && { fallback_of: fallbackOf }) };
  }
  // The component that finished the job stored the result that belongs to its status.
  return { job_id, status, result: result ?? {} } as Static<typeof Job>;
}

export function shownJobEvent({ eventId, type, result }: DeliveryEvent): Static<typeof JobEvent> {
  return { event_id: eventId, event_type: type, result, created_at: createdAt(eventId) };
}

export function shownEvent(event: TenantEvent): Static<ReturnType<typeof eventPageSchema>>["events"][number] {
  const { event_id, ...rest } = shownJobEvent(event);
  return { event_id, job_id: event.jobId, channel: event.channel, ...rest };
}

/** ISO 8601 UTC, with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** ISO 8601 UTC, whole seconds. */
function createdAt(eventId: number): string {
  return `${new Date(eventTimeMs(eventId)).toISOString().slice(0, 19)}Z`;
}
