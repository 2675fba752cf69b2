import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { BUFFER_SPANS_MAX, OtlpExporter, OWNER_SPANS_MAX } from "../../src/runtime/telemetry/otlp-exporter.ts";
import { SampledTracer, type Sampler } from "../../src/runtime/telemetry/tracer.ts";
import { Collector } from "../support/collector.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

const SERVICE = { attributes: { "service.name": "waybill" }, version: "1" };
const ALL: Sampler = { followsCaller: true, share: 1 };
const CALLER = "4bf92f3577b34da6a3ce929d0e0e4736";

class CountingTelemetry extends QuietTelemetry {
  readonly counts = new Map<string, number>();
  override count(name = "", labels: Readonly<Record<string, string>> = {}, by = 1): void {
    const key = [name, ...Object.values(labels)].join(" ");
    this.counts.set(key, (this.counts.get(key) ?? 0) + by);
  }
}

let collector: Collector;
let telemetry: CountingTelemetry;
let exporter: OtlpExporter;

beforeEach(() => {
  collector = new Collector();
  telemetry = new CountingTelemetry();
  exporter = exporterTo(collector.url);
});

afterEach(async () => {
  await exporter.stop(0);
  await collector.stop();
});

function exporterTo(url: string): OtlpExporter {
  const headers = { "x-key": "of the collector" };
  return new OtlpExporter({
    url: `${url}/v1/traces`,
    headers,
    service: SERVICE,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
}

function tracer(sampler = ALL): SampledTracer {
  return new SampledTracer({ sampler, clock: systemClock, random: systemRandom, exporter });
}

function spans(count: number, owner: string): void {
  const traces = tracer();
  for (let n = 0; n < count; n += 1) traces.request("GET /x", null)?.end({ owner, attributes: { n } });
}

test("steps of a request arrive as one trace, with what they say of themselves", async () => {
  const traces = tracer();
  const beforeMs = Date.now();
  const request = traces.request("POST /v1/send/email", `00-${CALLER}-00f067aa0ba902b7-01`);
  const step = traces.step("deliver email", "consumer", request?.traceparent ?? "");
  step.end({ owner: "acme", attributes: { "waybill.attempt": 1, ok: true, long: "x".repeat(5_000) }, error: "away" });
  request?.end({ owner: "acme", attributes: { share: 0.5 } });
  await eventually("both are there", () => collector.spans.length === 2);
  const [deliver, post] = collector.spans;
  expect(post).toMatchObject({
    traceId: CALLER,
    parentSpanId: "00f067aa0ba902b7",
    kind: 2,
    attributes: { share: 0.5 },
  });
  expect(post?.resource).toEqual({ "service.name": "waybill" });
  expect(deliver).toMatchObject({ traceId: CALLER, parentSpanId: post?.spanId, kind: 5, name: "deliver email" });
  expect(deliver?.attributes).toEqual({ "waybill.attempt": "1", ok: true, long: "x".repeat(300) });
  expect(deliver?.status).toEqual({ code: 2, message: "away" });
  const [start, end] = [Number(post?.startTimeUnixNano) / 1e6, Number(post?.endTimeUnixNano) / 1e6];
  expect(start).toBeGreaterThan(beforeMs - 50);
  expect(end).toBeGreaterThanOrEqual(start);
  expect(collector.headers[0]?.get("x-key")).toBe("of the collector");
});

test("a malformed traceparent is no error: the trace begins here", async () => {
  for (const header of ["", "rubbish", `00-${CALLER}-0-01`])
    tracer().request("GET /x", header)?.end({ owner: "a", attributes: {} });
  await eventually("all are there", () => collector.spans.length === 3);
  for (const span of collector.spans) {
    expect(span.traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
    expect(span).not.toHaveProperty("parentSpanId");
  }
});

test("the sampler decides, and the caller where the sampler says so", () => {
  const asked = `00-${CALLER}-00f067aa0ba902b7`;
  const none = tracer({ followsCaller: true, share: 0 });
  expect([none.request("x", null), none.request("x", `${asked}-00`)]).toEqual([null, null]);
  expect(none.request("x", `${asked}-01`)).not.toBeNull();
  expect(tracer().request("x", `${asked}-00`)).toBeNull();
  expect(tracer({ followsCaller: false, share: 0 }).request("x", `${asked}-01`)).toBeNull();
  const half = tracer({ followsCaller: false, share: 0.5 });
  const sampled = Array.from({ length: 2_000 }, () => half.request("x", null)).filter((span) => span !== null);
  expect(sampled.length).toBeGreaterThan(800);
  expect(sampled.length).toBeLessThan(1_200);
});

test("a collector that hangs costs a bounded buffer, of which nobody takes more than a share; drops are counted", async () => {
  collector.answer = () => new Promise(() => undefined);
  spans(OWNER_SPANS_MAX + 7, "flood");
  expect(telemetry.counts.get("trace_spans_dropped share")).toBe(7);
  for (const owner of ["a", "b", "c", "d"]) spans(OWNER_SPANS_MAX, owner);
  expect(telemetry.counts.get("trace_spans_dropped full")).toBe(5 * OWNER_SPANS_MAX - BUFFER_SPANS_MAX);
  await eventually("one request hangs", () => collector.requests === 1);
  // A stop does not wait for it.
  await exporter.stop(20);
  expect(collector.requests).toBe(1);
  const stopped = [...telemetry.counts].filter(([name]) => /away|stopped/.test(name));
  expect(stopped.reduce((sum, [, count]) => sum + count, 0)).toBe(BUFFER_SPANS_MAX);
});

test("an absent collector is felt by nobody, and one line in the log tells", async () => {
  exporter = exporterTo(`http://127.0.0.1:${await freePort()}`);
  spans(10, "acme");
  await eventually("it is noticed", () => telemetry.lines.length > 0);
  await exporter.stop(2_000);
  expect(telemetry.lines).toEqual(["warn: traces cannot be exported"]);
  expect(telemetry.counts).toEqual(new Map([["trace_spans_dropped away", 10]]));
  spans(1, "acme");
  expect(telemetry.counts.get("trace_spans_dropped stopped")).toBe(1);
});

test("what a busy collector puts off is sent again, and what it refuses is dropped", async () => {
  const statuses = [503, 200];
  collector.answer = () => statuses.shift() ?? 400;
  spans(3, "acme");
  await eventually("they arrive", () => collector.spans.length === 3);
  await eventually("the exporter knows", () => telemetry.lines.length > 1);
  expect(telemetry.lines).toEqual(["warn: traces cannot be exported", "info: traces are exported again"]);
  spans(2, "acme");
  await eventually("they are refused", () => telemetry.counts.get("trace_spans_dropped refused") === 2);
  expect(collector.requests).toBe(3);
  expect(telemetry.counts.get("trace_spans_exported")).toBe(3);
});
