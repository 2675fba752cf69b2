import type { Static } from "@sinclair/typebox";
import type { Clock } from "../domain/clock.ts";
import { isJobId } from "../domain/ids.ts";
import { EVENT_IDS_PER_MS, firstEventIdAt } from "../domain/jobs/event.ts";
import type { EventFeed } from "../domain/jobs/event-store.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { OutboundGuard } from "../domain/texts/outbound.ts";
import { webhookUrlFault } from "../domain/texts/webhook-url.ts";
import { ApiError } from "../http/api-error.ts";
import { type Endpoint, reply, tenantEndpoint } from "../http/endpoint.ts";
import { tenantFailure } from "../http/failures.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { type PathParameter, paging } from "../http/parameters.ts";
import { noSuch, requireResult } from "../http/store-results.ts";
import { webhookLimits } from "./limits.ts";
import {
  EXAMPLE_ATTEMPT,
  EXAMPLE_ID,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK,
  newWebhookBody,
  replayBody,
  shownAttempt,
  shownWebhook,
  WebhookAttempt,
  WebhookAttemptPage,
  webhookChangeBody,
  webhookSchemas,
} from "./schemas.ts";
import type { WebhookContent, WebhookRepository } from "./webhook-repository.ts";
import type { WebhookTests } from "./webhook-tests.ts";

export interface WebhookEndpointPorts {
  readonly registry: { readonly webhooks: WebhookRepository };
  readonly webhooks: {
    readonly feed: Pick<EventFeed, "marks">;
    readonly outbound: OutboundGuard;
    readonly tests: Pick<WebhookTests, "run">;
  };
  readonly clock: Clock;
}

const NO_SUCH_WEBHOOK = tenantFailure(
  "NoSuchWebhook",
  "There is no such webhook, or it is another tenant's.",
  "there is no such webhook",
);
const TOO_MANY_SENTENCE = `a tenant has at most ${webhookLimits.webhooksPerTenantMax} webhooks: delete one that is not used`;
const TOO_MANY = tenantFailure("TooManyWebhooks", "The tenant has as many webhooks as it may have.", TOO_MANY_SENTENCE);
export const WEBHOOK_TEST_BUSY =
  "a test of your webhooks is in progress, or too many of others are: try again when it has ended";
const BUSY = tenantFailure("WebhookTestInProgress", "A test is in progress.", WEBHOOK_TEST_BUSY);
const COMMON = { name: "webhooks", tag: "Webhooks" } as const;
const PATH = "/v1/webhooks/:id";
/** A webhook's id. Throws 404 for a text that cannot be one. */
export const webhookIdParameter: PathParameter<string> = {
  description: "The webhook's id.",
  example: EXAMPLE_ID,
  read(text) {
    if (text === null || !isJobId(text)) throw noSuch("webhook");
    return text;
  },
};
const params = { id: webhookIdParameter };
const fails = { 404: NO_SUCH_WEBHOOK } as const;
/** A test waits for the receiver. */
export const TEST_IDLE_SECONDS = 30;

/** `/v1/webhooks`: a tenant's webhooks. */
export function webhookEndpoints(ports: WebhookEndpointPorts, channels: readonly ChannelName[]): readonly Endpoint[] {
  const schemas = webhookSchemas(channels);
  return [
    createWebhook(ports, schemas, channels),
    listWebhooks(ports, schemas),
    getWebhook(ports, schemas),
    changeWebhook(ports, schemas, channels),
    deleteWebhook(ports),
    rotateSecret(ports, schemas),
    testWebhook(ports),
    replayEvents(ports, schemas),
    enableWebhook(ports, schemas),
    listAttempts(ports),
  ];
}

type Schemas = ReturnType<typeof webhookSchemas>;

function createWebhook(
  { registry, webhooks, clock }: WebhookEndpointPorts,
  { WebhookWithSecret }: Schemas,
  channels: readonly ChannelName[],
): Endpoint {
  const body = new OperatorBody(newWebhookBody(channels));
  return tenantEndpoint({
    ...COMMON,
    method: "POST",
    path: "/v1/webhooks",
    operation: "createWebhook",
    summary: "Register an address for events",
    description:
      "It receives the events from now on. The answer has the secret that calls are signed with (Standard Webhooks), which is " +
      "not shown again.",
    body: { schema: body.documented },
    answers: {
      201: {
        description: "The webhook, with its secret.",
        schema: WebhookWithSecret,
        examples: [{ ...EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET }],
      },
    },
    fails: { 409: TOO_MANY },
    async handle({ tenant: { tenantId }, body: given }) {
      const checked = body.check(given);
      await requireUrl(checked.url, webhooks.outbound);
      const content = { ...DEFAULTS, ...toContent(checked), url: checked.url };
      const position = await positionNow(tenantId, webhooks.feed, clock);
      const created = await registry.webhooks.create(tenantId, content, position);
      if (created.kind === "full") throw new ApiError("limit_reached", TOO_MANY_SENTENCE);
      const { webhook, secret } = requireResult(created);
      return reply(201, { ...shownWebhook(webhook), secret });
    },
  });
}

function listWebhooks({ registry }: WebhookEndpointPorts, { WebhookList }: Schemas): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "GET",
    path: "/v1/webhooks",
    operation: "listWebhooks",
    summary: "The tenant's webhooks",
    answers: {
      200: { description: "All of them.", schema: WebhookList, examples: [{ webhooks: [EXAMPLE_WEBHOOK] }] },
    },
    async handle({ tenant: { tenantId } }) {
      return reply(200, { webhooks: requireResult(await registry.webhooks.all(tenantId)).map(shownWebhook) });
    },
  });
}

function getWebhook({ registry }: WebhookEndpointPorts, { Webhook }: Schemas): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "GET",
    path: PATH,
    operation: "getWebhook",
    summary: "One webhook, and how its receiver does",
    params,
    answers: { 200: { description: "The webhook.", schema: Webhook, examples: [EXAMPLE_WEBHOOK] } },
    fails,
    async handle({ tenant: { tenantId }, params: { id } }) {
      return reply(200, shownWebhook(requireResult(await registry.webhooks.one(tenantId, id))));
    },
  });
}

function changeWebhook(
  { registry, webhooks }: WebhookEndpointPorts,
  { Webhook }: Schemas,
  channels: readonly ChannelName[],
): Endpoint {
  const body = new OperatorBody(webhookChangeBody(channels));
  return tenantEndpoint({
    ...COMMON,
    method: "PATCH",
    path: PATH,
    operation: "changeWebhook",
    summary: "Change a webhook",
    description:
      "Members that are left out stay as they are; null is the default. A new address is called at once, unless the webhook is disabled: then once it is enabled.",
    params,
    body: { schema: body.documented },
    answers: { 200: { description: "The webhook as it is now.", schema: Webhook, examples: [EXAMPLE_WEBHOOK] } },
    fails,
    async handle({ tenant: { tenantId }, params: { id }, body: given }) {
      const checked = body.check(given);
      if (checked.url !== undefined) await requireUrl(checked.url, webhooks.outbound);
      const change = { ...toContent(checked), ...(checked.url !== undefined && { url: checked.url }) };
      return reply(200, shownWebhook(requireResult(await registry.webhooks.change(tenantId, id, change))));
    },
  });
}

function deleteWebhook({ registry }: WebhookEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "DELETE",
    path: PATH,
    operation: "deleteWebhook",
    summary: "Delete a webhook and its log",
    params,
    answers: { 204: { description: "Done. A call in flight may still arrive.", schema: null } },
    fails,
    async handle({ tenant: { tenantId }, params: { id } }) {
      requireResult(await registry.webhooks.delete(tenantId, id));
      return reply(204, null);
    },
  });
}

function rotateSecret({ registry }: WebhookEndpointPorts, { WebhookWithSecret }: Schemas): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/rotate-secret`,
    operation: "rotateWebhookSecret",
    summary: "Sign with a new secret",
    description: "For 24 hours, the former secret signs, too: calls then carry two signatures.",
    params,
    answers: {
      200: {
        description: "The webhook, with its new secret.",
        schema: WebhookWithSecret,
        examples: [{ ...EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET }],
      },
    },
    fails,
    async handle({ tenant: { tenantId }, params: { id } }) {
      const { webhook, secret } = requireResult(await registry.webhooks.rotate(tenantId, id));
      return reply(200, { ...shownWebhook(webhook), secret });
    },
  });
}

function testWebhook({ webhooks }: WebhookEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/test`,
    operation: "testWebhook",
    summary: "Call a webhook now",
    description:
      "With a signed `webhook.test` in place of an event, outside the order of events and also while the webhook is " +
      "disabled. Only the log changes.",
    params,
    answers: {
      200: {
        description: "What the receiver answered, after 15 seconds at most.",
        schema: WebhookAttempt,
        examples: [
          {
            ...EXAMPLE_ATTEMPT,
            kind: "test",
            message_id: `${EXAMPLE_ID}_test-1795246201250`,
            events: 0,
            first_event_id: null,
            last_event_id: null,
            delivered: false,
          },
        ],
      },
    },
    fails: { ...fails, 409: BUSY },
    idleSeconds: TEST_IDLE_SECONDS,
    async handle({ tenant: { tenantId }, params: { id } }) {
      const attempt = await webhooks.tests.run(tenantId, id);
      if (attempt === null) throw noSuch("webhook");
      if (attempt === "busy") throw new ApiError(409, WEBHOOK_TEST_BUSY);
      return reply(200, shownAttempt(attempt));
    },
  });
}

function replayEvents({ registry, clock }: WebhookEndpointPorts, { Webhook }: Schemas): Endpoint {
  const body = new OperatorBody(replayBody);
  return tenantEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/replay`,
    operation: "replayWebhookEvents",
    audit: { body: ["from", "to", "after_event_id"] },
    summary: "Deliver events again",
    description:
      "The events of a span of time (`from` and, if not until now, `to`), or all after an event (`after_event_id`), as " +
      "the webhook selects them now, and messages that came in at that time. A span comes first, in its order and under its original ids; then the webhook resumes where it was, and `replay` shows the progress. Up to " +
      "now, the webhook's own position moves back, and there is no `replay`. An `after_event_id` ahead of that position skips what lies " +
      "between, such as an event that the receiver cannot process (`blocked_by`), and the webhook is called at once. " +
      "Another replay replaces one that has not ended.",
    params,
    body: { schema: body.documented },
    answers: { 202: { description: "The webhook as it is now.", schema: Webhook, examples: [EXAMPLE_WEBHOOK] } },
    fails,
    async handle({ tenant: { tenantId }, params: { id }, body: given }) {
      const range = parseRange(body.check(given), clock.nowMs());
      return reply(202, shownWebhook(requireResult(await registry.webhooks.replay(tenantId, id, range))));
    },
  });
}

function enableWebhook({ registry }: WebhookEndpointPorts, { Webhook }: Schemas): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/enable`,
    operation: "enableWebhook",
    summary: "Enable a webhook that was disabled",
    description: "It goes on where it stopped. One that waits for a repeat is called at once.",
    params,
    answers: { 200: { description: "The webhook as it is now.", schema: Webhook, examples: [EXAMPLE_WEBHOOK] } },
    fails,
    async handle({ tenant: { tenantId }, params: { id } }) {
      return reply(200, shownWebhook(requireResult(await registry.webhooks.enable(tenantId, id))));
    },
  });
}

function listAttempts({ registry }: WebhookEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...COMMON,
    method: "GET",
    path: `${PATH}/attempts`,
    operation: "listWebhookAttempts",
    summary: "A webhook's latest calls, newest first",
    description: "About the last 500 of the last seven days. Where many calls a second succeed, some are left out.",
    params,
    query: paging,
    answers: {
      200: {
        description: "One page.",
        schema: WebhookAttemptPage,
        examples: [{ attempts: [EXAMPLE_ATTEMPT], next_cursor: null }],
      },
    },
    fails,
    async handle({ tenant: { tenantId }, params: { id }, query }) {
      const { items, nextCursor } = requireResult(await registry.webhooks.attempts(tenantId, id, query));
      return reply(200, { attempts: items.map(shownAttempt), next_cursor: nextCursor });
    },
  });
}

const DEFAULTS = { description: null, eventTypes: null, channels: null, batchMax: 1 } as const;

type GivenContent = Omit<Static<ReturnType<typeof webhookChangeBody>>, "url">;

/** Reads the present members; null stands for the default. */
function toContent({ event_types, channels, description, batch_max }: GivenContent): Partial<WebhookContent> {
  return {
    ...(event_types !== undefined && { eventTypes: event_types === null ? null : [...new Set(event_types)] }),
    ...(channels !== undefined && { channels: channels === null ? null : [...new Set(channels)] }),
    ...(description !== undefined && { description }),
    ...(batch_max !== undefined && { batchMax: batch_max ?? DEFAULTS.batchMax }),
  };
}

async function requireUrl(url: string, outbound: OutboundGuard): Promise<void> {
  const why = await webhookUrlFault(url, outbound);
  if (why !== null) throw new ApiError(400, `url ${why}`);
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns the tenant's last event id, or, if there is none within a day, a position before all future events. */
async function positionNow(tenantId: string, feed: Pick<EventFeed, "marks">, clock: Clock): Promise<number> {
  const afterEventId = Math.max(0, firstEventIdAt(clock.nowMs() - DAY_MS));
  const marks = await feed.marks([{ tenantId, afterEventId }]);
  return marks.get(tenantId) ?? afterEventId;
}

/** Throws an `ApiError` 400. */
export function parseRange(
  { from = null, to = null, after_event_id = null }: Static<typeof replayBody>,
  nowMs: number,
) {
  if ((from === null) === (after_event_id === null)) {
    throw new ApiError(400, "either from or after_event_id is required, and not both");
  }
  if (after_event_id !== null) {
    if (to !== null) throw new ApiError(400, "to goes with from: without it, everything behind after_event_id is told");
    if (after_event_id > lastBefore(nowMs)) {
      throw new ApiError(400, "after_event_id lies in the future: what is skipped must have happened");
    }
    return { afterEventId: after_event_id, throughEventId: null };
  }
  const [fromMs, toMs] = [parseTime("from", from ?? ""), to === null ? null : parseTime("to", to)];
  if (fromMs >= (toMs ?? nowMs)) throw new ApiError(400, "from must be before to, and before now");
  return { afterEventId: lastBefore(fromMs), throughEventId: toMs === null ? null : lastBefore(toMs) };
}

/** The largest id that an event before `unixMs` can have. */
function lastBefore(unixMs: number): number {
  return Math.min(Math.max(0, firstEventIdAt(unixMs) - 1), Number.MAX_SAFE_INTEGER - EVENT_IDS_PER_MS);
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Throws an `ApiError` 400 that names the member. */
function parseTime(name: string, text: string): number {
  const unixMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(unixMs)) return unixMs;
  throw new ApiError(400, `${name} must be an ISO 8601 time with its zone, such as 2026-11-21T08:00:00Z`);
}
