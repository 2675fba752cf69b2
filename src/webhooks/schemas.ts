import { type Static, Type } from "@sinclair/typebox";
import type { ChannelName } from "../domain/jobs/job.ts";
import { limits } from "../domain/limits.ts";
import { NO_CONTROL_PATTERN } from "../domain/texts/control-characters.ts";
import { enumSchema, listSchema, NextCursor, Timestamp, Uuid } from "../http/schemas.ts";
import { webhookLimits } from "./limits.ts";
import { type Attempt, DISABLED_REASONS, WEBHOOK_TYPES, type Webhook } from "./webhook.ts";

const STRICT = { additionalProperties: false } as const;

const url = Type.String({
  minLength: 1,
  maxLength: limits.webhookUrlCharsMax,
  description: `an https address of at most ${limits.webhookUrlCharsMax} characters`,
});

function membersSchema(channels: readonly ChannelName[]) {
  const list = (words: readonly string[]) => words.join(", ");
  return {
    event_types: Type.Optional(
      Type.Union(
        [
          Type.Array(Type.Union(WEBHOOK_TYPES.map((type) => Type.Literal(type))), {
            minItems: 1,
            maxItems: WEBHOOK_TYPES.length,
          }),
          Type.Null(),
        ],
        { description: `an array of ${list(WEBHOOK_TYPES)}; null: all` },
      ),
    ),
    channels: Type.Optional(
      Type.Union(
        [
          Type.Array(Type.Unsafe<ChannelName>(Type.Union(channels.map((name) => Type.Literal(name)))), {
            minItems: 1,
            maxItems: channels.length,
          }),
          Type.Null(),
        ],
        { description: `an array of ${list(channels)}; null: all` },
      ),
    ),
    description: Type.Optional(
      Type.Union(
        [
          Type.String({
            minLength: 1,
            maxLength: webhookLimits.descriptionCharsMax,
            pattern: NO_CONTROL_PATTERN,
          }),
          Type.Null(),
        ],
        { description: `1 to ${webhookLimits.descriptionCharsMax} characters without control characters, or null` },
      ),
    ),
    batch_max: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: webhookLimits.batchMax }), Type.Null()], {
        description: `an integer from 1 (each event is a call of its own) to ${webhookLimits.batchMax} (arrays of up to so many)`,
      }),
    ),
  };
}

/** Body of `POST /v1/webhooks`. */
export function newWebhookBody(channels: readonly ChannelName[]) {
  return Type.Object(
    { url, ...membersSchema(channels) },
    { ...STRICT, examples: [{ url: "https://api.example.com/hooks/waybill", event_types: ["bounced", "complained"] }] },
  );
}

/** Body of `PATCH /v1/webhooks/{id}`. */
export function webhookChangeBody(channels: readonly ChannelName[]) {
  return Type.Object(
    { url: Type.Optional(url), ...membersSchema(channels) },
    { ...STRICT, minProperties: 1, examples: [{ batch_max: 500 }] },
  );
}

const time = (name: string) =>
  Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
    description: `an ISO 8601 time with its zone, such as 2026-11-21T08:00:00Z (${name})`,
  });

/** Body of `POST /v1/webhooks/{id}/replay`. */
export const replayBody = Type.Object(
  {
    from: Type.Optional(time("the first moment")),
    to: Type.Optional(time("the moment after the last; by default now")),
    after_event_id: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
        description: "an event id, behind which everything is told again",
      }),
    ),
  },
  {
    ...STRICT,
    examples: [{ from: "2026-11-21T08:00:00Z", to: "2026-11-21T12:00:00Z" }, { after_event_id: 243943833600000 }],
  },
);

const EventId = Type.Integer({ format: "int64" });
const nullable = <const T extends ReturnType<typeof Type.String> | typeof EventId>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });

export function webhookMembers(channels: readonly ChannelName[]) {
  return {
    webhook_id: Uuid,
    url: Type.String(),
    event_types: Type.Union([Type.Array(enumSchema(WEBHOOK_TYPES)), Type.Null()], { description: "Null: all." }),
    channels: Type.Union([Type.Array(enumSchema(channels)), Type.Null()], { description: "Null: all." }),
    description: Type.Union([Type.String(), Type.Null()]),
    batch_max: Type.Integer({ description: "1: an event or message a call, as an object; more: arrays." }),
    status: enumSchema(["enabled", "disabled"]),
    disabled_at: nullable(Timestamp, "Null while it is enabled."),
    disabled_reason: Type.Union([enumSchema(DISABLED_REASONS), Type.Null()], {
      description: "`gone`: the receiver answered 410; `failing`: it accepted no call for three days.",
    }),
    failing_since: nullable(Timestamp, "The first failed call since the last success; null: the last call succeeded."),
    next_attempt_at: nullable(Timestamp, "When the failed call is repeated; null: no call waits to be repeated."),
    last_error: Type.Union([Type.String(), Type.Null()], { description: "Why the last call failed." }),
    last_event_id: Type.Integer({ format: "int64", description: "The events through this one were delivered." }),
    blocked_by: Type.Union([Type.Object({ after_event_id: EventId, through_event_id: EventId }), Type.Null()], {
      description:
        "The events of the call that failed: after the first id, through the last. Later events are delivered only once they are " +
        "accepted, or skipped by a replay after `through_event_id`.",
    }),
    replay: Type.Union([Type.Object({ after_event_id: EventId, through_event_id: EventId }), Type.Null()], {
      description:
        "The events still to be replayed: after the first id, through the last, with messages that came in at that time.",
    }),
    created_at: Timestamp,
  };
}

export function webhookSchemas(channels: readonly ChannelName[]) {
  const members = webhookMembers(channels);
  const Shown = Type.Object(members, { $id: "Webhook" });
  return {
    Webhook: Shown,
    WebhookList: listSchema("WebhookList", "webhooks", Shown),
    WebhookWithSecret: Type.Object(
      { ...members, secret: Type.String({ description: "The secret that signs calls. It is not shown again." }) },
      { $id: "WebhookWithSecret" },
    ),
  };
}

const AttemptSchema = Type.Object(
  {
    at: Timestamp,
    kind: enumSchema(["events", "messages", "test"]),
    message_id: Type.String({ description: "The header `webhook-id`." }),
    events: Type.Integer({ description: "Events, or messages that came in, in the call." }),
    first_event_id: nullable(EventId, "Null: the call had no events."),
    last_event_id: nullable(EventId, "Null: the call had no events."),
    delivered: Type.Boolean({ description: "Whether the receiver answered 2xx." }),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description: "The answer's status; null: there was no answer.",
    }),
    error: Type.Union([Type.String(), Type.Null()], { description: "Why it counts as failed." }),
    request_headers: Type.Record(Type.String(), Type.String(), {
      description: "The headers of the call, without signatures.",
    }),
    answer: nullable(Type.String(), "The first 512 bytes of the receiver's answer to a call that it refused."),
    duration_ms: Type.Integer(),
  },
  { $id: "WebhookAttempt" },
);

export const WebhookAttempt = AttemptSchema;
export const WebhookAttemptPage = Type.Object(
  { attempts: Type.Array(AttemptSchema), next_cursor: NextCursor },
  { $id: "WebhookAttemptPage" },
);

export function shownWebhook({ webhookId, progress, ...webhook }: Webhook) {
  const { events, news, disabled, failures } = progress;
  const replay = events.replay ?? news.replay;
  const { retryThrough } = events;
  return {
    webhook_id: webhookId,
    url: webhook.url,
    event_types: webhook.eventTypes,
    channels: webhook.channels,
    description: webhook.description,
    batch_max: webhook.batchMax,
    status: disabled === null ? ("enabled" as const) : ("disabled" as const),
    disabled_at: isoTime(disabled?.atMs ?? null),
    disabled_reason: disabled?.reason ?? null,
    failing_since: isoTime(failures > 0 ? progress.failingSinceMs : null),
    next_attempt_at: isoTime(progress.nextAtMs),
    last_error: progress.lastError,
    last_event_id: progress.events.position,
    blocked_by:
      retryThrough === null
        ? null
        : { after_event_id: events.replay?.afterEventId ?? events.position, through_event_id: retryThrough },
    replay: replay === null ? null : { after_event_id: replay.afterEventId, through_event_id: replay.throughEventId },
    created_at: new Date(webhook.createdAtMs).toISOString(),
  };
}

export function shownAttempt(attempt: Attempt): Static<typeof AttemptSchema> {
  return {
    at: new Date(attempt.atMs).toISOString(),
    kind: attempt.isTest ? "test" : attempt.firstEventId === null ? "messages" : "events",
    message_id: attempt.messageId,
    events: attempt.events,
    first_event_id: attempt.firstEventId,
    last_event_id: attempt.lastEventId,
    delivered: attempt.error === null,
    status: attempt.status,
    error: attempt.error,
    request_headers: {
      "content-type": "application/json",
      "user-agent": "Waybill",
      "webhook-id": attempt.messageId,
      "webhook-timestamp": String(Math.floor(attempt.atMs / 1000)),
    },
    answer: attempt.answer,
    duration_ms: attempt.ms,
  };
}

function isoTime(unixMs: number | null): string | null {
  return unixMs === null ? null : new Date(unixMs).toISOString();
}

export const EXAMPLE_ID = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
export const EXAMPLE_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
export const EXAMPLE_WEBHOOK = {
  webhook_id: EXAMPLE_ID,
  url: "https://api.example.com/hooks/waybill",
  event_types: ["bounced", "complained"],
  channels: null,
  description: null,
  batch_max: 1,
  status: "enabled",
  disabled_at: null,
  disabled_reason: null,
  failing_since: null,
  next_attempt_at: null,
  last_error: null,
  last_event_id: 243_943_833_600_000,
  blocked_by: null,
  replay: null,
  created_at: "2026-11-21T07:30:00.000Z",
} as const;
export const EXAMPLE_ATTEMPT = {
  at: "2026-11-21T07:30:01.250Z",
  kind: "events",
  message_id: `${EXAMPLE_ID}_243943833600000`,
  events: 1,
  first_event_id: 243_943_833_600_000,
  last_event_id: 243_943_833_600_000,
  delivered: false,
  status: 503,
  error: "the receiver answered 503",
  request_headers: {
    "content-type": "application/json",
    "user-agent": "Waybill",
    "webhook-id": `${EXAMPLE_ID}_243943833600000`,
    "webhook-timestamp": "1763710201",
  },
  answer: "upstream is away",
  duration_ms: 48,
} as const;
