import { eventTimeMs } from "../../src/core/event.ts";
import { jobTimeMs } from "../../src/core/ids.ts";
import { eventually } from "../../test/support/eventually.ts";
import { createTenants, readAllEvents } from "../../test/support/load.ts";
import { startWaybill, temporaryHome } from "../../test/support/waybill.ts";
import { SEND_BODY } from "./bench-world.ts";
import { drive, type LoadResult } from "./driver.ts";
import { type LatencySummary, summarise } from "./latency.ts";

const TENANTS = 50;

export interface WholePathResult {
  readonly offeredPerSecond: number;
  readonly accept: LoadResult;
  /** From the request's arrival to the mail server's acceptance, on disk. */
  readonly sentMs: LatencySummary;
  readonly jobs: number;
  /** Seconds from the last request to the last event in the ledger. */
  readonly settledSeconds: number;
}

/**
 * The embedded default as `npm start` runs it, sandbox mail server included, at a fixed rate: HTTP, journal, actors,
 * SMTP over a loopback socket, delivery report, ledger. Every job is then looked up in the ledger.
 */
export async function wholePath(seconds: number, rate: number): Promise<WholePathResult> {
  const home = await temporaryHome();
  const server = await startWaybill(home.path);
  try {
    const tenants = await createTenants(server, TENANTS);
    const { hostname, port } = new URL(server.url);
    const accept = await drive({
      host: hostname,
      port: Number(port),
      path: "/v1/send/email",
      body: SEND_BODY,
      apiKeys: tenants.map((tenant) => tenant.apiKey),
      connections: 64,
      seconds,
      rate,
      warmUpSeconds: 1,
    });
    const endedMs = performance.now();
    const latencies: number[] = [];
    for (const tenant of tenants) {
      const waits = await eventually(
        "every job is delivered in the ledger",
        async () => {
          const { byJob, sentIds } = await readAllEvents(server, tenant);
          const isWhole = byJob.size > 0 && [...byJob.values()].every((types) => types.length === 2);
          return isWhole ? [...sentIds].map(([jobId, eventId]) => eventTimeMs(eventId) - jobTimeMs(jobId)) : null;
        },
        60_000,
      );
      latencies.push(...waits);
    }
    const settledSeconds = (performance.now() - endedMs) / 1000;
    return { offeredPerSecond: rate, accept, sentMs: summarise(latencies), jobs: latencies.length, settledSeconds };
  } finally {
    await server.kill();
    await home.remove();
  }
}
