import { afterEach, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { finalJob } from "../support/waybill.ts";
import { FaultWorld, MAIL, TEST_LIMIT_MS } from "./fault-world.ts";

/** A stop lasts ten seconds at most; the machine takes the rest. */
const STOP_MS_MAX = 15_000;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "a stop does not wait for a relay that takes a minute, and the message's history says that the relay may have it",
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
    expect(await finalJob(second, tenant.apiKey, body.job_id, 30_000)).toMatchObject({ status: "success" });
    const explained = await second.request(tenant.apiKey, "GET", `/v1/jobs/${body.job_id}/explain`);
    expect(explained.body.attempts[0]).toMatchObject({ outcome: "uncertain" });
    expect(relay.repeats).toBe(1);
  },
  TEST_LIMIT_MS,
);
