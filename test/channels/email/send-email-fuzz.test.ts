import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { parseAddress } from "../../../src/domain/channels/email.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import { Front } from "../../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(() => front.stop(), 90_000);

const anything = fc.jsonValue({ maxDepth: 3 });
const body = fc.record(
  {
    to_address: fc.oneof({ weight: 4, arbitrary: fc.constant("ada@example.com") }, fc.emailAddress(), anything),
    to_name: fc.oneof(fc.string({ unit: "binary" }), anything),
    subject: fc.oneof(fc.string({ unit: "binary" }), anything),
    template_id: fc.oneof(
      { weight: 4, arbitrary: fc.constant("welcome") },
      fc.constantFrom("__proto__", "toString"),
      anything,
    ),
    html: fc.oneof(fc.string(), fc.constant("<p>Hello</p>"), anything),
    data: fc.oneof(fc.dictionary(fc.oneof(fc.constant("__proto__"), fc.string()), anything), anything),
  },
  { requiredKeys: ["to_address"] },
);

test("any body is accepted whole or refused with a sentence, and never causes an internal error", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof({ weight: 5, arbitrary: body }, anything), async (sent) => {
      const queued = front.queue.queued.length;
      const answer = await front.send(JSON.stringify(sent));
      expect(answer.status).toBeOneOf([202, 400, 422]);
      if (answer.status !== 202) {
        expect(answer.body["error"]).toBeString();
        expect(front.queue.queued).toHaveLength(queued);
        return;
      }
      const payload: unknown = JSON.parse(front.queue.queued.at(-1)?.job.payload ?? "null");
      const { to_address, data } = Object(sent);
      expect(payload).toMatchObject({ to: parseAddress(to_address) });
      if (data !== undefined && data !== null) expect(JSON.stringify(Object(payload).data)).toBe(JSON.stringify(data));
    }),
    { numRuns: 400 },
  );
});
