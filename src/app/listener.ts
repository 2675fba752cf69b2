import type { Config } from "../config/config.ts";
import { sleep } from "../domain/clock.ts";
import { httpOrigin } from "../domain/http-origin.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { MetricsReaders } from "../http/metrics-gate.ts";
import { Readiness } from "../http/readiness.ts";
import { type ServiceServer, type ServiceServerPorts, serveService } from "../http/service-server.ts";
import type { ApiPorts } from "./api-ports.ts";
import { createApi } from "./endpoints.ts";
import type { PassKit } from "./open-pass-kit.ts";
import type { Shutdown } from "./shutdown.ts";

export interface Listening {
  readonly url: string;
  /** Where metrics are that have an address of their own. */
  readonly metricsUrl: string | null;
}

/** Serves devices, and has something to finish when it stops. */
type Listened = ApiPorts["passKit"] & Pick<PassKit, "stop">;

/** Which of a start's listeners are in this process. */
export interface ListenerPlace {
  /** At `HOST:PORT`: this process alone, this one beside others of the start, or only others. */
  readonly main: "alone" | "shared" | "elsewhere";
  /** Whether the metrics that have an address of their own are here. */
  readonly hasMetrics: boolean;
}

/** Where this process listens: every role has `/health`, `/ready` and `/metrics`, the role `api` all the rest, too. */
export async function startListener(
  { config, place }: { readonly config: Config; readonly place: ListenerPlace },
  shutdown: Shutdown,
  given: Omit<ApiPorts, "whenDraining" | "metricsReaders"> & { readonly passKit: Listened },
): Promise<Listening> {
  const metricsUrl = place.hasMetrics ? startMetrics(config, shutdown, given) : null;
  const ports = { ...given, metricsReaders: config.metricsPort === null ? readersBeside(config) : NOBODY };
  const elsewhere = httpOrigin(config.host, config.port);
  const isShared = place.main === "shared";
  const url = place.main === "elsewhere" ? elsewhere : await startMain({ config, isShared }, shutdown, ports);
  return { url, metricsUrl };
}

/** The port that `listen` of other processes will share; here nobody listens at it. Throws where it is taken. */
export function freePort({ host, port }: Pick<Config, "host" | "port">): number {
  // Not shared: what another program has must be refused, and not be taken a part of.
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

/** Who reads metrics at an address where strangers are, too. */
function readersBeside({ metricsToken: token }: Config): MetricsReaders {
  return token === null ? { kind: "this-machine" } : { kind: "token", token };
}

/** The listener of metrics alone, where they are to have one. */
function startMetrics(config: Config, shutdown: Shutdown, ports: ServiceServerPorts): string | null {
  const { metricsPort: port, metricsHost, metricsToken: token } = config;
  if (port === null) return null;
  const metricsReaders: MetricsReaders = token === null ? { kind: "everybody" } : { kind: "token", token };
  const server = serveService({ ...ports, metricsReaders }, { host: metricsHost ?? "127.0.0.1", port });
  // To the end: what a process does while it stops can be asked for.
  shutdown.add("stores", "metrics", () => server.stop());
  return server.url;
}

async function startMain(
  { config, isShared }: { readonly config: Config; readonly isShared: boolean },
  shutdown: Shutdown,
  ports: Omit<ApiPorts, "whenDraining"> & { readonly passKit: Listened },
): Promise<string> {
  const draining = new AbortController();
  if (!config.roles.includes("api")) {
    const server = startService(config, { ...ports, whenDraining: draining.signal });
    shutdown.add("work", "listener", () => draining.abort());
    // To the end: what a process does while it stops can be asked for.
    shutdown.add("stores", "listener", () => server.stop());
    return server.url;
  }
  const server = createApi({ ...ports, whenDraining: draining.signal });
  shutdown.add("work", "api", async () => {
    const drainedFromMs = ports.clock.monotonicMs();
    draining.abort();
    // Load balancers hear of it from `/ready`, and send requests here until they have.
    await sleep(ports.clock, shutdown.graceMs);
    await server.stop();
    // Whatever the last requests made due.
    await ports.passKit.stop(drainedFromMs);
  });
  return (await server.listen({ host: config.host, port: config.port, isShared })).url;
}

/** Beside a process of the role `api` on the same machine the port is often taken. Nothing waits for that. */
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

/** Follows the parts that this process needs, for as long as it works. */
export function startReadiness(
  shutdown: Shutdown,
  options: ConstructorParameters<typeof Readiness>[0] & { readonly telemetry: Telemetry },
): Readiness {
  const readiness = new Readiness(options);
  readiness.start();
  shutdown.add("work", "readiness", () => readiness.stop());
  return readiness;
}
