import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { WalletFront } from "../../http/support/wallet-front.ts";
import { must } from "../../support/must.ts";

const SLOW_MS = 60_000;
let world: WalletFront;
beforeAll(async () => {
  world = await WalletFront.start();
}, SLOW_MS);
afterAll(() => world?.stop(), SLOW_MS);

let serials = 0;
function apple() {
  serials += 1;
  return {
    pass_type: "apple",
    pass_data: { serial_number: `s-${serials}`, organization_name: "Acme", description: "A pass" },
  };
}
const create = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  world.front.post("/v1/passes/create", body, headers);

describe("an Idempotency-Key", () => {
  test(
    "repeats the first answer, even for twenty concurrent requests, and pays for one pass",
    async () => {
      const before = await world.balance();
      const body = apple();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => create(body, { "Idempotency-Key": "twenty" })),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 202));
      expect(new Set(answers.map((answer) => answer.body["job_id"])).size).toBe(1);
      expect(answers.filter(({ headers }) => headers.has("idempotency-replayed"))).toHaveLength(19);
      expect(await world.balance()).toBe(before - 1);
    },
    SLOW_MS,
  );

  test("repeats the answer of an equal request that has its pass but no job yet", async () => {
    const { queue } = world.front;
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    const accept = queue.accept.bind(queue);
    queue.accept = async (...call) => {
      queue.accept = accept;
      first.resolve();
      await second.promise;
      return accept(...call);
    };
    const job = queue.job.bind(queue);
    queue.job = async (...call) => {
      const known = await job(...call);
      second.resolve();
      return known;
    };
    try {
      const body = apple();
      const one = create(body, { "Idempotency-Key": "not queued yet" });
      await first.promise;
      const other = await create(body, { "Idempotency-Key": "not queued yet" });
      expect([other.status, other.body]).toEqual([202, (await one).body]);
      expect(other.headers.get("idempotency-replayed")).toBe("true");
    } finally {
      queue.job = job;
    }
  });

  test.each<[string, Readonly<Record<string, string>>]>([
    ["another key", { "Idempotency-Key": "first of the serial" }],
    ["no key", {}],
  ])("of its own does not help a serial that was used under %s, and is refused at once", async (_key, headers) => {
    const body = apple();
    expect((await create(body, headers)).status).toBe(202);
    const before = await world.balance();
    const again = await create(body, { "Idempotency-Key": `again ${serials}` });
    expect([again.status, again.body["error"]]).toEqual([400, expect.stringContaining("serial_number was used")]);
    expect(await world.balance()).toBe(before);
  });

  test("with another body is 422, and takes nothing", async () => {
    await create(apple(), { "Idempotency-Key": "reused" });
    const before = await world.balance();
    expect((await create(apple(), { "Idempotency-Key": "reused" })).status).toBe(422);
    expect(await world.balance()).toBe(before);
  });

  test("with another body is 422 before the serial that it has in common and the token that is missing", async () => {
    await must(world.registry.registry.createTenant({ id: "reuser", name: "reuser", plan: "pro", tokens: 1 }));
    const { api_key } = await must(world.registry.registry.createKey("reuser"));
    const headers = { "X-API-Key": api_key, "Idempotency-Key": "reused" };
    const first = apple();
    expect((await create(first, headers)).status).toBe(202);
    const other = { ...first, pass_data: { ...first.pass_data, description: "Another" } };
    expect((await create(other, headers)).status).toBe(422);
    expect((await create({ ...other, pass_type: "none" }, headers)).status).toBe(400);
  });
});
