import type { AppChannel } from "../channels/contract.ts";
import type { JobRecord } from "../domain/jobs/job.ts";
import type { Tenant } from "../domain/tenants/tenant.ts";
import { eventEndpoint } from "../events/endpoints/event-endpoint.ts";
import { explainEndpoint } from "../events/endpoints/explain-endpoint.ts";
import { exportEndpoint } from "../events/endpoints/export-endpoint.ts";
import { jobEndpoints } from "../events/endpoints/job-endpoints.ts";
import { jobListEndpoint } from "../events/endpoints/job-list-endpoint.ts";
import { jobSearchEndpoint } from "../events/endpoints/job-search-endpoint.ts";
import { metricsEndpoint } from "../events/endpoints/metrics-endpoint.ts";
import { operatorJobEndpoints } from "../events/endpoints/operator-job-endpoints.ts";
import { operatorSumsEndpoints } from "../events/endpoints/operator-sums-endpoints.ts";
import { retryEndpoints } from "../events/endpoints/retry-endpoints.ts";
import { scheduleEndpoints } from "../events/endpoints/schedule-endpoints.ts";
import { historyInTurn } from "../events/history-in-turn.ts";
import { type ContentKind, shownWithPass } from "../http/content-kind.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { createServer, type Server } from "../http/server.ts";
import { auditEndpoint } from "../operators/audit-endpoint.ts";
import { dashboardEndpoints } from "../operators/dashboard-endpoints.ts";
import { operatorEndpoints } from "../operators/operator-endpoints.ts";
import { overviewEndpoints } from "../operators/overview/overview-endpoints.ts";
import { sandboxEndpoints } from "../operators/sandbox-endpoints.ts";
import { sessionEndpoints } from "../operators/session-endpoints.ts";
import { tenantRoomEndpoints } from "../tenants/endpoints.ts";
import { operatorWebhookEndpoints } from "../webhooks/operator-webhook-endpoints.ts";
import { webhookEndpoints } from "../webhooks/webhook-endpoints.ts";
import type { ApiPorts } from "./api-ports.ts";
import { findPassOffice, listCredentialKinds, listTemplateKinds } from "./of-channels.ts";

/** Creates the HTTP side of Waybill with all endpoints, without starting it. */
export function createApi(ports: ApiPorts, channels: readonly AppChannel[]): Server {
  return createServer(ports, listEndpoints(ports, channels));
}

/** All endpoints but those that `http` has itself: the documentation, health, readiness and metrics. */
function listEndpoints(ports: ApiPorts, channels: readonly AppChannel[]): readonly Endpoint[] {
  const { queue } = ports;
  // Operators do not wait behind their tenants.
  const own = { ...ports, ...historyInTurn(ports, ports.reads) };
  const names = channels.map(({ name }) => name);
  const office = findPassOffice(channels);
  if (office === undefined) throw new Error("no channel makes the passes that messages carry");
  const ofChannels = { ...ports, passDesk: office.desk(ports) };
  return [
    ...channels.flatMap((channel) => channel.endpoints(ofChannels)),
    ...scheduleEndpoints(ports),
    ...jobEndpoints({
      queue,
      eventStore: own.eventStore,
      completeResult: (tenant, job) => completed(tenant, job, { ports, channels }),
    }),
    jobListEndpoint(own, names),
    explainEndpoint(own),
    ...operatorJobEndpoints(ports, names),
    jobSearchEndpoint(ports, names),
    ...retryEndpoints(ports, names, listContentKinds(ports, channels)),
    eventEndpoint(own, names),
    ...webhookEndpoints(ports, names),
    ...operatorWebhookEndpoints(ports, names),
    ...operatorSumsEndpoints(ports, names),
    metricsEndpoint(own, names),
    exportEndpoint(ports),
    ...tenantRoomEndpoints(ports, {
      channels: names,
      kinds: listTemplateKinds(channels),
      credentialKinds: listCredentialKinds(channels),
    }),
    ...operatorEndpoints(ports),
    ...sessionEndpoints(),
    auditEndpoint(ports),
    ...overviewEndpoints(ports, names),
    ...sandboxEndpoints(ports, names),
    ...dashboardEndpoints(),
  ];
}

function listContentKinds(ports: ApiPorts, channels: readonly AppChannel[]): readonly ContentKind[] {
  return channels.flatMap((channel) => {
    const kind = channel.contentKind?.(ports);
    if (kind === undefined) return [];
    return [channel.fillPass === undefined ? kind : shownWithPass(kind, channel.fillPass)];
  });
}

/** The job with what its channel does not store with its result. */
async function completed(
  tenant: Tenant,
  job: JobRecord,
  { ports, channels }: { readonly ports: ApiPorts; readonly channels: readonly AppChannel[] },
): Promise<JobRecord> {
  let whole = job;
  for (const channel of channels) whole = (await channel.completeResult?.(ports, tenant, whole)) ?? whole;
  return whole;
}
