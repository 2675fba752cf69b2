import type { MetricsReaders } from "./metrics-gate.ts";
import type { Readiness } from "./readiness.ts";

/** What monitoring may ask about this process. */
export interface ServiceAnswerPorts {
  readonly readiness: Pick<Readiness, "look">;
  /** The Prometheus text exposition of this process. */
  metricsText(): Promise<string>;
  /** Who may read the metrics; programs on this machine if absent. */
  readonly metricsReaders?: MetricsReaders;
  /** Aborts when the process begins to stop: `/ready` then fails and load balancers turn elsewhere. */
  readonly whenDraining?: AbortSignal;
}
