import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { Front } from "./support/front.ts";
import { RawConnection } from "./support/raw-connection.ts";

const MIB = 1024 * 1024;
const SEND = { to_address: "ada@example.com", template_id: "welcome" };
const LIMITED = { error: "too many requests: wait for the seconds that Retry-After names" };

let clock: ManualClock;
let front: Front;
let connections: RawConnection[];

beforeEach(async () => {
  clock = new ManualClock();
  connections = [];
  front = await Front.start({ clock });
  await setPlan(1);
  await front.registry.changeTenant("acme", { plan: "small" });
});
afterEach(async () => {
  for (const connection of connections) connection.close();
  await front.stop();
}, 90_000);

async function setPlan(requestsPerMinute: number, share: Partial<typeof QUEUE_SHARE> = {}): Promise<void> {
  const plan = { name: "small", requestsPerMinute, deliveriesPerSecond: null, ...QUEUE_SHARE, ...share };
  await front.registry.putPlan(plan);
}

const read = () => front.request("GET", "/v1/jobs/x");

/** A send of which only the head is on its way. */
async function sendHead(framing: string): Promise<RawConnection> {
  const connection = await RawConnection.open(front.port);
  connections.push(connection);
  const lines = ["POST /v1/send/email HTTP/1.1", "Host: api", `X-API-Key: ${front.apiKey}`];
  await connection.write(`${[...lines, "Content-Type: application/json", framing].join("\r\n")}\r\n\r\n`);
  return connection;
}

describe("a tenant over its limit", () => {
  test("is refused before its body arrives, and the connection goes on", async () => {
    expect([(await read()).status, (await read()).status]).toEqual([404, 429]);
    const asked = front.queue.asked;
    const connection = await sendHead(`Content-Length: ${8 * MIB}`);
    const answer = await connection.answer();
    expect([answer.status, JSON.parse(answer.body)]).toEqual([429, LIMITED]);
    expect(Number(answer.headers.get("retry-after"))).toBeWithin(16, 18);
    expect(answer.headers.get("ratelimit-limit")).toBe("1");
    expect(answer.headers.get("ratelimit-remaining")).toBe("0");
    expect(answer.headers.get("ratelimit-reset")).toBe(answer.headers.get("retry-after") ?? "none");
    expect(front.queue.asked).toBe(asked);
    for (let n = 0; n < 8; n++) await connection.write(new Uint8Array(MIB));
    await connection.write("GET /health HTTP/1.1\r\nHost: api\r\n\r\n");
    expect((await connection.answer()).status).toBe(200);
  });

  test.each(["Content-Length: 1000000", "Transfer-Encoding: chunked"])(
    "is refused before a large body arrives, even if this process has not seen the limit reached: %s",
    async (framing) => {
      expect((await read()).status).toBe(404);
      expect((await (await sendHead(framing)).answer()).status).toBe(429);
    },
  );

  test("is checked again after the seconds of Retry-After, and then let in", async () => {
    await read();
    const retryAfter = async () => Number((await read()).headers.get("retry-after"));
    expect(await retryAfter()).toBeWithin(15, 18);
    clock.forward(5_500);
    expect(await retryAfter()).toBeWithin(9, 13);
    front.queue.emptyWindows();
    // It goes on asking, and the refused calls do not count.
    for (let n = 0; n < 5; n++) expect((await front.send(SEND)).status).toBe(429);
    clock.forward(11_500);
    expect((await front.send(SEND)).status).toBe(202);
  });

  test("is let in as soon as its plan allows more", async () => {
    await read();
    expect((await read()).status).toBe(429);
    await setPlan(50);
    expect((await read()).status).toBe(404);
  });

  test("is told so whatever else is wrong with the request, unless the key is wrong", async () => {
    await front.registry.changeTenant("acme", { channels: ["wallet"] });
    await read();
    await read();
    expect((await front.send("{")).body).toEqual(LIMITED);
    expect((await front.sendChat("{", { "Content-Type": "text/plain" })).body).toEqual(LIMITED);
    expect((await front.post("/v1/send/wallet", {})).body).toEqual(LIMITED);
    expect((await front.send(SEND, { "X-API-Key": "wrong" })).status).toBe(401);
  });

  test("keeps no other tenant out", async () => {
    const other = await front.addTenant("globex", "small");
    await read();
    await read();
    expect((await front.request("GET", "/v1/jobs/x", { "X-API-Key": other })).status).toBe(404);
  });

  test("counts a request with a large body once", async () => {
    await setPlan(10);
    const html = `<p>${"x".repeat(100_000)}</p>`;
    const answer = await front.send({ to_address: "ada@example.com", subject: "Hi", html });
    expect([answer.status, answer.headers.get("ratelimit-remaining")]).toEqual([202, "9"]);
    expect((await front.send(`"${"x".repeat(100_000)}"`)).headers.get("ratelimit-remaining")).toBe("8");
    expect(front.queue.counted).toBe(2);
  });
});

describe("a tenant whose share of the queue is used up", () => {
  test("in jobs is told so without a call to the queue each time, and may go on reading", async () => {
    await setPlan(100, { queuedJobsMax: 2 });
    expect([(await front.send(SEND)).status, (await front.send(SEND)).status]).toEqual([202, 202]);
    const full = await front.send(SEND);
    const sentence = "your share of the queue is used up: it holds as many unfinished jobs as it may";
    expect([full.status, full.body]).toEqual([429, { error: sentence }]);
    expect([full.headers.get("retry-after"), full.headers.get("ratelimit-remaining")]).toEqual(["5", "97"]);
    const asked = front.queue.asked;
    const connection = await sendHead(`Content-Length: ${8 * MIB}`);
    const again = await connection.answer();
    expect([again.status, JSON.parse(again.body)]).toEqual([429, { error: sentence }]);
    expect(again.headers.get("ratelimit-limit")).toBe("100");
    expect(front.queue.asked).toBe(asked);
    expect((await read()).status).toBe(404);
  });

  test("in bytes is told so, and is checked again after a second", async () => {
    await setPlan(100, { queuedBytesMax: 150 });
    expect((await front.send(SEND)).status).toBe(202);
    const big = { ...SEND, data: { name: "x".repeat(100) } };
    const full = await front.send(big);
    const sentence = "your share of the queue is used up: it holds as many bytes of unfinished jobs as it may";
    expect([full.status, full.body]).toEqual([429, { error: sentence }]);
    front.queue.endJobs("acme");
    expect((await front.send(SEND)).status).toBe(429);
    clock.forward(1_000);
    expect((await front.send(SEND)).status).toBe(202);
  });

  test("in keys is told so, and sends without a key meanwhile", async () => {
    await setPlan(100);
    const under = (key: string) => ({ "Idempotency-Key": key });
    expect((await front.send(SEND, under("before"))).status).toBe(202);
    front.queue.hasKeysFull = true;
    const sentence =
      "your Idempotency-Keys of the last 24 hours take up your share of the memory: try again later, or without a key";
    for (const full of [
      await front.send(SEND, under("another")),
      await front.post("/v1/send/email/batch", { messages: [SEND, SEND] }, under("batch")),
    ]) {
      expect([full.status, full.body, full.headers.get("retry-after")]).toEqual([429, { error: sentence }, "60"]);
    }
    const again = await front.send(SEND, under("before"));
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([202, "true"]);
    expect((await front.send(SEND)).status).toBe(202);
  });

  test("through one channel is refused on the others", async () => {
    await setPlan(100, { queuedJobsMax: 1 });
    const chat = { phone_number: "5491122334455", template_id: "hello" };
    expect([(await front.sendChat(chat)).status, (await front.send(SEND)).status]).toEqual([202, 429]);
    expect((await front.post("/v1/passes/create", {})).status).toBe(429);
    expect(front.queue.queued.map(({ job }) => job.quota)).toEqual([{ jobs: 1, bytes: QUEUE_SHARE.queuedBytesMax }]);
  });
});
