import type { Elysia } from "elysia";
import type { Clock } from "../core/clock.ts";
import { sleep } from "../core/clock.ts";
import type { ReadinessProbe } from "../core/report.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";

/** `GET /health`, `GET /ready`, `GET /metrics`: what machines ask about this process. */
export function serviceRoutes(app: Elysia, door: FrontDoor): void {
  const { probes, clock, whenDraining } = door.ports;
  const readiness = new Readiness(probes, clock);
  const health = (exchange: Exchange) => exchange.json(200, { status: "ok" });
  const ready = async (exchange: Exchange) => {
    const failing = whenDraining?.aborted ? ["stopping"] : await readiness.failing();
    if (failing.length === 0) return exchange.json(200, { status: "ready" });
    return exchange.json(503, { error: `not ready: ${failing.join(", ")}`, status: "unavailable", failing });
  };
  const metrics = async (exchange: Exchange) =>
    exchange.body(200, await door.ports.metricsText(), { "content-type": METRICS_TYPE, "cache-control": "no-store" });
  app.get("/health", ({ request }) => door.serve("health", request, health));
  app.get("/ready", ({ request }) => door.serve("ready", request, ready));
  app.get("/metrics", ({ request }) => door.serve("metrics", request, metrics));
}

/** Prometheus text exposition format 0.0.4. */
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const PROBE_TIMEOUT_MS = 2_000;

/** Asks the probes, once at a time however many ask for it: a stranger's requests must not load a dependency. */
class Readiness {
  private asking: Promise<string[]> | null = null;

  constructor(
    private readonly probes: readonly ReadinessProbe[],
    private readonly clock: Clock,
  ) {}

  /** Names of the dependencies that are down or do not answer in time. */
  failing(): Promise<string[]> {
    this.asking ??= this.ask().finally(() => {
      this.asking = null;
    });
    return this.asking;
  }

  private async ask(): Promise<string[]> {
    const answers = await Promise.all(this.probes.map(async (probe) => ((await this.isUp(probe)) ? [] : [probe.name])));
    return answers.flat();
  }

  private async isUp(probe: ReadinessProbe): Promise<boolean> {
    const answered = new AbortController();
    const deadline = sleep(this.clock, PROBE_TIMEOUT_MS, answered.signal).then(() => false);
    const up = (async () => probe.check())().then(
      () => true,
      () => false,
    );
    const isUp = await Promise.race([up, deadline]);
    answered.abort();
    return isUp;
  }
}
