import { afterEach, expect, test } from "bun:test";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { recently } from "../support/recent-days.ts";
import { Undo } from "../support/undo.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const undo = new Undo();

afterEach(() => undo.run());

async function start(home: string, environment: Record<string, string>): Promise<Waybill> {
  return undo.add(await startWaybill(home, environment), (server) => server.kill());
}

async function newHome(): Promise<string> {
  return undo.add(await temporaryHome(), (home) => home.remove()).path;
}

const EMAIL = { to_address: "ann@example.com", subject: "Hi", html: "<p>Hi</p>" };
const ENDLESS = "SELECT max(cityHash64(number)) FROM numbers(1000000000000)";

test("an analyst's tool reads jobs' outcomes while endless statements keep running, and a stop is clean", async () => {
  const home = await newHome();
  const port = String(await freePort());
  const waybill = await start(home, { CLICKHOUSE_HTTP_PORT: port });
  const clickhouse = `http://127.0.0.1:${port}`;
  expect(waybill.screen).toContain(clickhouse);
  const file = join(home, "clickhouse-http-password");
  expect(waybill.screen).toContain(`in ${file}`);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const headers = { "X-ClickHouse-Key": (await readFile(file, "utf8")).trim() };
  const ask = (body: string) => fetch(clickhouse, { method: "POST", body, headers });
  expect((await fetch(clickhouse, { method: "POST", body: "SELECT 1" })).status).toBe(403);

  const gone = new AbortController();
  const endless = Array.from({ length: 3 }, () =>
    fetch(clickhouse, { method: "POST", body: ENDLESS, headers, signal: gone.signal }).catch(() => null),
  );
  const sent = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", EMAIL);
  await finalJob(waybill, waybill.demoKey, sent.body.job_id);
  await eventually("the API shows the event in the event store", async () => {
    const { body } = await waybill.request(waybill.demoKey, "GET", `/v1/events?${recently()}`);
    return body.events?.length > 0;
  });
  gone.abort();
  await Promise.all(endless);
  // A batch's events are stored before its jobs.
  await eventually("the job is in the event store", async () => {
    const seen = await ask(`SELECT tenant_id, status FROM jobs_v WHERE job_id = '${sent.body.job_id}'`);
    return (await seen.text()) === "demo\tsuccess\n";
  });
  expect((await ask("TRUNCATE TABLE events")).status).toBe(403);

  const cut = ask(ENDLESS).then(
    ({ status }) => status,
    () => "cut off",
  );
  expect(await waybill.stop()).toBe(0);
  expect(await cut).not.toBe(200);
}, 300_000);

test("without the setting nothing is served, and one start with it changes nothing for the next without", async () => {
  const home = await newHome();
  const port = String(await freePort());
  const open = await start(home, { CLICKHOUSE_HTTP_PORT: port });
  expect(await open.stop()).toBe(0);
  const closed = await start(home, {});
  expect(closed.screen).not.toContain("ClickHouse");
  await expect(fetch(`http://127.0.0.1:${port}/ping`)).rejects.toThrow();
  const sent = await closed.request(open.demoKey, "POST", "/v1/send/email", EMAIL);
  expect((await finalJob(closed, open.demoKey, sent.body.job_id)).status).toBe("success");
  expect(await closed.stop()).toBe(0);
}, 300_000);
