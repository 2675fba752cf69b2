import { Type } from "@sinclair/typebox";
import type { JobIds } from "../domain/ids.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { httpOrigin } from "../domain/texts/host.ts";
import { ApiError } from "./api-error.ts";
import { CallerAddresses } from "./caller-addresses.ts";
import { type Answers, type AnyReply, type Endpoint, endpoint, type Reply, reply, toResponse } from "./endpoint.ts";
import type { ErrorCode } from "./error-codes.ts";
import { Exchange } from "./exchange.ts";
import { failure, OPERATOR_INTERNAL_ERROR } from "./failures.ts";
import type { FrontDoor, ServiceAnswerPorts } from "./front-door.ts";
import { MetricsGate } from "./metrics-gate.ts";
import { readPath } from "./parameters.ts";
import { Timestamp } from "./schemas.ts";

const AwayParts = Type.Array(
  Type.Object({
    part: Type.String(),
    since: Timestamp,
    why: Type.Optional(Type.String({ description: "For relays: the server's last words, or its failure to answer." })),
  }),
  { description: "All parts that are away, including those that the process can do without. Left out while none is." },
);

const RELAY_AWAY = {
  part: "relay smtp.example.com:25",
  since: "2026-01-01T00:00:00.000Z",
  why: "the mail server refused the connection: 421 4.7.0 Try again later, closing connection. (EHLO)",
};

const HEALTH = {
  200: {
    description: "It does.",
    schema: Type.Object({ status: Type.Literal("ok") }, { $id: "Health" }),
    examples: [{ status: "ok" }],
  },
} as const satisfies Answers;

const READY = {
  200: {
    description: "All parts that it needs are up. Others that are away are listed.",
    schema: Type.Object({ status: Type.Literal("ready"), away: Type.Optional(AwayParts) }, { $id: "Ready" }),
    examples: [{ status: "ready", away: [RELAY_AWAY] }],
  },
  503: {
    description: "At least one is down, or the process is stopping.",
    schema: Type.Object(
      {
        error: Type.String(),
        status: Type.Literal("unavailable"),
        failing: Type.Array(Type.String(), { description: "Names of the parts that are down." }),
        away: Type.Optional(AwayParts),
      },
      { $id: "NotReady" },
    ),
    examples: [
      {
        error: "not ready: clickhouse",
        status: "unavailable",
        failing: ["clickhouse"],
        away: [{ part: "clickhouse", since: "2026-01-01T00:00:00.000Z" }],
      },
    ],
    headers: { "X-Error-Code": "`not_ready`." },
  },
} as const satisfies Answers;

const NOT_READY = { "x-error-code": "not_ready" satisfies ErrorCode };
const INTERNAL_ERROR: ErrorCode = "internal_error";

/** The answers for monitoring, by path. */
function serviceAnswers(ports: ServiceAnswerPorts, callers: CallerAddresses) {
  const { readiness, metricsText, metricsReaders = { kind: "this-machine" }, whenDraining } = ports;
  const gate = new MetricsGate(metricsReaders);
  return {
    health: (): Reply<typeof HEALTH> => reply(200, { status: "ok" }),
    ready: async (): Promise<Reply<typeof READY>> => {
      const state = await readiness.look();
      const failing = whenDraining?.aborted ? ["stopping"] : state.failing;
      const away = state.away.map(({ part, sinceMs, why }) => ({
        part,
        since: new Date(sinceMs).toISOString(),
        ...(why !== undefined && { why }),
      }));
      const detail = away.length === 0 ? {} : { away };
      if (failing.length === 0) return reply(200, { status: "ready", ...detail });
      const error = `not ready: ${failing.join(", ")}`;
      return reply(503, { error, status: "unavailable", failing, ...detail }, NOT_READY);
    },
    metrics: async (exchange: Exchange): Promise<Response> => {
      gate.require(exchange, (request) => callers.of(request));
      return exchange.body(200, await metricsText(), { "content-type": METRICS_TYPE, "cache-control": "no-store" });
    },
  };
}

/**
 * How long a connection may be silent. Balancers keep theirs for 60 s and must be the first to close: a request on a connection
 * that we are closing would fail.
 */
export const CONNECTION_IDLE_SECONDS = 75;

/** Prometheus text exposition format 0.0.4. */
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** `GET /health`, `GET /ready`, `GET /metrics`. */
export function serviceEndpoints(door: FrontDoor): readonly Endpoint[] {
  const { health, ready, metrics } = serviceAnswers(door.ports, door.callers);
  return [
    endpoint({
      method: "GET",
      path: "/health",
      name: "health",
      operation: "health",
      tag: "Service",
      summary: "Whether the process lives",
      answers: HEALTH,
      handle: health,
    }),
    endpoint({
      method: "GET",
      path: "/ready",
      name: "ready",
      operation: "ready",
      tag: "Service",
      summary: "Whether every dependency is up",
      answers: READY,
      handle: ready,
    }),
    endpoint({
      method: "GET",
      path: "/metrics",
      name: "metrics",
      operation: "metrics",
      tag: "Service",
      summary: "Metrics in the Prometheus text format",
      // Programs on this machine need no token, unless the server was given one.
      security: [null, "metrics"],
      answers: {
        200: { description: "Metrics in the Prometheus text format", schema: null, mediaType: "text/plain" },
      },
      fails: METRICS_FAILS,
      handle: (_, exchange) => metrics(exchange),
    }),
  ];
}

const METRICS_FAILS = {
  401: failure(
    "MetricsUnknown",
    "The server has a metrics token, and it is missing or wrong.",
    "the metrics token is missing",
    { headers: ["WWW-Authenticate"] },
  ),
  403: failure(
    "MetricsForbidden",
    "The server has none, and the request comes from another machine, of a web page, or under a foreign name.",
    "metrics are for programs of this machine",
  ),
  404: failure("MetricsElsewhere", "Metrics have an address of their own.", "there is nothing at this address"),
  500: OPERATOR_INTERNAL_ERROR,
} as const;

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
    const work = known.get(readPath(request.url));
    if (work === undefined)
      return exchange.error(new ApiError(404, "there is nothing at this address: the API is elsewhere"));
    if (request.method !== "GET" && request.method !== "HEAD") {
      const error = new ApiError(405, `it takes GET, not ${request.method.slice(0, 20)}`);
      return exchange.error(error, undefined, { allow: "GET, HEAD" });
    }
    try {
      return toResponse(exchange, await work(exchange));
    } catch (error) {
      if (error instanceof ApiError) return exchange.error(error);
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      ports.telemetry.log("error", "a request failed", { request_id: exchange.requestId, error: text });
      return exchange.error(new ApiError(500, "internal error"));
    }
  };
  const server = Bun.serve({
    hostname: at.host,
    port: at.port,
    fetch: answer,
    idleTimeout: CONNECTION_IDLE_SECONDS,
    reusePort: false,
    development: false,
    error: (error) => {
      ports.telemetry.log("error", "a request broke the server", { error: error.stack ?? error.message });
      return Response.json({ error: "internal error" }, { status: 500, headers: { "x-error-code": INTERNAL_ERROR } });
    },
  });
  callers.listensOn(server);
  const url = httpOrigin(at.host, server.port ?? at.port);
  return { url, stop: () => server.stop(true) } satisfies ServiceServer;
}
