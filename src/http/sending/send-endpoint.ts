import { type Static, Type } from "@sinclair/typebox";
import { limits } from "../../domain/limits.ts";
import type { Answers, Declaration, DocumentedBody, Endpoint, Tag } from "../endpoint.ts";
import { finished } from "../endpoint.ts";
import { tenantFailure } from "../failures.ts";
import type { HeaderParameter } from "../parameters.ts";
import { optional, Uuid } from "../schemas.ts";
import { Fallbacks } from "./fallbacks.ts";
import { schedulable, withMember } from "./schedule.ts";
import { type SendKind, serveSend } from "./serve-send.ts";

export type Said = Pick<Declaration, "path" | "name" | "operation" | "summary" | "description" | "fails">;

/** Declares a call that builds its job from the body alone. */
export function sendEndpoint(declared: Said & SendKind & { readonly body: DocumentedBody }): Endpoint {
  const { path, name, operation, summary, description, channel, scope, body, bounds, accept, fails } = declared;
  const kind: SendKind = { channel, scope, ...(bounds && { bounds }), accept };
  return finished(
    { ...sends("Send"), path, name, operation, summary, description, fails: { ...SEND_FAILS, ...fails } },
    {
      caller: "tenant",
      channel,
      scope: "send",
      documentedBody: withFallbacks(schedulableBody(body)),
      messageKind: kind,
      serve: (door, exchange) => serveSend(door, exchange, kind),
    },
  );
}

/** A send's body as the document shows it. */
export function schedulableBody(body: DocumentedBody): DocumentedBody {
  return body.schema === null ? body : { ...body, schema: schedulable(body.schema) };
}

function withFallbacks(body: DocumentedBody): DocumentedBody {
  return body.schema === null ? body : { ...body, schema: withMember(body.schema, "fallback", optional(Fallbacks)) };
}

/** Returns the members common to all calls that queue a new message. */
export function sends(tag: Tag) {
  return { method: "POST", tag, headers: [IDEMPOTENCY_KEY], answers: QUEUED } as const;
}

export const IDEMPOTENCY_KEY: HeaderParameter = {
  name: "Idempotency-Key",
  description: "1 to 255 printable ASCII characters, kept for 24 hours. A refused send (4xx) releases it.",
  schema: Type.String({ minLength: 1, maxLength: limits.idempotencyKeyCharsMax }),
  example: "order-1042-receipt",
};

export const PendingJob = Type.Object(
  {
    job_id: Uuid,
    status: Type.Literal("pending"),
    fallback: Type.Optional(
      Type.Array(
        Type.Object({
          job_id: Uuid,
          scheduled_at: Type.String({ format: "date-time", description: "When it is sent, if it is needed." }),
        }),
        { description: "Jobs of their own, in the order of the request's; absent: it had none." },
      ),
    ),
  },
  { $id: "PendingJob" },
);

export const REPLAYED_HEADER = {
  "Idempotency-Replayed": "`true` where this is the answer to an earlier request with the same key.",
} as const;

/** The answer of a call that queues one new message. */
export const QUEUED = {
  202: {
    description: "Queued.",
    schema: PendingJob,
    examples: [
      { job_id: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11", status: "pending" } satisfies Static<typeof PendingJob>,
    ],
    headers: REPLAYED_HEADER,
  },
} as const satisfies Answers;

/** Every violation in the inline HTML. */
export const Violations = Type.Array(
  Type.Object({
    rule: Type.Union([
      Type.Literal("empty"),
      Type.Literal("too_large"),
      Type.Literal("image_only"),
      Type.Literal("script"),
    ]),
    message: Type.String(),
  }),
);

const ContentError = Type.Object(
  { error: Type.String(), violations: Type.Optional(Violations) },
  { $id: "ContentError" },
);

/** The 422 of every send. */
export const UNPROCESSABLE = tenantFailure(
  "Unprocessable",
  "The content cannot be sent as it would be with its placeholders filled (with `violations`), the sender's domain is not verified, or the Idempotency-Key was " +
    "used with another body.",
  "the inline HTML cannot be sent: see violations",
  {
    schema: ContentError,
    members: { violations: [{ rule: "script", message: "the HTML contains a <script> element" }] },
  },
);

/** The refusals of every send, beyond those of every tenant call. */
export const SEND_FAILS = { 422: UNPROCESSABLE } as const;
