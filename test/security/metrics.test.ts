import { afterEach, expect, test } from "bun:test";
import { hostname, networkInterfaces } from "node:os";
import { JobIds } from "../../src/domain/ids.ts";
import { ApiError } from "../../src/http/api-error.ts";
import { Exchange } from "../../src/http/exchange.ts";
import { MetricsGate, type MetricsReaders } from "../../src/http/metrics-gate.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { Metrics } from "../../src/runtime/telemetry/metrics.ts";
import { freePort } from "../support/free-port.ts";
import { Undo } from "../support/undo.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/** An address of this machine that is not loopback, as another machine would use it; null: it has none. */
const OUTSIDE =
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? null;
const TOKEN = "metrics-token-of-the-test";

const undo = new Undo();

afterEach(() => undo.run());

async function start(environment: Record<string, string>): Promise<Waybill> {
  const home = undo.add(await temporaryHome(), (made) => made.remove());
  return undo.add(await startWaybill(home.path, environment), (server) => server.kill());
}

async function ask(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/metrics`, { headers });
  const body = await response.text();
  return { status: response.status, hasMetrics: body.includes("waybill_"), headers: response.headers };
}

const at = (url: string, host: string) => `http://${host}:${new URL(url).port}`;
const atPort = (port: string) => `http://127.0.0.1:${port}`;

test.skipIf(OUTSIDE === null)(
  "at a public address metrics are for programs of this machine, and for no proxy",
  async () => {
    const { url } = await start({ HOST: "0.0.0.0" });
    expect(await ask(at(url, "127.0.0.1"))).toMatchObject({ status: 200, hasMetrics: true });
    expect(await ask(at(url, OUTSIDE ?? ""))).toMatchObject({ status: 403, hasMetrics: false });
    for (const header of ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"]) {
      const proxied = await ask(at(url, "127.0.0.1"), { [header]: "127.0.0.1" });
      expect([header, proxied]).toEqual([header, expect.objectContaining({ status: 403, hasMetrics: false })]);
    }
    const { status } = await fetch(`${at(url, OUTSIDE ?? "")}/metrics`, { method: "HEAD" });
    expect(status).toBe(403);
  },
);

/** The headers of a page whose name now resolves to this machine, and those of other pages. */
const OF_PAGES: readonly Record<string, string>[] = [
  { host: "rebound.example.com" },
  { host: "rebound.example.com:3000" },
  { host: "127.0.0.1.example.com" },
  { host: "localhost.example.com:3000" },
  { host: "192.0.2.1:3000" },
  { host: "localhost@example.com" },
  { host: "[::1" },
  { origin: "https://example.com" },
  { origin: "null" },
  { "sec-fetch-site": "cross-site" },
  { "sec-fetch-site": "same-site" },
  { host: "rebound.example.com", "x-forwarded-for": "127.0.0.1" },
];

test("on loopback no web page reads metrics without a token, under whatever name it reaches this machine", async () => {
  const metricsPort = String(await freePort());
  const adminPort = String(await freePort());
  await start({ METRICS_PORT: metricsPort, ADMIN_PORT: adminPort });
  const { url } = await start({});
  for (const address of [url, atPort(metricsPort), atPort(adminPort)]) {
    for (const headers of OF_PAGES) {
      expect([headers, await ask(address, headers)]).toMatchObject([headers, { status: 403, hasMetrics: false }]);
      expect((await fetch(`${address}/metrics`, { method: "HEAD", headers })).status).toBe(403);
    }
    for (const host of ["localhost", "127.0.0.1:9", "[::1]:3000", "LOCALHOST:3000", `${hostname()}:3000`]) {
      expect([host, await ask(address, { host })]).toMatchObject([host, { status: 200, hasMetrics: true }]);
    }
  }
});

test("whoever reaches the metrics' own address reads them under any name, and no web page that says that it is one", () => {
  const requestStatus = (readers: MetricsReaders, headers: Record<string, string>): number => {
    const exchange = new Exchange(
      new Request("http://waybill/metrics", { headers }),
      new JobIds(systemClock, systemRandom),
    );
    try {
      new MetricsGate(readers).require(exchange, () => "192.0.2.7");
      return 200;
    } catch (error) {
      return error instanceof ApiError ? error.status : 500;
    }
  };
  const names = ["10.0.0.5:9464", "api-1:9464", "waybill-api.waybill.svc.cluster.local:9464", "waybill.example.com"];
  for (const host of names) expect(requestStatus({ kind: "everybody" }, { host })).toBe(200);
  expect(requestStatus({ kind: "everybody" }, { host: "10.0.0.5:9464", origin: "https://example.com" })).toBe(403);
  const token = { authorization: `Bearer ${TOKEN}`, host: "waybill.example.com", origin: "https://example.com" };
  expect(requestStatus({ kind: "token", token: TOKEN }, token)).toBe(200);
});

test("with a token, metrics are for its holders alone", async () => {
  const { url } = await start({ METRICS_TOKEN: TOKEN });
  for (const authorization of [null, "Bearer wrong", `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, TOKEN]) {
    const answer = await ask(url, authorization === null ? {} : { authorization });
    expect([authorization, answer.status, answer.hasMetrics]).toEqual([authorization, 401, false]);
    expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="waybill metrics"');
  }
  const right = await ask(url, { authorization: `Bearer ${TOKEN}`, "x-forwarded-for": "192.0.2.1" });
  expect(right).toMatchObject({ status: 200, hasMetrics: true });
});

test("with an address of their own, metrics are served only there", async () => {
  const port = String(await freePort());
  const waybill = await start({ METRICS_HOST: "127.0.0.1", METRICS_PORT: port });
  const own = `http://127.0.0.1:${port}`;
  expect(waybill.screen).toContain(`${own}/metrics`);
  expect(await ask(own)).toMatchObject({ status: 200, hasMetrics: true });
  expect(await ask(waybill.url)).toMatchObject({ status: 404, hasMetrics: false });
  for (const path of ["/v1/jobs/x", "/dash", "/dash/api/tenants"]) {
    expect([path, (await fetch(own + path)).status]).toEqual([path, 404]);
  }
});

test("whatever labels come in, a metric has a thousand series at most", async () => {
  const metrics = new Metrics();
  for (let at = 0; at < 5_000; at += 1) {
    metrics.count("things", { name: `thing ${at}` }, 1);
    metrics.gauge("sizes", at, { name: `thing ${at}` });
    metrics.time("seconds", 1, { name: `thing ${at}` });
  }
  metrics.count("things", { name: "thing 0" }, 1);
  const lines = (await metrics.text()).split("\n");
  const series = (name: string) => lines.filter((line) => line.startsWith(`waybill_${name}{`));
  expect(series("things_total").length).toBe(1_001);
  expect(series("things_total")).toContain('waybill_things_total{name="thing 0"} 2');
  expect(series("things_total")).toContain('waybill_things_total{name="other"} 4000');
  expect(series("sizes").length).toBe(1_000);
  expect(series("seconds_count").length).toBe(1_001);
});
