import { afterEach, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { Undo } from "../support/undo.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const undo = new Undo();

afterEach(() => undo.run());

async function start(environment: Record<string, string>): Promise<Waybill> {
  const home = undo.add(await temporaryHome(), (made) => made.remove());
  return undo.add(await startWaybill(home.path, environment), (server) => server.kill());
}

async function fetchStatus(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
}

async function readToken({ home }: Waybill): Promise<Record<string, string>> {
  return { authorization: `Bearer ${(await readFile(join(home, "operator-token"), "utf8")).trim()}` };
}

/** Spellings that a server might take for an operator's address. */
const OPERATORS = [
  "/dash",
  "/dash/",
  "/dash/api",
  "/dash/api/tenants",
  "/dash/api/nothing",
  "/metrics",
  "//dash/api/tenants",
  "/v1/../dash/api/tenants",
  "/%64ash/api/tenants",
  "/dash%2fapi/tenants",
];

describe.each([["one process", "1"] as const, ["several processes", "api=2,dispatcher=1"] as const])(
  "over %s",
  (_, processes) => {
    test("the private listener alone has what operators and monitoring use", async () => {
      const port = String(await freePort());
      const waybill = await start({ PROCESSES: processes, ADMIN_PORT: port });
      const admin = `http://127.0.0.1:${port}`;
      expect(waybill.screen).toContain(`${admin}/dash`);
      const token = await readToken(waybill);
      for (const path of OPERATORS) {
        expect([path, await fetchStatus(waybill.url + path, token)]).toEqual([path, 404]);
        expect([path, await fetchStatus(waybill.url + path)]).toEqual([path, 404]);
      }
      for (const path of ["/health", "/ready", "/openapi.json"]) {
        expect([path, await fetchStatus(waybill.url + path)]).toEqual([path, 200]);
      }
      for (const path of ["/health", "/ready", "/dash", "/metrics"]) {
        expect([path, await fetchStatus(admin + path)]).toEqual([path, 200]);
      }
      expect(await fetchStatus(`${admin}/dash/api/tenants`, token)).toBe(200);
      expect(await fetchStatus(`${admin}/dash/api/tenants`)).toBe(401);
      expect(await fetchStatus(`${admin}/dash/api/nothing`)).toBe(401);
      for (const path of ["/v1/jobs/x", "/openapi.json", "/t/o/x", "/webhook/whatsapp"]) {
        expect([path, await fetchStatus(admin + path)]).toEqual([path, 404]);
      }
    });
  },
);

test("the private listener asks for the metrics token, and leaves METRICS_PORT as it was", async () => {
  const [adminPort, metricsPort] = [String(await freePort()), String(await freePort())];
  const { url } = await start({
    ADMIN_PORT: adminPort,
    METRICS_PORT: metricsPort,
    METRICS_TOKEN: "token-of-the-metrics",
  });
  const token = { authorization: "Bearer token-of-the-metrics" };
  for (const port of [adminPort, metricsPort]) {
    const metrics = `http://127.0.0.1:${port}/metrics`;
    expect([await fetchStatus(metrics), await fetchStatus(metrics, token)]).toEqual([401, 200]);
  }
  expect(await fetchStatus(`${url}/metrics`, token)).toBe(404);
});

test("a process without the role api has metrics at the private listener, too", async () => {
  const port = String(await freePort());
  const { url } = await start({ ROLES: "dispatcher,recorder", ADMIN_PORT: port });
  const admin = `http://127.0.0.1:${port}`;
  const asked = [`${url}/metrics`, `${admin}/metrics`, `${url}/ready`, `${admin}/ready`, `${admin}/dash`];
  expect(await Promise.all(asked.map((address) => fetchStatus(address)))).toEqual([404, 200, 200, 200, 404]);
});
