import type { Config } from "../config/config.ts";
import { sleep } from "../domain/clock.ts";
import { httpOrigin } from "../domain/host.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { MetricsReaders } from "../http/metrics-gate.ts";
import { Readiness } from "../http/readiness.ts";
import { type ServiceServer, type ServiceServerPorts, serveService } from "../http/service.ts";
import type { ApiPorts } from "./api-ports.ts";
import type { AppChannel } from "./app-channel.ts";
import { createApi } from "./endpoints.ts";
import type { Shutdown } from "./shutdown.ts";
import type { PassKit } from "./wallet.ts";

export interface Listening {
  readonly url: string;
  /** Address of the metrics if they have their own. */
  readonly metricsUrl: string | null;
}

/** Serves devices, and has work to finish when it stops. */
type Listened = ApiPorts["passKit"] & Pick<PassKit, "stop">;

/** Which of the start's listeners run in this process. */
export interface ListenerPlace {
  /** At `HOST:PORT`: this process alone, this one beside others of the start, or only others. */
  readonly main: "alone" | "shared" | "elsewhere";
  /** Whether the metrics' own address is served here. */
  readonly hasMetrics: boolean;
}

interface ListenerOptions {
  readonly config: Config;
  readonly place: ListenerPlace;
  readonly channels: readonly AppChannel[];
}

/** Where this process listens: every role has `/health`, `/ready` and `/metrics`, the role `api` all the rest, too. */
export async function startListener(
  { config, place, channels }: ListenerOptions,
  shutdown: Shutdown,
  given: Omit<ApiPorts, "whenDraining" | "metricsReaders"> & { readonly passKit: Listened },
): Promise<Listening> {
  const metricsUrl = place.hasMetrics ? startMetrics(config, shutdown, given) : null;
  const ports = { ...given, metricsReaders: config.metricsPort === null ? readersBeside(config) : NOBODY };
  const elsewhere = httpOrigin(config.host, config.port);
  const isShared = place.main === "shared";
  const url = place.main === "elsewhere" ? elsewhere : await startMain({ config, isShared, channels }, shutdown, ports);
  return { url, metricsUrl };
}

/**
 * Reserves the port that other processes will share through `listen`; this process does not listen on it. Throws if the port is
 * taken.
 */
export function freePort({ host, port }: Pick<Config, "host" | "port">): number {
  // Not shared: a port that another program holds must be refused, not shared with it.
  const server = Bun.serve({
    hostname: host,
    port,
    reusePort: false,
    fetch: () => new Response(null, { status: 503 }),
  });
  const free = server.port ?? port;
  void server.stop(true);
  return free;
}

const NOBODY: MetricsReaders = { kind: "nobody" };

/** Who may read metrics at an address that strangers can reach. */
function readersBeside({ metricsToken: token }: Config): MetricsReaders {
  return token === null ? { kind: "this-machine" } : { kind: "token", token };
}

/** The metrics' own listener, if configured. */
function startMetrics(config: Config, shutdown: Shutdown, ports: ServiceServerPorts): string | null {
  const { metricsPort: port, metricsHost, metricsToken: token } = config;
  if (port === null) return null;
  const metricsReaders: MetricsReaders = token === null ? { kind: "everybody" } : { kind: "token", token };
  const server = serveService({ ...ports, metricsReaders }, { host: metricsHost ?? "127.0.0.1", port });
  // Closed last, so what the process does while it stops can still be observed.
  shutdown.add("stores", "metrics", () => server.stop());
  return server.url;
}

async function startMain(
  { config, isShared, channels }: Omit<ListenerOptions, "place"> & { readonly isShared: boolean },
  shutdown: Shutdown,
  ports: Omit<ApiPorts, "whenDraining"> & { readonly passKit: Listened },
): Promise<string> {
  const draining = new AbortController();
  if (!config.roles.includes("api")) {
    const server = startService(config, { ...ports, whenDraining: draining.signal });
    shutdown.add("work", "listener", () => draining.abort());
    // Closed last, so what the process does while it stops can still be observed.
    shutdown.add("stores", "listener", () => server.stop());
    return server.url;
  }
  const server = createApi({ ...ports, whenDraining: draining.signal }, channels);
  shutdown.add("work", "api", async () => {
    const drainedFromMs = ports.clock.monotonicMs();
    draining.abort();
    // Load balancers learn of the stop from `/ready`, and send requests here until they have.
    await sleep(ports.clock, shutdown.graceMs);
    await server.stop();
    // Finishes what the last requests started.
    await ports.passKit.stop(drainedFromMs);
  });
  return (await server.listen({ host: config.host, port: config.port, isShared })).url;
}

/**
 * Opens the service listener. The port is often taken by a process of the role `api` on the same machine; the start continues
 * without it.
 */
function startService({ host, port }: Config, ports: ServiceServerPorts): ServiceServer {
  try {
    return serveService(ports, { host, port });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    const server = serveService(ports, { host, port: 0 });
    ports.telemetry.log("warn", "PORT is taken; health, readiness and metrics are elsewhere", {
      port,
      url: server.url,
    });
    return server;
  }
}

/** Probes the parts that this process needs, as long as it runs. */
export function startReadiness(
  shutdown: Shutdown,
  options: ConstructorParameters<typeof Readiness>[0] & { readonly telemetry: Telemetry },
): Readiness {
  const readiness = new Readiness(options);
  readiness.start();
  shutdown.add("work", "readiness", () => readiness.stop());
  return readiness;
}
