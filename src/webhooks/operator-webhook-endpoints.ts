import { Type } from "@sinclair/typebox";
import { eventTimeMs } from "../domain/jobs/event.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import { ApiError } from "../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import { OPERATOR_CONFLICT, OPERATOR_NOT_FOUND } from "../http/failures.ts";
import { paging, queryChoice, queryText, tenantIdParameter } from "../http/parameters.ts";
import { enumSchema, pageSchema } from "../http/schemas.ts";
import { noSuch, requireResult } from "../http/store-results.ts";
import {
  EXAMPLE_ATTEMPT,
  EXAMPLE_WEBHOOK,
  replayBody,
  shownAttempt,
  shownWebhook,
  WebhookAttempt,
  WebhookAttemptPage,
  webhookMembers,
  webhookSchemas,
} from "./schemas.ts";
import type { Webhook } from "./webhook.ts";
import {
  parseRange,
  TEST_IDLE_SECONDS,
  WEBHOOK_TEST_BUSY,
  type WebhookEndpointPorts,
  webhookIdParameter,
} from "./webhook-endpoints.ts";
import { WEBHOOK_STATES, type WebhookState } from "./webhook-repository.ts";

const COMMON = { name: "operator", tag: "Webhooks" } as const;
const PATH = "/dash/api/tenants/:id/webhooks/:webhook_id";
const params = { id: tenantIdParameter, webhook_id: webhookIdParameter };
const fails = { 404: OPERATOR_NOT_FOUND } as const;

/** `/dash/api/webhooks`: the state of all tenants' webhooks, and the steps of operators where a receiver is in trouble. */
export function operatorWebhookEndpoints(
  ports: WebhookEndpointPorts,
  channels: readonly ChannelName[],
): readonly Endpoint[] {
  const { Webhook } = webhookSchemas(channels);
  return [listAll(ports, channels), enable(ports, Webhook), replay(ports, Webhook), test(ports), attempts(ports)];
}

type WebhookSchema = ReturnType<typeof webhookSchemas>["Webhook"];

const LastCall = Type.Union(
  [
    Type.Object({
      at: WebhookAttempt.properties.at,
      status: WebhookAttempt.properties.status,
      error: WebhookAttempt.properties.error,
    }),
    Type.Null(),
  ],
  { description: "The last call, and the receiver's answer; null: it was not called within seven days." },
);

const BEHIND = Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
  description:
    "By how much the last event that it was told is older than the tenant's last event; 0: it was told everything; null: the event store does not answer.",
});

function listAll({ registry, webhooks }: WebhookEndpointPorts, channels: readonly ChannelName[]): Endpoint {
  const Listed = Type.Object(
    {
      tenant_id: Type.String(),
      ...webhookMembers(channels),
      state: enumSchema(WEBHOOK_STATES, "`failing`: its last call failed and is repeated."),
      behind_seconds: BEHIND,
      last_call: LastCall,
    },
    { $id: "TenantWebhook" },
  );
  return operatorEndpoint({
    ...COMMON,
    method: "GET",
    path: "/dash/api/webhooks",
    operation: "listTenantWebhooks",
    summary: "The webhooks of all tenants, and how their receivers do",
    query: {
      tenant: queryText("Only webhooks of this tenant."),
      state: queryChoice("state", WEBHOOK_STATES, { description: "Only webhooks in this state.", absent: null }),
      ...paging,
    },
    answers: {
      200: {
        description: "One page, oldest first.",
        schema: pageSchema("TenantWebhookPage", "webhooks", Listed),
        examples: [{ webhooks: [EXAMPLE], next_cursor: null }],
      },
    },
    async handle({ query: { tenant, ...query } }) {
      const { items, nextCursor } = requireResult(await registry.webhooks.everywhere({ ...query, tenantId: tenant }));
      const calls = await registry.webhooks.lastAttempts(items.map((one) => one.webhookId));
      const marks = await readMarks(webhooks.feed, items);
      const shown = items.map((webhook) => {
        const call = calls.get(webhook.webhookId);
        const { at, status, error } = call === undefined ? NO_CALL : shownAttempt(call);
        return {
          tenant_id: webhook.tenantId,
          ...shownWebhook(webhook),
          state: toState(webhook),
          behind_seconds: marks === null ? null : behindSeconds(webhook, marks),
          last_call: at === null ? null : { at, status, error },
        };
      });
      return reply(200, { webhooks: shown, next_cursor: nextCursor });
    },
  });
}

const NO_CALL = { at: null, status: null, error: null } as const;

const EXAMPLE = {
  tenant_id: "acme",
  ...EXAMPLE_WEBHOOK,
  state: "failing",
  behind_seconds: 754,
  last_call: { at: EXAMPLE_ATTEMPT.at, status: EXAMPLE_ATTEMPT.status, error: EXAMPLE_ATTEMPT.error },
} as const;

/** Each tenant's last event behind the positions of its webhooks; null: the event store is away, which hides no webhook. */
async function readMarks(
  feed: WebhookEndpointPorts["webhooks"]["feed"],
  webhooks: readonly Webhook[],
): Promise<ReadonlyMap<string, number> | null> {
  const positions = new Map<string, number>();
  for (const { tenantId, progress } of webhooks) {
    const { position } = progress.events;
    positions.set(tenantId, Math.min(position, positions.get(tenantId) ?? position));
  }
  if (positions.size === 0) return new Map();
  try {
    return await feed.marks(Array.from(positions, ([tenantId, afterEventId]) => ({ tenantId, afterEventId })));
  } catch {
    return null;
  }
}

function behindSeconds({ tenantId, progress }: Webhook, marks: ReadonlyMap<string, number>): number {
  const { position } = progress.events;
  const mark = marks.get(tenantId) ?? position;
  return mark <= position ? 0 : Math.round((eventTimeMs(mark) - eventTimeMs(position)) / 100) / 10;
}

function toState({ progress: { disabled, failures } }: Webhook): WebhookState {
  if (disabled !== null) return "disabled";
  return failures > 0 ? "failing" : "enabled";
}

function enable({ registry }: WebhookEndpointPorts, schema: WebhookSchema): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/enable`,
    operation: "enableTenantWebhook",
    summary: "Enable a tenant's webhook that was disabled",
    description: "It goes on where it stopped. One that waits for a repeat is called at once.",
    params,
    answers: { 200: { description: "The webhook as it is now.", schema, examples: [EXAMPLE_WEBHOOK] } },
    fails,
    async handle({ params: { id, webhook_id } }) {
      return reply(200, shownWebhook(requireResult(await registry.webhooks.enable(id, webhook_id))));
    },
  });
}

function replay({ registry, clock }: WebhookEndpointPorts, schema: WebhookSchema): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/replay`,
    operation: "replayTenantWebhook",
    audit: { body: ["from", "to", "after_event_id"] },
    summary: "Tell a tenant's webhook events again",
    description: "As the tenant's own `POST /v1/webhooks/{id}/replay`.",
    params,
    body: replayBody,
    answers: { 202: { description: "The webhook as it is now.", schema, examples: [EXAMPLE_WEBHOOK] } },
    fails,
    async handle({ params: { id, webhook_id }, body }) {
      const range = parseRange(body, clock.nowMs());
      return reply(202, shownWebhook(requireResult(await registry.webhooks.replay(id, webhook_id, range))));
    },
  });
}

function test({ webhooks }: WebhookEndpointPorts): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "POST",
    path: `${PATH}/test`,
    operation: "testTenantWebhook",
    summary: "Call a tenant's webhook now",
    description: "With a signed `webhook.test` that stands for no event. Changes nothing but the log of its calls.",
    params,
    answers: {
      200: {
        description: "What the receiver answered, after 15 seconds at most.",
        schema: WebhookAttempt,
        examples: [{ ...EXAMPLE_ATTEMPT, kind: "test", events: 0, first_event_id: null, last_event_id: null }],
      },
    },
    fails: { ...fails, 409: OPERATOR_CONFLICT },
    idleSeconds: TEST_IDLE_SECONDS,
    async handle({ params: { id, webhook_id } }) {
      const attempt = await webhooks.tests.run(id, webhook_id);
      if (attempt === null) throw noSuch("webhook");
      if (attempt === "busy") throw new ApiError(409, WEBHOOK_TEST_BUSY);
      return reply(200, shownAttempt(attempt));
    },
  });
}

function attempts({ registry }: WebhookEndpointPorts): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "GET",
    path: `${PATH}/attempts`,
    operation: "listTenantWebhookAttempts",
    summary: "The latest calls of a tenant's webhook, newest first",
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
    async handle({ params: { id, webhook_id }, query }) {
      const { items, nextCursor } = requireResult(await registry.webhooks.attempts(id, webhook_id, query));
      return reply(200, { attempts: items.map(shownAttempt), next_cursor: nextCursor });
    },
  });
}
