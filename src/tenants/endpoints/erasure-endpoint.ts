import { Type } from "@sinclair/typebox";
import { isRecipient, normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import type { TenantDirectory } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { noSuch, requireResult } from "../../http/store-results.ts";
import { type Erasure, type ErasurePorts, eraseRecipient } from "../erasure.ts";

/** Erasures at a time: each rewrites parts of the event store. */
const TOGETHER_MAX = 2;
const RETRY_SECONDS = 5;
const IDLE_SECONDS = 60;
/** Longer than any recipient, including blanks and marks that normalisation drops. */
const RECIPIENT_CHARS_MAX = 400;

const ErasureBody = Type.Object(
  {
    recipient: Type.String({
      minLength: 1,
      maxLength: RECIPIENT_CHARS_MAX,
      description: "one e-mail address or phone number",
    }),
    suppress: Type.Optional(
      Type.Boolean({ description: "true: nothing is sent to the recipient any more, under a keyed hash" }),
    ),
  },
  { additionalProperties: false, description: "an object", examples: [{ recipient: "ann@example.com" }] },
);

const count = (description: string) => Type.Integer({ description });

const ErasureSchema = Type.Object(
  {
    recipient_hash: Type.String({ description: "A keyed hash, which names the recipient in the audit log." }),
    complete: Type.Boolean({
      description:
        "false: deliveries are in flight, jobs wait for their turn, or the event store still works on it. Repeat the call.",
    }),
    unfinished_left: count("Unfinished jobs of the recipient that have not ended yet."),
    erased: Type.Object({
      unfinished_jobs: count(
        "Unfinished jobs that ended: as suppressed, with the reason `erased`, unless they were in flight.",
      ),
      finished_jobs: count("Jobs in the history that no longer lead to the recipient."),
      events: count("Events whose text is masked."),
      payloads: count("Contents of failed jobs."),
      suppressions: count("Entries of the list that are keyed hashes now."),
      sandbox_messages: count("Messages in the sandbox, to whichever tenant they belonged."),
    }),
  },
  { $id: "Erasure" },
);

const EXAMPLE = {
  recipient_hash: "61b55fab-9c26-d32d-104e-c34ed67a68f9",
  complete: true,
  unfinished_left: 0,
  erased: { unfinished_jobs: 1, finished_jobs: 12, events: 3, payloads: 0, suppressions: 1, sandbox_messages: 0 },
};

/** Its name in the API document and in the audit log. */
export const erasureCall = { operation: "eraseRecipient" } as const;

/** `POST /dash/api/tenants/{id}/erasures`: erases a recipient (GDPR, article 17). */
export function erasureEndpoint(ports: ErasurePorts & { readonly directory: Pick<TenantDirectory, "byId"> }): Endpoint {
  let running = 0;
  return operatorEndpoint({
    method: "POST",
    path: "/dash/api/tenants/:id/erasures",
    name: "operator",
    ...erasureCall,
    tag: "Tenants",
    summary: "Erase a recipient",
    description:
      "Erases the recipient from the queue, the history, the list of suppressions, where a keyed hash keeps a suppression in " +
      "force, and the sandbox, for all tenants. Counts and sums stay, and so do passes, " +
      "messages that people wrote, and data that cannot be read (docs/privacy.md). Safe to repeat.",
    params: { id: tenantIdParameter },
    body: ErasureBody,
    idleSeconds: IDLE_SECONDS,
    audit: { body: ["suppress"], answer: ["recipient_hash", "complete", "erased"] },
    answers: {
      200: {
        description: "Nothing is left of what the call looks through.",
        schema: ErasureSchema,
        examples: [EXAMPLE],
      },
      202: {
        description: "Something is left for the moment: repeat the call.",
        schema: ErasureSchema,
        examples: [{ ...EXAMPLE, complete: false, unfinished_left: 2 }],
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id }, body }) {
      const tenant = await ports.directory.byId(id);
      if (tenant === null) throw noSuch("tenant");
      const recipient = normalisedRecipient(body.recipient);
      if (!isRecipient(recipient))
        throw new ApiError(400, "recipient must be one e-mail address, phone number or WhatsApp user id");
      if (running >= TOGETHER_MAX) throw new ApiError(503, "other erasures are running: try again", {}, RETRY_SECONDS);
      running += 1;
      try {
        const erasure = requireResult(
          await eraseRecipient(ports, tenant, recipient, { isSuppressed: body.suppress === true }),
        );
        const shown = shownErasure(erasure);
        return erasure.isComplete ? reply(200, shown) : reply(202, shown);
      } finally {
        running -= 1;
      }
    },
  });
}

export function shownErasure({ recipientHash, erased, unfinishedLeft, isComplete }: Erasure) {
  return {
    recipient_hash: recipientHash,
    complete: isComplete,
    unfinished_left: unfinishedLeft,
    erased: {
      unfinished_jobs: erased.unfinishedJobs,
      finished_jobs: erased.finishedJobs,
      events: erased.events,
      payloads: erased.payloads,
      suppressions: erased.suppressions,
      sandbox_messages: erased.sandboxMessages,
    },
  };
}
