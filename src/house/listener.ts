import type { ApiPorts } from "../api/api-ports.ts";
import { Readiness } from "../api/readiness.ts";
import { createServer } from "../api/server.ts";
import { type ServiceServer, type ServiceServerPorts, serveService } from "../api/service-server.ts";
import type { Config } from "../config.ts";
import { sleep } from "../core/clock.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { PassKit } from "./open-pass-kit.ts";
import type { Shutdown } from "./shutdown.ts";

/** Where this process listens: every role has `/health`, `/ready` and `/metrics`, the role `api` all the rest, too. */
export async function startListener(
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
