import { emailEndpoints } from "../channels/email/endpoints.ts";
import { walletEndpoints } from "../channels/wallet/endpoints.ts";
import { withPass } from "../channels/wallet/wallet-result.ts";
import { whatsappEndpoints } from "../channels/whatsapp/endpoints.ts";
import { eventEndpoint } from "../events/event-endpoint.ts";
import { exportEndpoint } from "../events/export-endpoint.ts";
import { jobEndpoints } from "../events/job-endpoints.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { createServer, type Server } from "../http/server.ts";
import { dashboardEndpoints } from "../operators/dashboard-endpoints.ts";
import { sandboxEndpoints } from "../operators/sandbox-endpoints.ts";
import { keyEndpoints } from "../tenants/key-endpoints.ts";
import { planEndpoints } from "../tenants/plan-endpoints.ts";
import { suppressionEndpoints } from "../tenants/suppression-endpoints.ts";
import { templateEndpoints } from "../tenants/template-endpoints.ts";
import { tenantEndpoints } from "../tenants/tenant-endpoints.ts";
import { tokenEndpoints } from "../tenants/token-endpoints.ts";
import type { ApiPorts } from "./api-ports.ts";
import { TEMPLATE_KINDS } from "./channel-parts.ts";

/** The HTTP side of Waybill, with every room's endpoints. Starts nothing. */
export function createApi(ports: ApiPorts): Server {
  return createServer(ports, endpointsOf(ports));
}

/** All endpoints but those that `http` has itself: the documentation, health, readiness and metrics. */
export function endpointsOf(ports: ApiPorts): readonly Endpoint[] {
  const { queue, eventStore, wallet } = ports;
  return [
    ...emailEndpoints(ports),
    ...whatsappEndpoints(ports),
    ...walletEndpoints(ports),
    ...jobEndpoints({ queue, eventStore, completeResult: (tenant, job) => withPass(wallet, tenant, job) }),
    eventEndpoint(ports),
    exportEndpoint(ports),
    ...tenantEndpoints(ports),
    ...keyEndpoints(ports),
    ...templateEndpoints(ports, TEMPLATE_KINDS),
    ...tokenEndpoints(ports),
    ...suppressionEndpoints(ports),
    ...planEndpoints(ports),
    ...sandboxEndpoints({ sandbox: ports.sandbox, deviceLog: ports.passKit.log }),
    ...dashboardEndpoints,
  ];
}
