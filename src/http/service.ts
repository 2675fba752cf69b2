import type { Elysia } from "elysia";
import type { CallerAddresses } from "./caller-addresses.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";
import { MetricsGate, type MetricsReaders } from "./metrics-gate.ts";
import type { Readiness } from "./readiness.ts";

export interface ServiceAnswerPorts {
  readonly readiness: Pick<Readiness, "look">;
  /** The Prometheus text exposition of this process. */
  metricsText(): Promise<string>;
  /** Who may read that; programs of this machine where nothing is said. */
  readonly metricsReaders?: MetricsReaders;
  /** Aborts when the process begins to stop: `/ready` then says so, and load balancers look elsewhere. */
  readonly whenDraining?: AbortSignal;
}

/** What machines ask about this process, by path. */
export function serviceAnswers(ports: ServiceAnswerPorts, callers: CallerAddresses) {
  const { readiness, metricsText, metricsReaders = { kind: "this-machine" }, whenDraining } = ports;
  const gate = new MetricsGate(metricsReaders);
  return {
    health: (exchange: Exchange) => exchange.json(200, { status: "ok" }),
    ready: async (exchange: Exchange) => {
      const state = await readiness.look();
      const failing = whenDraining?.aborted ? ["stopping"] : state.failing;
      const away = state.away.map(({ part, sinceMs }) => ({ part, since: new Date(sinceMs).toISOString() }));
      const detail = away.length === 0 ? {} : { away };
      if (failing.length === 0) return exchange.json(200, { status: "ready", ...detail });
      const error = `not ready: ${failing.join(", ")}`;
      return exchange.json(503, { error, status: "unavailable", failing, ...detail });
    },
    metrics: async (exchange: Exchange) => {
      gate.require(exchange, (request) => callers.of(request));
      return exchange.body(200, await metricsText(), { "content-type": METRICS_TYPE, "cache-control": "no-store" });
    },
  };
}

/** Prometheus text exposition format 0.0.4. */
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** `GET /health`, `GET /ready`, `GET /metrics`. */
export function serviceRoutes(app: Elysia, door: FrontDoor): void {
  const { health, ready, metrics } = serviceAnswers(door.ports, door.callers);
  app.get("/health", ({ request }) => door.serve("health", request, health));
  app.get("/ready", ({ request }) => door.serve("ready", request, ready));
  app.get("/metrics", ({ request }) => door.serve("metrics", request, metrics));
}
