import { afterEach, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { FaultWorld, MAIL, TEST_LIMIT_MS } from "./fault-world.ts";

/** A stop lasts ten seconds at most; the rest is the machine's. */
const STOP_MS_MAX = 15_000;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "a stop does not wait for a relay that takes a minute for a message, and the next start does not send it again at once",
  async () => {
    const relay = await world.relay();
    relay.behave({ answerMs: 60_000 });
    const { home, tenants } = await world.seededHome([{ id: "acme" }]);
    const [tenant] = tenants;
    if (tenant === undefined) throw new Error("a tenant");
    const first = await world.start(home, { SMTP_URL: relay.url() });
    const { body } = await first.request(tenant.apiKey, "POST", "/v1/send/email", MAIL);
    await eventually("the relay has the message", () => relay.arrivals.length === 1, 20_000);
    const begunMs = performance.now();
    expect(await first.stop()).toBe(0);
    expect(performance.now() - begunMs).toBeLessThan(STOP_MS_MAX);

    relay.behave({});
    const second = await world.start(home, { SMTP_URL: relay.url() });
    const other = await second.request(tenant.apiKey, "POST", "/v1/send/email", {
      ...MAIL,
      to_address: "bob@example.com",
    });
    await eventually("another message is sent", () => relay.firstTaken.has("bob@example.com"), 20_000);
    expect(other.status).toBe(202);
    const { body: why } = await second.request(tenant.apiKey, "GET", `/v1/jobs/${body.job_id}/explain`);
    expect(why).toMatchObject({ status: "running", waits_for: "retry", attempts: [{ outcome: "uncertain" }] });
    const [{ at, next_attempt_at: next }] = why.attempts;
    expect(Date.parse(next) - Date.parse(at)).toBeGreaterThanOrEqual(600_000);
    expect(relay.repeats).toBe(0);
  },
  TEST_LIMIT_MS,
);
