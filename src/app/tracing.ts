import type { Config } from "../config/config.ts";
import type { Tracer } from "../domain/tracing.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { OtlpExporter } from "../runtime/telemetry/otlp-exporter.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { SampledTracer, type Sampler } from "../runtime/telemetry/tracer.ts";

interface TracingOptions {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
  readonly version: string;
}

/** How long a stop waits for the last traces, within the time of its stage. */
const LAST_TRACES_MS = 300;

/** The member `tracer` of whoever traces; none where no collector is configured. */
export function startTracing(
  { config, telemetry, version }: TracingOptions,
  shutdown: Shutdown,
): { readonly tracer?: Tracer } {
  const { tracesUrl } = config;
  if (tracesUrl === null) return {};
  const exporter = openExporter(config, telemetry, { url: `${tracesUrl}/v1/traces`, version });
  // Among the last parts, so that what others do while they stop is still told.
  shutdown.add("stores", "traces", () => exporter.stop(LAST_TRACES_MS));
  const sampler = createSampler(config);
  return { tracer: new SampledTracer({ sampler, clock: systemClock, random: systemRandom, exporter }) };
}

function openExporter(
  { tracesHeaders, tracesService, tracesResource }: Config,
  telemetry: ProcessTelemetry,
  { url, version }: { readonly url: string; readonly version: string },
): OtlpExporter {
  const attributes = { "service.version": version, ...tracesResource, "service.name": tracesService };
  const service = { attributes: { ...attributes, "process.pid": String(process.pid) }, version };
  return new OtlpExporter({
    url,
    headers: tracesHeaders ?? {},
    service,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
}

function createSampler({ tracesSampler, tracesShare }: Config): Sampler {
  const shares = { on: 1, off: 0, ratio: tracesShare };
  const kind = tracesSampler.endsWith("_on") ? "on" : tracesSampler.endsWith("_off") ? "off" : "ratio";
  return { followsCaller: tracesSampler.startsWith("parentbased_"), share: shares[kind] };
}
