import { afterAll, beforeAll, expect, test } from "bun:test";
import { Collector, type ReceivedSpan } from "../support/collector.ts";
import { eventually } from "../support/eventually.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };

let home: Awaited<ReturnType<typeof temporaryHome>>;
let collector: Collector;
let waybill: Waybill;

beforeAll(async () => {
  home = await temporaryHome();
  collector = new Collector();
  const environment = {
    PROCESSES: "api=1,dispatcher=1",
    LOG_LEVEL: "debug",
    LOG_JOBS: "1",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=of%20ours",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    OTEL_TRACES_SAMPLER: "parentbased_always_off",
  };
  waybill = await startWaybill(home.path, environment);
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await collector.stop();
  await home.remove();
});

async function send(to: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${waybill.url}/v1/send/email`, {
    method: "POST",
    headers: { "x-api-key": waybill.demoKey, "content-type": "application/json", ...headers },
    body: JSON.stringify({ to_address: to, subject: "Hi", html: "<p>Hi</p>" }),
  });
  expect(response.status).toBe(202);
  return ((await response.json()) as { job_id: string }).job_id;
}

const named = (name: string): ReceivedSpan[] => collector.spans.filter((span) => span.name === name);

test("one trace leads from the caller over the queue to each delivery and its settlement, over two processes", async () => {
  const [requests, accepts] = ["POST /v1/send/email", "accept email"];
  await send("ann@example.com", { traceparent: "malformed" });
  const traceparent = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
  const job = await send("dora@defer.test", { traceparent, "x-request-id": "order-17" });
  await eventually("two tries are told", () => named("deliver email").length >= 2, 20_000);
  await eventually("the first is settled", () => named("settle email").length >= 1);
  // Another process exports these.
  await eventually("the request is told", () => [requests, accepts].every((name) => named(name).length > 0));
  // The request without a readable decision of its caller was not sampled.
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([CALLER.traceId]));

  const [request] = named(requests);
  expect(request).toMatchObject({ parentSpanId: CALLER.spanId, kind: 2 });
  expect(request?.attributes).toEqual({
    "http.request.method": "POST",
    "http.response.status_code": "202",
    "http.route": "/v1/send/email",
    "waybill.request_id": "order-17",
    "waybill.tenant_id": "demo",
  });
  const [accept] = named(accepts);
  expect(accept).toMatchObject({ parentSpanId: request?.spanId, kind: 4 });
  expect(accept?.attributes).toMatchObject({ "messaging.message.id": job, "waybill.outcome": "accepted" });

  const deliveries = named("deliver email").slice(0, 2);
  expect(deliveries.map(({ attributes }) => attributes["waybill.attempt"])).toEqual(["1", "2"]);
  for (const { parentSpanId, kind, status, attributes } of deliveries) {
    expect([parentSpanId, kind, status?.code]).toEqual([accept?.spanId, 5, 2]);
    expect(attributes).toMatchObject({ "messaging.destination.name": "email", "waybill.outcome": "retry" });
    expect(attributes["waybill.relay"]).toMatch(/./);
  }
  const [settle] = named("settle email");
  expect(settle).toMatchObject({ parentSpanId: accept?.spanId, attributes: { "waybill.outcome": "retry" } });

  const pids = [request, deliveries[0]].map((span) => span?.resource["process.pid"]);
  expect(new Set(pids).size).toBe(2);
  expect(request?.resource).toMatchObject({ "service.name": "waybill", "deployment.environment.name": "test" });
  expect(collector.headers[0]?.get("x-key")).toBe("of ours");
  expect(JSON.stringify(collector.spans)).not.toMatch(/dora|defer\.test/);
}, 90_000);

test("the log lines of a traced job name its trace", async () => {
  const job = await send("rita@reject.test", { traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01` });
  const readLines = () =>
    waybill
      .log()
      .split("\n")
      .filter((line) => line.includes(job));
  await eventually("its end is logged", () => readLines().some((line) => line.includes("a job failed")));
  const lines = readLines();
  for (const message of ["a job was accepted", "a job failed"]) {
    const line = lines.find((one) => one.includes(`"${message}"`));
    expect(JSON.parse(line ?? "{}")).toMatchObject({ job_id: job, tenant_id: "demo", trace_id: CALLER.traceId });
  }
});

test("what was exported and dropped is in the metrics", async () => {
  const read = async () => (await fetch(`${waybill.url}/metrics`)).text();
  await eventually("spans are counted", async () => /waybill_trace_spans_exported_total [1-9]/.test(await read()));
});
