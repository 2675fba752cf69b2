import type { Setting } from "./setting.ts";
import { inRange, list, matching, parseChoice, webUrl } from "./values.ts";

const SAMPLERS = [
  "parentbased_always_on",
  "parentbased_traceidratio",
  "parentbased_always_off",
  "always_on",
  "traceidratio",
  "always_off",
] as const;

/** Names and values; a value may be percent-encoded (W3C Baggage). */
function pairs(text: string): Readonly<Record<string, string>> | undefined {
  const found = list(text, (item) => {
    const [, name, value = ""] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256})\s*=\s*([ -~]*)$/.exec(item) ?? [];
    const decoded = decodedText(value);
    return name === undefined || decoded === undefined ? undefined : ([name, decoded] as const);
  });
  return found && Object.fromEntries(found);
}

function decodedText(text: string): string | undefined {
  try {
    return matching(decodeURIComponent(text), /^[ -~]*$/);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** OpenTelemetry's own environment variables that Waybill supports. */
export const TRACING_SETTINGS = {
  tracesUrl: {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    default: null,
    unset: "none: nothing is traced",
    meaning: "collector that takes traces by OTLP over HTTP, at `/v1/traces` below this address (docs/tracing.md)",
    ...webUrl("http://127.0.0.1:4318"),
  },
  tracesHeaders: {
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    default: null,
    secret: true,
    meaning: "headers of each export, such as a collector's key: `name=value`, comma-separated",
    expected: "name=value, or several of them separated by commas",
    parse: pairs,
  },
  tracesService: {
    name: "OTEL_SERVICE_NAME",
    default: "waybill",
    meaning: "name of the service in traces",
    expected: "up to 255 printable ASCII characters",
    parse: (text) => matching(text, /^[ -~]{1,255}$/),
  },
  tracesResource: {
    name: "OTEL_RESOURCE_ATTRIBUTES",
    default: null,
    meaning: "what else traces say of the service, like `deployment.environment.name=production`, comma-separated",
    expected: "name=value, or several of them separated by commas",
    parse: pairs,
  },
  tracesSampler: {
    name: "OTEL_TRACES_SAMPLER",
    default: "parentbased_always_on",
    meaning:
      "which requests are traced: `always_on`, `always_off` or `traceidratio`; with `parentbased_` before it, a caller's " +
      "`traceparent` decides about its own requests",
    expected: SAMPLERS.join(", "),
    parse: (text) => parseChoice(text, SAMPLERS),
  },
  tracesShare: {
    name: "OTEL_TRACES_SAMPLER_ARG",
    default: "1",
    meaning: "share of the requests, 0 to 1, that `traceidratio` traces",
    expected: "a number from 0 to 1",
    parse: (text) => inRange(/^\d(\.\d+)?$/.test(text) ? Number(text) : Number.NaN, 0, 1),
  },
} satisfies Record<string, Setting<unknown>>;
