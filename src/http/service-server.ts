import { ApiError } from "../domain/errors.ts";
import { httpOrigin } from "../domain/http-origin.ts";
import type { JobIds } from "../domain/ids.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { CallerAddresses } from "./caller-addresses.ts";
import { type AnyReply, toResponse } from "./endpoint.ts";
import { Exchange } from "./exchange.ts";
import { serviceAnswers } from "./service.ts";
import type { ServiceAnswerPorts } from "./service-ports.ts";

export interface ServiceServerPorts extends ServiceAnswerPorts {
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
}

export interface ServiceServer {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * The listener of a process without the role `api`, or of metrics at their own address: health, readiness and metrics only.
 * Throws if the address is not available.
 */
export function serveService(ports: ServiceServerPorts, at: { readonly host: string; readonly port: number }) {
  const callers = new CallerAddresses();
  const answers = serviceAnswers(ports, callers);
  const known = new Map<string, (exchange: Exchange) => AnyReply | Promise<AnyReply | Response>>([
    ["/health", answers.health],
    ["/ready", answers.ready],
    ["/metrics", answers.metrics],
  ]);
  const answer = async (request: Request): Promise<Response> => {
    const exchange = new Exchange(request, ports.jobIds);
    const work = known.get(new URL(request.url).pathname);
    if (work === undefined)
      return exchange.json(404, { error: "there is nothing at this address: the API is elsewhere" });
    if (request.method !== "GET" && request.method !== "HEAD") {
      return exchange.json(405, { error: `it takes GET, not ${request.method.slice(0, 20)}` }, { allow: "GET, HEAD" });
    }
    try {
      return toResponse(exchange, await work(exchange));
    } catch (error) {
      if (error instanceof ApiError) return exchange.error(error);
      throw error;
    }
  };
  const server = Bun.serve({
    hostname: at.host,
    port: at.port,
    fetch: answer,
    reusePort: false,
    development: false,
    error: (error) => {
      ports.telemetry.log("error", "a request broke the server", { error: error.stack ?? error.message });
      return Response.json({ error: "internal error" }, { status: 500 });
    },
  });
  callers.listensOn(server);
  const url = httpOrigin(at.host, server.port ?? at.port);
  return { url, stop: () => server.stop(true) } satisfies ServiceServer;
}
