import { afterEach, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { recordProof } from "../support/proof.ts";
import type { RedisServer } from "../support/redis.ts";
import { FaultWorld, mebibytes, readSize, sendMany, TEST_LIMIT_MS, untilOwned, waitForEnds } from "./fault-world.ts";

/** A day of a tenant with a bad list, at the speed of this machine: `REFUSED_MAILS=140000` is 8.6 GB of payloads. */
const MAILS = readSize("REFUSED_MAILS", 400);
const MAIL_BYTES = 60_000;
/** A finished job is kept for a quarter of an hour, in some hundred bytes. */
const BYTES_PER_JOB_MAX = 4_096;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "mail that is refused leaves nothing of its content in Redis",
  async () => {
    const redis = await world.redis();
    const relay = await world.relay({ verdict: "554 5.7.1 Message rejected due to policy" });
    const { home, tenants } = await world.seededHome([{ id: "acme" }]);
    const waybill = await world.start(home, { REDIS_URL: redis.url, SMTP_URL: relay.url(), SPAM_FILTER: "off" });
    await untilOwned(redis);
    const [tenant] = tenants;
    if (tenant === undefined) throw new Error("a tenant");
    const html = `<p>${"Hello ".repeat(MAIL_BYTES / 6)}</p>`;
    const refuse = async (count: number) => {
      const body = { to_address: "ann@example.com", subject: "Hello", html };
      const jobs = await sendMany(waybill, count, () => ({ tenant, body }));
      const ends = await waitForEnds(waybill, jobs, 30_000);
      expect([jobs.length, [...ends.values()].filter((status) => status === "failed").length]).toEqual([count, count]);
    };
    await refuse(50);
    const beforeBytes = await usedBytes(redis);
    await refuse(MAILS);
    let grownBytes = 0;
    // The outbox keeps the data for another try until the event store has it.
    await eventually(
      "the contents have left",
      async () => {
        grownBytes = (await usedBytes(redis)) - beforeBytes;
        return grownBytes / MAILS < BYTES_PER_JOB_MAX;
      },
      90_000,
    );
    recordProof({
      fault: `${MAILS} mails of ${Math.round(MAIL_BYTES / 1000)} KB that are refused`,
      accepted: MAILS,
      lost: 0,
      note: `Redis grew by ${mebibytes(grownBytes)} MiB, ${Math.round(grownBytes / MAILS)} bytes a mail`,
    });
    expect(relay.refused).toBeGreaterThanOrEqual(MAILS);
  },
  TEST_LIMIT_MS,
);

async function usedBytes(redis: RedisServer): Promise<number> {
  // The allocator returns freed memory in the background.
  await redis.client.call("MEMORY", "PURGE");
  return Number(/used_memory:(\d+)/.exec(await redis.client.info("memory"))?.[1]);
}
