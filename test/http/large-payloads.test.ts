import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { QUEUED_PAYLOAD_BYTES_MAX } from "../../src/domain/jobs/payload-store.ts";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { nameOfPayload } from "../../src/http/sending/accept-job.ts";
import { Front } from "./support/front.ts";

let front: Front;
beforeEach(async () => {
  front = await Front.start();
});
afterEach(() => front.stop(), 90_000);

/** A send whose payload is `chars` longer than an empty one's. */
function aSend(chars: number, letter = "x"): object {
  return { to_address: "ada@example.com", template_id: "welcome", data: { text: letter.repeat(chars) } };
}
const LARGE = aSend(QUEUED_PAYLOAD_BYTES_MAX);

async function lengthOfEmpty(): Promise<number> {
  await front.send(aSend(0));
  return front.queue.queued.at(-1)?.job.payload.length ?? 0;
}

describe("a payload that is too large for the queue", () => {
  test("is stored outside it, before its job is queued with a reference to it", async () => {
    const answer = await front.send(LARGE);
    expect(answer.status).toBe(202);
    const [queued] = front.queue.queued;
    expect(queued?.job).toMatchObject({ jobId: answer.body["job_id"], payload: "", recipient: "ada@example.com" });
    const payload = front.payloads.stored.get(`acme ${String(answer.body["job_id"])}`) ?? new Uint8Array();
    expect(queued?.job.stored).toEqual(nameOfPayload(payload));
    expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({ to: "ada@example.com", template: "welcome" });
  });

  test("has more than 256 KiB, counted in bytes", async () => {
    const room = QUEUED_PAYLOAD_BYTES_MAX - (await lengthOfEmpty());
    const isStored = async (body: object) => {
      expect((await front.send(body)).status).toBe(202);
      return front.queue.queued.at(-1)?.job.stored !== undefined;
    };
    expect([await isStored(aSend(room)), await isStored(aSend(room + 1))]).toEqual([false, true]);
    const emoji = Math.floor(room / 4);
    expect([await isStored(aSend(emoji, "😀")), await isStored(aSend(emoji + 1, "😀"))]).toEqual([false, true]);
  });

  test("counts with all its bytes in the tenant's share of the queue", async () => {
    const plan = { name: "narrow", requestsPerMinute: 100, deliveriesPerSecond: null };
    await front.registry.putPlan({ ...plan, ...QUEUE_SHARE, queuedBytesMax: 400_000 });
    await front.registry.changeTenant("acme", { plan: "narrow" });
    expect([(await front.send(LARGE)).status, (await front.send(LARGE)).status]).toEqual([202, 429]);
    expect(front.payloads.puts).toHaveLength(2);
    expect(front.payloads.stored.size).toBe(1);
  });

  test("is removed when its job is not queued: a repeat, or another body under the same key", async () => {
    const headers = { "Idempotency-Key": "k" };
    const first = await front.send(LARGE, headers);
    const again = await front.send(LARGE, headers);
    expect([again.status, again.body["job_id"]]).toEqual([202, first.body["job_id"]]);
    expect((await front.send({ ...LARGE, subject: "other" }, headers)).status).toBe(422);
    expect(front.payloads.puts).toHaveLength(3);
    expect([...front.payloads.stored.keys()]).toEqual([`acme ${String(first.body["job_id"])}`]);
  });

  test("is kept when its job may have been queued, and removed when it was not", async () => {
    // The request is counted by then.
    const accept = front.queue.accept.bind(front.queue);
    for (const [failure, sentence, kept] of [
      [new TransportError("lost"), "it is not known whether the job was queued", 1],
      [new UnavailableError("full"), "the job was not queued", 1],
    ] as const) {
      front.queue.accept = () => Promise.reject(failure);
      const answer = await front.send(LARGE);
      expect([answer.status, String(answer.body["error"]).split(":")[0]]).toEqual([500, sentence]);
      expect(front.payloads.stored.size).toBe(kept);
    }
    front.queue.accept = accept;
    expect((await front.send(LARGE)).status).toBe(202);
  });

  test.each([new UnavailableError("away"), new TransportError("lost")])(
    "that cannot be stored is not queued, whatever the store's error: %s",
    async (failure) => {
      front.payloads.failure = failure;
      const answer = await front.send(LARGE);
      expect([answer.status, String(answer.body["error"]).split(":")[0]]).toEqual([500, "the job was not queued"]);
      expect(front.queue.queued).toHaveLength(0);
      expect((await front.send(aSend(1))).status).toBe(202);
    },
  );

  test("that could not be removed is left to the sweep", async () => {
    await front.send(LARGE, { "Idempotency-Key": "k" });
    const put = front.payloads.put.bind(front.payloads);
    front.payloads.put = async (ref, payload) => {
      await put(ref, payload);
      front.payloads.failure = new UnavailableError("away");
    };
    expect((await front.send(LARGE, { "Idempotency-Key": "k" })).status).toBe(202);
    const [line] = front.logs;
    expect([line?.level, line?.message]).toEqual([
      "warn",
      "the payload of a job that was not queued is left to the sweep",
    ]);
  });
});
