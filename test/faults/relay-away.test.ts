import { afterEach, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { recordProof } from "../support/proof.ts";
import { FaultWorld, readSize, sendMany, waitForEnds } from "./fault-world.ts";

const MAILS = readSize("RELAY_AWAY_MAILS", 40);
/** With `RELAY_AWAY_MS=1500000` the outage is as long as the one that cost every mail of forty. */
const AWAY_MS = readSize("RELAY_AWAY_MS", 8_000);
/** A relay that is away is tried at least every thirty seconds. */
const BACK_MS_MAX = 40_000;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "mail waits while the relay is away and costs no attempt, and everybody can see why",
  async () => {
    const relay = await world.relay();
    const { home, tenants } = await world.seededHome([{ id: "acme" }]);
    const waybill = await world.start(home, { SMTP_URL: relay.url() });
    const [tenant] = tenants;
    if (tenant === undefined) throw new Error("a tenant");
    await relay.closePort();
    const awayFromMs = performance.now();
    const mail = (index: number) => ({
      tenant,
      body: { to_address: `u${index}@example.com`, subject: "Hello", html: "<p>Hello</p>" },
    });
    const jobs = await sendMany(waybill, MAILS, mail);
    const isNoticed = async () => /relay_open\{[^}]*\} 1/.test(await fetchMetrics(waybill.url));
    const hasMetric = await eventually("the metric shows the relay", isNoticed, AWAY_MS).catch(() => false);
    await Bun.sleep(Math.max(0, AWAY_MS - (performance.now() - awayFromMs)));
    const ready = JSON.stringify(await (await fetch(`${waybill.url}/ready`)).json());
    const retries = retriesIn(await fetchMetrics(waybill.url));
    const lines = waybill.log().split("\n");
    const notices = lines.filter((line) => /\baway\b/.test(line) && line.includes(String(relay.port)));
    const endedEarly = await waitForEnds(waybill, jobs, 1);

    await relay.openPort();
    const backAtMs = performance.now();
    const ends = await waitForEnds(waybill, jobs, BACK_MS_MAX);
    const recoveryMs = Math.round(performance.now() - backAtMs);
    const delivered = [...ends.values()].filter((status) => status === "success").length;
    recordProof({
      fault: `the relay is away for ${AWAY_MS / 1000} s, ${MAILS} mails wait`,
      accepted: jobs.length,
      lost: jobs.length - delivered,
      sentTwice: relay.repeats,
      sentTwiceAllowed: 0,
      recoveryMs,
      note: `${retries} attempts spent; ${notices.length} log lines; ready says ${ready}`,
    });
    expect(delivered).toBe(MAILS);
    expect(relay.repeats).toBe(0);
    expect(endedEarly.size).toBe(0);
    expect(retries).toBe(0);
    expect(hasMetric).toBe(true);
    expect(ready).toMatch(/relay|mail server/);
    expect(notices).toHaveLength(1);
  },
  240_000 + AWAY_MS,
);

async function fetchMetrics(url: string): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}

/** Deliveries that ended as another try of the same message. */
function retriesIn(metrics: string): number {
  const lines = metrics.split("\n").filter((line) => /deliveries\w*\{[^}]*outcome="retry"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
