import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import { sleep } from "../domain/clock.ts";
import { hasCode } from "../domain/has-code.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { httpOrigin, isLoopback } from "../domain/texts/host.ts";
import type { MetricsReaders } from "../http/metrics-gate.ts";
import { Readiness } from "../http/readiness.ts";
import { type ServiceServer, type ServiceServerPorts, serveService } from "../http/service.ts";
import { type ConfiguredAddress, openListener } from "../runtime/open-listener.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import type { ApiPorts } from "./api-ports.ts";
import { createApi } from "./endpoints.ts";

export interface Listening {
  readonly url: string;
  /** Address of the metrics if they have their own. */
  readonly metricsUrl: string | null;
  /** Address of operators and monitoring if they have their own. */
  readonly adminUrl: string | null;
}

/** Which of the start's listeners run in this process. */
export interface ListenerPlace {
  /** At `HOST:PORT`: this process alone, this one beside others of the start, or only others. */
  readonly main: "alone" | "shared" | "elsewhere";
  /** Whether the metrics' own address is served here. */
  readonly hasMetrics: boolean;
}

interface GivenPorts extends Omit<ApiPorts, "whenDraining" | "metricsReaders" | "isAdminApart"> {
  /** Finishes what the last requests began, within the time for that since `fromMs` (monotonic). */
  drain(fromMs: number): Promise<void>;
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
  given: GivenPorts,
): Promise<Listening> {
  const metricsUrl = place.hasMetrics ? await startMetrics(config, shutdown, given) : null;
  if (place.main === "elsewhere") {
    const admin = getAdminAddress(config);
    const adminUrl = admin === null ? null : httpOrigin(admin.host, admin.port);
    return { url: httpOrigin(config.host, config.port), metricsUrl, adminUrl };
  }
  const isShared = place.main === "shared";
  return { ...(await startMain({ config, isShared, channels }, shutdown, given)), metricsUrl };
}

/** The ports that other processes of the start will share: free ones where the configuration leaves them open. */
export async function freePorts(config: Config): Promise<Pick<Config, "port" | "adminPort">> {
  const admin = getAdminAddress(config);
  return { port: await freePort(getMainAddress(config)), adminPort: admin === null ? null : await freePort(admin) };
}

function getMainAddress({ host, port }: Config): ConfiguredAddress {
  return { host, hostSetting: "HOST", port, portSetting: "PORT" };
}

/** Null: operators have no listener of their own. */
function getAdminAddress({ adminHost, adminPort: port }: Config): ConfiguredAddress | null {
  if (port === null) return null;
  return { host: adminHost ?? "127.0.0.1", hostSetting: "ADMIN_HOST", port, portSetting: "ADMIN_PORT" };
}

/**
 * Reserves a port that other processes will share through `listen`; this process does not listen on it. Rejects if the port is
 * taken.
 */
async function freePort(at: ConfiguredAddress): Promise<number> {
  // Not shared: a port that another program holds must be refused, not shared with it.
  const server = await openListener(at, () =>
    Bun.serve({
      hostname: at.host,
      port: at.port,
      reusePort: false,
      fetch: () => new Response(null, { status: 503 }),
    }),
  );
  const free = server.port ?? at.port;
  void server.stop(true);
  return free;
}

const NOBODY: MetricsReaders = { kind: "nobody" };

/** Returns the permitted readers of metrics at an address that strangers can reach. */
function readersBeside({ metricsToken: token }: Config): MetricsReaders {
  return token === null ? { kind: "this-machine" } : { kind: "token", token };
}

/** Returns the permitted readers of metrics at a private address. */
function readersInside({ metricsToken: token }: Config, host: string): MetricsReaders {
  if (token !== null) return { kind: "token", token };
  return { kind: isLoopback(host) ? "everybody-here" : "everybody" };
}

/** The metrics' own listener, if configured. */
async function startMetrics(config: Config, shutdown: Shutdown, ports: ServiceServerPorts): Promise<string | null> {
  const { metricsPort: port, metricsHost } = config;
  if (port === null) return null;
  const host = metricsHost ?? "127.0.0.1";
  const at = { host, hostSetting: "METRICS_HOST", port, portSetting: "METRICS_PORT" };
  const server = await openListener(at, () =>
    serveService({ ...ports, metricsReaders: readersInside(config, host) }, at),
  );
  // Closed last, so what the process does while it stops can still be observed.
  shutdown.add("stores", "metrics", () => server.stop());
  return server.url;
}

async function startMain(
  { config, isShared, channels }: Omit<ListenerOptions, "place"> & { readonly isShared: boolean },
  shutdown: Shutdown,
  given: GivenPorts,
): Promise<Omit<Listening, "metricsUrl">> {
  const draining = new AbortController();
  const ports = { ...given, whenDraining: draining.signal };
  if (!config.roles.includes("api")) {
    shutdown.add("work", "listener", () => draining.abort());
    return startServices(config, shutdown, ports);
  }
  const atAdmin = getAdminAddress(config);
  const isAdminApart = atAdmin !== null;
  const besideApi = config.metricsPort === null ? readersBeside(config) : NOBODY;
  const metricsReaders = atAdmin === null ? besideApi : readersInside(config, atAdmin.host);
  const server = createApi({ ...ports, metricsReaders, isAdminApart }, channels);
  shutdown.add("work", "api", async () => {
    const drainedFromMs = ports.clock.monotonicMs();
    draining.abort();
    // Load balancers learn of the stop from `/ready`, and send requests here until they have.
    await sleep(ports.clock, shutdown.graceMs);
    await server.stop();
    await ports.drain(drainedFromMs);
  });
  const at = getMainAddress(config);
  const { url } = await openListener(at, () => server.listen({ ...at, isShared }));
  if (atAdmin === null) return { url, adminUrl: null };
  const admin = await openListener(atAdmin, () => server.listenApart({ ...atAdmin, isShared }));
  return { url, adminUrl: admin.url };
}

/** The listeners of a process without the role `api`. */
async function startServices(
  config: Config,
  shutdown: Shutdown,
  ports: ServiceServerPorts,
): Promise<Pick<Listening, "url" | "adminUrl">> {
  const admin = getAdminAddress(config);
  const hasOwn = admin !== null || config.metricsPort !== null;
  const open = async (at: ConfiguredAddress, metricsReaders: MetricsReaders): Promise<string> => {
    const server = await openListener(at, () => startService(at, { ...ports, metricsReaders }));
    // Closed last, so what the process does while it stops can still be observed.
    shutdown.add("stores", "listener", () => server.stop());
    return server.url;
  };
  const url = await open(getMainAddress(config), hasOwn ? NOBODY : readersBeside(config));
  return { url, adminUrl: admin === null ? null : await open(admin, readersInside(config, admin.host)) };
}

/**
 * Opens a service listener. The port is often taken by a process of the role `api` on the same machine; the start continues
 * without it.
 */
function startService(at: ConfiguredAddress, ports: ServiceServerPorts): ServiceServer {
  try {
    return serveService(ports, at);
  } catch (error) {
    if (!hasCode(error, "EADDRINUSE")) throw error;
    const server = serveService(ports, { host: at.host, port: 0 });
    ports.telemetry.log("warn", `${at.portSetting} is taken; health, readiness and metrics are elsewhere`, {
      port: at.port,
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
  return shutdown.start("work", "readiness", new Readiness(options));
}
