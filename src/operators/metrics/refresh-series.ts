import type { Clock } from "../../domain/clock.ts";
import { recently } from "../../domain/recently.ts";
import type { SeriesGauges, Telemetry } from "../../domain/telemetry.ts";

interface Measurement {
  /** The gauges that it sets. */
  readonly series: readonly string[];
  /** Logged when it fails. */
  readonly failure: string;
  readonly freshMs: number;
  readonly waitMs: number;
}

interface Ports {
  readonly clock: Clock;
  readonly telemetry: SeriesGauges & Pick<Telemetry, "log">;
}

/**
 * Returns a refresh of gauges that are measured when metrics are read, at most every `freshMs`. It resolves when they are
 * fresh, or after `waitMs`, and never rejects. A failed measurement counts as one: its series are gone, rather than old.
 */
export function refreshSeries(
  measure: () => Promise<void>,
  { series, failure, freshMs, waitMs }: Measurement,
  { clock, telemetry }: Ports,
): () => Promise<unknown> {
  const attempt = async () => {
    try {
      await measure();
    } catch (error) {
      telemetry.log("debug", failure, { error: String(error) });
      for (const name of series) telemetry.series(name, []);
    }
    return true;
  };
  return recently(attempt, { freshMs, waitMs, clock });
}
