import { type TObject, Type } from "@sinclair/typebox";
import { BATCH_MESSAGES_MAX } from "../../domain/jobs/batch.ts";
import type { Json } from "../../domain/texts/json.ts";
import type { Answers, Endpoint } from "../endpoint.ts";
import { finished } from "../endpoint.ts";
import { tenantFailure } from "../failures.ts";
import { ErrorCodeName, ParamName } from "../problem.ts";
import { optional, Uuid } from "../schemas.ts";
import { ScheduledAt } from "./schedule.ts";
import { REPLAYED_HEADER, type Said, SEND_FAILS, sends, Violations } from "./send-endpoint.ts";
import { BATCH_BOUNDS, serveBatch } from "./serve-batch.ts";
import type { SendKind } from "./serve-send.ts";

type Batched = Said &
  SendKind & {
    /** The schema of one message, as in its own endpoint. */
    readonly message: TObject;
    /** A batch, as the document shows it. */
    readonly example: Json;
  };

/** Queues many messages at once, each as the endpoint of the same kind takes it. */
export function batchEndpoint({
  path,
  name,
  operation,
  summary,
  channel,
  scope,
  accept,
  message,
  example,
}: Batched): Endpoint {
  // Members that all messages share may be left out of each.
  const part = Type.Partial(Type.Object({ ...message.properties, scheduled_at: optional(ScheduledAt) }), {
    $id: `${String(message.$id)}InBatch`,
    additionalProperties: false,
  });
  const kind = { channel, scope, accept, members: new Set(Object.keys(part.properties)) };
  const schema = Type.Object(
    {
      defaults: optional(part),
      messages: Type.Array(part, { minItems: 1, maxItems: BATCH_MESSAGES_MAX }),
    },
    { $id: `${String(message.$id)}Batch`, additionalProperties: false },
  );
  return finished(
    { ...sends("Send"), path, name, operation, summary, description: DESCRIPTION, answers: ANSWERS, fails: FAILS },
    {
      caller: "tenant",
      channel,
      scope: "send",
      documentedBody: { schema, examples: [example] },
      serve: (door, exchange) => serveBatch(door, exchange, kind),
    },
  );
}

const DESCRIPTION =
  "Each message is `defaults` with its own members in their place (`null` removes one), and is checked, counted and queued as a " +
  "request of its own would be. A faulty message becomes an error of its index and does not stop the others; the same holds for messages beyond the " +
  "plan's limits. An Idempotency-Key counts for the whole batch: a repeat queues the messages that an earlier call did not " +
  "reach, and returns the first answer again once there is one.";

const BatchAnswer = Type.Object(
  {
    jobs: Type.Array(
      Type.Object({ index: Type.Integer({ minimum: 0 }), job_id: Uuid, status: Type.Literal("pending") }),
      { description: "Messages that are queued, by their index." },
    ),
    errors: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0 }),
        error: Type.String(),
        code: ErrorCodeName,
        param: Type.Optional(ParamName),
        violations: Type.Optional(Violations),
      }),
      { description: "Messages that are not queued, by their index." },
    ),
  },
  { $id: "BatchAnswer" },
);

const ANSWERS = {
  202: {
    description: "Queued, but for the messages in `errors`.",
    schema: BatchAnswer,
    examples: [
      {
        jobs: [{ index: 0, job_id: "01936f2e-7c1a-7000-9a55-2f1c8f0a4d11", status: "pending" }],
        errors: [
          {
            index: 1,
            error: 'there is no e-mail template with the template_id "nope"',
            code: "unknown_template",
            param: "template_id",
          },
        ],
      },
    ],
    headers: REPLAYED_HEADER,
  },
} as const satisfies Answers;

const FAILS = {
  ...SEND_FAILS,
  413: tenantFailure(
    "BatchTooLarge",
    "The body is larger than 5 MiB.",
    `the body is larger than ${BATCH_BOUNDS.bytesMax} bytes`,
  ),
} as const;
