import { Type } from "@sinclair/typebox";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { toQueueQuota } from "../../domain/jobs/queue.ts";
import type { TemplateRecord } from "../../domain/tenants/template-record.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply, requireSending } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { managedEndpoints, type Self } from "../../http/managed-endpoint.ts";
import type { PathParameter } from "../../http/parameters.ts";
import { acceptJob } from "../../http/sending/accept-job.ts";
import { answerAccepted } from "../../http/sending/accepted-answer.ts";
import { readIdempotency } from "../../http/sending/idempotency.ts";
import { IDEMPOTENCY_KEY, QUEUED } from "../../http/sending/send-endpoint.ts";
import { replayed } from "../../http/sending/serve-send.ts";
import { noSuch, requireResult } from "../../http/store-results.ts";
import type { TemplateKind } from "../../http/template-kind.ts";
import type { TenantRegistry } from "../registry.ts";

interface Ports {
  readonly registry: Pick<TenantRegistry, "template">;
  readonly directory: Pick<TenantDirectory, "byId">;
}

const PREVIEW_BODY = Type.Object(
  {
    data: Type.Optional(
      Type.Unsafe<JsonObject>(
        Type.Object(
          {},
          {
            additionalProperties: true,
            description: "an object: the values of the placeholders, or the pass_data to lay over a pass template",
          },
        ),
      ),
    ),
  },
  { additionalProperties: false, examples: [{ data: { name: "Ada" } }] },
);

/** Endpoints that preview a stored template, and send a test message from it. */
export function templateTrialEndpoints(
  ports: Ports,
  kinds: readonly TemplateKind[],
  slugParameter: PathParameter<string>,
): readonly Endpoint[] {
  const params = { slug: slugParameter };
  return [...previewEndpoints(ports, kinds, params), ...testEndpoints(ports, kinds, params)];
}

type Params = { readonly slug: PathParameter<string> };

function previewEndpoints(ports: Ports, kinds: readonly TemplateKind[], params: Params): readonly Endpoint[] {
  const [first] = kinds;
  return managedEndpoints({
    method: "POST",
    path: "templates/:slug/preview",
    name: "preview_template",
    operation: "previewTemplate",
    summary: "Preview a template with the given values, without sending or storing",
    effect: "read",
    params,
    body: PREVIEW_BODY,
    answers: {
      200: {
        description: "Done.",
        schema: Type.Unsafe<JsonObject>(
          Type.Union(
            kinds.map(({ preview }) => preview.answer),
            { $id: "TemplatePreview" },
          ),
        ),
        examples: [first?.preview.example ?? {}],
      },
    },
    fails: [404],
    async handle({ door, exchange, tenantId, params: { slug }, body: { data = {} } }) {
      const { tenant, template, kind } = await find(ports, kinds, tenantId, slug);
      const { preview } = kind;
      const render = () => preview.render(tenant, template, data);
      return reply(200, await door.inTurnOrRefused(exchange.caller, preview.weight(template, data), render));
    },
  });
}

function testEndpoints(ports: Ports, kinds: readonly TemplateKind[], params: Params): readonly Endpoint[] {
  const tests = kinds.flatMap(({ test }) => test ?? []);
  return managedEndpoints({
    method: "POST",
    path: "templates/:slug/test",
    name: "test_template",
    operation: "testTemplate",
    summary: "Send one message made of a template",
    description:
      "Queues a job of the tenant, as a send of its own does: with its sender, suppressions and share of the queue. An " +
      "operator's call does not count against the tenant's rate limit.",
    scope: "send",
    params,
    headers: [IDEMPOTENCY_KEY],
    body: {
      schema: tests.length === 1 && tests[0] ? tests[0].schema : Type.Union(tests.map(({ schema }) => schema)),
    },
    answers: QUEUED,
    fails: [404, 409, 422, 429],
    async handle({ door, exchange, tenantId, self, params: { slug }, body }) {
      const idempotency = readIdempotency(exchange, `test ${slug}`, body);
      const known = idempotency === null ? null : await ports.directory.byId(tenantId);
      const first = known === null ? null : await replayed(door, exchange, { tenant: known, body, idempotency });
      if (first !== null) return first;
      const { tenant, kind } = await find(ports, kinds, tenantId, slug);
      if (self !== null) requireOwnSend(door, exchange, self, kind.channel);
      const job = buildJob(tenant, kind, slug, body);
      const { jobIds } = door.ports;
      const named = { jobId: jobIds.next(), channel: kind.channel, quota: toQueueQuota(tenant.plan), idempotency };
      const accepted = await acceptJob(door, { tenant, requestsPerMinute: null, job: { ...named, ...job }, exchange });
      return answerAccepted(door, exchange, tenant, accepted);
    },
  });
}

/** Throws an `ApiError` 403 or 429, as for every send of the tenant. */
function requireOwnSend(door: FrontDoor, exchange: Exchange, { tenant }: Self, channel: ChannelName): void {
  requireSending(tenant, channel);
  door.refuseFullQueue(exchange, tenant);
}

async function find(
  { registry, directory }: Ports,
  kinds: readonly TemplateKind[],
  id: string,
  slug: string,
): Promise<{ readonly tenant: Tenant; readonly template: TemplateRecord; readonly kind: TemplateKind }> {
  const template = requireResult(await registry.template(id, slug));
  const tenant = await directory.byId(id);
  const kind = kinds.find(({ channel }) => channel === template.channel);
  if (tenant === null || kind === undefined) throw noSuch(tenant === null ? "tenant" : "template");
  return { tenant, template, kind };
}

/** Throws an `ApiError`: 400 for the body, 409 if the tenant itself could not send this either. */
function buildJob(tenant: Tenant, { channel, test }: TemplateKind, slug: string, body: unknown) {
  if (test === undefined) {
    throw new ApiError(409, `templates of the channel ${channel} cannot be sent as a test: preview them`);
  }
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");
  const acceptance = test.accept(tenant, slug, body);
  if (!acceptance.ok) {
    const { refusal } = acceptance;
    throw new ApiError(refusal.status === 400 ? refusal : 409, refusal.message);
  }
  if (!tenant.channels.has(channel)) {
    throw new ApiError(409, `the channel ${channel} is not enabled for this tenant`);
  }
  return acceptance.job;
}
