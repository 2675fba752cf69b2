import type { MetricsReaders } from "./metrics-gate.ts";
import type { Readiness } from "./readiness.ts";

/** What machines may ask about this process. */
export interface ServiceAnswerPorts {
  readonly readiness: Pick<Readiness, "look">;
  /** The Prometheus text exposition of this process. */
  metricsText(): Promise<string>;
  /** Who may read that; programs of this machine where nothing is said. */
  readonly metricsReaders?: MetricsReaders;
  /** Aborts when the process begins to stop: `/ready` then says so, and load balancers look elsewhere. */
  readonly whenDraining?: AbortSignal;
}
