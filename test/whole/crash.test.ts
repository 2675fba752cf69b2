import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { expectBalance } from "../support/event-store-checker.ts";
import { createTenants, finishedEvents, type LoadTenant } from "../support/load.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { recordProof } from "../support/proof.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/** `CRASH_EMAILS=20000` is the full-size run. */
const EMAILS = Number(process.env["CRASH_EMAILS"] ?? 1500);
const TENANTS = 50;
const KILLS = 3;
/** Deliveries in flight, and outcomes on their way to the queue, of one process. */
const IN_FLIGHT_MAX = 48 + 256;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let sink: SmtpSink;
let waybill: Waybill;
let tenants: readonly LoadTenant[];

beforeAll(async () => {
  home = await temporaryHome();
  sink = await startSmtpSink();
  waybill = await startWaybill(home.path, { SMTP_URL: sink.url });
  tenants = await createTenants(waybill, TENANTS);
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await sink.stop();
  await home.remove();
}, 90_000);

test("every message answered with 202 is sent and recorded once, however often the server is killed", async () => {
  const accepted = new Map<LoadTenant, string[]>(tenants.map((tenant) => [tenant, []]));
  let count = 0;
  let asked = 0;
  const sendUntilEnough = async (): Promise<void> => {
    while (count < EMAILS) {
      const tenant = tenants[asked++ % tenants.length];
      if (tenant === undefined) return;
      const body = { to_address: `u${asked}@example.com`, subject: "Hello", html: "<p>Hello</p>" };
      try {
        const answer = await waybill.request(tenant.apiKey, "POST", "/v1/send/email", body);
        if (answer.status !== 202) continue;
        accepted.get(tenant)?.push(answer.body.job_id);
        count += 1;
      } catch {
        // The server is being killed: an unanswered request is not accepted.
        await Bun.sleep(20);
      }
    }
  };
  const senders = Array.from({ length: 32 }, sendUntilEnough);
  for (let kill = 1; kill <= KILLS; kill += 1) {
    while (count < (EMAILS * kill) / (KILLS + 1)) await Bun.sleep(5);
    await waybill.kill();
    waybill = await startWaybill(home.path, { SMTP_URL: sink.url });
  }
  await Promise.all(senders);
  const sentMs = performance.now();

  let ended = 0;
  for (const [tenant, jobIds] of accepted) {
    const { byJob, ids } = await finishedEvents(waybill, tenant, jobIds, 120_000);
    expect(new Set(ids).size).toBe(ids.length);
    for (const jobId of jobIds) {
      expect(byJob.get(jobId)).toEqual(["sent"]);
      ended += 1;
    }
    const last = jobIds.at(-1);
    expect((await waybill.request(tenant.apiKey, "GET", `/v1/jobs/${last}`)).body.status).toBe("success");
  }
  expect(ended).toBe(count);
  const recoveryMs = Math.round(performance.now() - sentMs);
  let repeats = 0;
  for (const times of sink.received.values()) repeats += times - 1;
  recordProof({
    fault: `kill -9 of the server, ${KILLS} times under load`,
    accepted: count,
    lost: count - ended,
    sentTwice: repeats,
    sentTwiceAllowed: KILLS * IN_FLIGHT_MAX,
    recoveryMs,
  });
  expect(sink.received.size).toBeGreaterThanOrEqual(count);
  expect(repeats).toBeLessThanOrEqual(KILLS * IN_FLIGHT_MAX);

  // The folder is open in one process at a time.
  await waybill.kill();
  const chdb = await openClickHouse(join(home.path, "clickhouse"));
  const clickhouse = new ClickHouse({ client: chdb.reader, clock: systemClock, timeoutMs: 20_000 });
  try {
    const totals = "SELECT count() FROM waybill.events WHERE event_type = 'sent' AND tenant_id LIKE 'load-%'";
    expect(Number((await clickhouse.rows(totals))[0]?.[0])).toBeGreaterThanOrEqual(count);
    await expectBalance(clickhouse, "waybill");
  } finally {
    await chdb.close();
  }
}, 300_000);
