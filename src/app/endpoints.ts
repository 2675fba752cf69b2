import type { ApiPorts } from "../http/api-ports.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { createServer, type Server } from "../http/server.ts";
import { ROUTE_GROUPS } from "./route-groups.ts";

/** The HTTP side of Waybill, with every room's endpoints. Starts nothing. */
export function createApi(ports: ApiPorts): Server {
  return createServer(ports, endpointsOf(ports), ROUTE_GROUPS);
}

/** All endpoints but those that `http` has itself: the documentation, health, readiness and metrics. */
export function endpointsOf(_ports: ApiPorts): readonly Endpoint[] {
  return [];
}
