import type { ApiPorts } from "../api/api-ports.ts";
import type { MetricsReaders } from "../api/metrics-gate.ts";
import { Readiness } from "../api/readiness.ts";
import { createServer } from "../api/server.ts";
import { type ServiceServer, type ServiceServerPorts, serveService } from "../api/service-server.ts";
import type { Config } from "../config.ts";
import { sleep } from "../core/clock.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { PassKit } from "./open-pass-kit.ts";
import type { Shutdown } from "./shutdown.ts";

export interface Listening {
  readonly url: string;
  /** Where metrics are that have an address of their own. */
  readonly metricsUrl: string | null;
}

/** Where this process listens: every role has `/health`, `/ready` and `/metrics`, the role `api` all the rest, too. */
export async function startListener(
  config: Config,
  shutdown: Shutdown,
  given: Omit<ApiPorts, "whenDraining" | "metricsReaders"> & { readonly passKit: PassKit },
): Promise<Listening> {
  const metricsUrl = startMetrics(config, shutdown, given);
  const ports = { ...given, metricsReaders: metricsUrl === null ? readersBeside(config) : NOBODY };
  return { url: await startMain(config, shutdown, ports), metricsUrl };
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
  config: Config,
  shutdown: Shutdown,
  ports: Omit<ApiPorts, "whenDraining"> & { readonly passKit: PassKit },
): Promise<string> {
  const draining = new AbortController();
  if (!config.roles.includes("api")) {
    const server = startService(config, { ...ports, whenDraining: draining.signal });
    shutdown.add("work", "listener", () => draining.abort());
    // To the end: what a process does while it stops can be asked for.
    shutdown.add("stores", "listener", () => server.stop());
    return server.url;
  }
  const server = createServer({ ...ports, whenDraining: draining.signal });
  shutdown.add("work", "api", async () => {
    const drainedFromMs = ports.clock.monotonicMs();
    draining.abort();
    // Load balancers hear of it from `/ready`, and send requests here until they have.
    await sleep(ports.clock, shutdown.graceMs);
    await server.stop();
    // Whatever the last requests made due.
    await ports.passKit.stop(drainedFromMs);
  });
  return (await server.listen({ host: config.host, port: config.port })).url;
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
