import { afterEach, describe, expect, test } from "bun:test";
import type { ReadinessProbe } from "../../src/core/report.ts";
import { Front } from "./support/front.ts";

let front: Front;
afterEach(() => front.stop());

function probe(name: string, check: () => Promise<void>): ReadinessProbe {
  return { name, check };
}

const up = probe("journal", async () => {});
const down = probe("ledger", async () => {
  throw new Error("connection refused to 10.0.0.7");
});

describe("/health", () => {
  test("is ok while the process lives, whatever is down", async () => {
    front = await Front.start({ probes: [down] });
    const answer = await front.fetch("/health");
    expect([answer.status, answer.body]).toEqual([200, { status: "ok" }]);
  });
});

describe("/ready", () => {
  test("is 200 while every part is up", async () => {
    front = await Front.start({ probes: [up] });
    const answer = await front.fetch("/ready");
    expect([answer.status, answer.body]).toEqual([200, { status: "ready" }]);
  });

  test("is 503 with the names of the parts that are down, and nothing else about them", async () => {
    front = await Front.start({ probes: [up, down] });
    const answer = await front.fetch("/ready");
    expect([answer.status, answer.body]).toEqual([
      503,
      { error: "not ready: ledger", status: "unavailable", failing: ["ledger"] },
    ]);
  });

  test("does not wait for a part that never answers, and asks it once for all who wait", async () => {
    let asked = 0;
    const silent = probe("registry", () => {
      asked += 1;
      return new Promise(() => {});
    });
    front = await Front.start({ probes: [silent, up] });
    const answers = await Promise.all([1, 2, 3].map(() => front.fetch("/ready")));
    expect(answers.map(({ status, body }) => [status, body["failing"]])).toEqual(
      [1, 2, 3].map(() => [503, ["registry"]]),
    );
    expect(asked).toBe(1);
  });

  test("says so once the process begins to stop", async () => {
    const draining = new AbortController();
    front = await Front.start({ whenDraining: draining.signal });
    expect((await front.fetch("/ready")).status).toBe(200);
    draining.abort();
    expect((await front.fetch("/ready")).status).toBe(503);
    expect((await front.fetch("/health")).status).toBe(200);
  });
});

test("/metrics is Prometheus text", async () => {
  front = await Front.start();
  const answer = await front.fetch("/metrics");
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  expect(answer.text).toContain("waybill_up 1");
});

describe("stopping", () => {
  test("answers what is in flight, takes nothing new, and is safe to repeat", async () => {
    front = await Front.start();
    let release: () => void = () => {};
    const arrived = new Promise<void>((resolve) => {
      const accept = front.journal.accept.bind(front.journal);
      front.journal.accept = async (...call) => {
        resolve();
        await new Promise<void>((open) => {
          release = open;
        });
        return accept(...call);
      };
    });
    const sending = front.send({ to_address: "ada@example.com", template_id: "welcome" });
    await arrived;
    const stopping = Promise.all([front.stop(), front.stop()]);
    release();
    expect((await sending).status).toBe(202);
    await stopping;
    expect(front.fetch("/health")).rejects.toThrow();
    await front.stop();
  });
});

test("an address that is taken is refused", async () => {
  front = await Front.start();
  const other = await Front.start();
  expect(other.server.listen({ host: "127.0.0.1", port: front.port })).rejects.toThrow();
  await other.stop();
});
