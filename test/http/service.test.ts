import { afterEach, describe, expect, test } from "bun:test";
import { PartsAwayError, type ReadinessProbe } from "../../src/domain/jobs/report.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { Readiness, type ReadinessOptions } from "../../src/http/readiness.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { eventually } from "../support/eventually.ts";
import { Front } from "./support/front.ts";

let front: Front;
afterEach(() => front.stop());

function probe(name: string, check: () => Promise<void>): ReadinessProbe {
  return { name, check };
}

const up = probe("redis", async () => {});
const down = probe("clickhouse", async () => {
  throw new Error("connection refused to 10.0.0.7");
});

/** Checks these parts, and stores the log. */
function createReadiness(options: Partial<ReadinessOptions>) {
  const logs: string[] = [];
  const gauges = new Map<string, number>();
  const telemetry: Telemetry = {
    count: () => {},
    gauge: (name, value, labels) => gauges.set(`${name} ${labels?.["part"]}`, value),
    time: () => {},
    log: (level, message, fields) => logs.push(`${level} ${message}: ${String(fields?.["part"])}`),
  };
  const readiness = new Readiness({ needed: [], clock: systemClock, telemetry, ...options });
  return { readiness, logs, gauges };
}

describe("/health", () => {
  test("is ok while the process lives, whichever part is down", async () => {
    front = await Front.start(createReadiness({ needed: [down] }));
    const answer = await front.fetch("/health");
    expect([answer.status, answer.body]).toEqual([200, { status: "ok" }]);
  });
});

const since = expect.stringMatching(/^20\d\d-.*Z$/);

describe("/ready", () => {
  test("is 200 while every part is up", async () => {
    front = await Front.start(createReadiness({ needed: [up] }));
    const answer = await front.fetch("/ready");
    expect([answer.status, answer.body]).toEqual([200, { status: "ready" }]);
  });

  test("is 503 with the names of the parts that are down, and nothing else about them", async () => {
    front = await Front.start(createReadiness({ needed: [up, down] }));
    const answer = await front.fetch("/ready");
    expect([answer.status, answer.body]).toEqual([
      503,
      {
        error: "not ready: clickhouse",
        status: "unavailable",
        failing: ["clickhouse"],
        away: [{ part: "clickhouse", since }],
      },
    ]);
  });

  test("names the part of a part", async () => {
    const redis = probe("redis", async () => {
      throw new PartsAwayError(["redis 10.0.0.7:6379"], "it does not answer");
    });
    front = await Front.start(createReadiness({ needed: [redis, up] }));
    expect((await front.fetch("/ready")).body["failing"]).toEqual(["redis 10.0.0.7:6379"]);
  });

  test("is 200 and names the parts that are away while work can go on without them", async () => {
    const beside = () => [{ part: "relay smtp.example.com:25", sinceMs: Date.UTC(2026, 0, 1) }];
    front = await Front.start(createReadiness({ needed: [up], beside }));
    const answer = await front.fetch("/ready");
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        status: "ready",
        away: [{ part: "relay smtp.example.com:25", since: "2026-01-01T00:00:00.000Z" }],
      },
    ]);
  });

  test("does not wait for a part that never answers, and asks it once for all concurrent callers", async () => {
    let asked = 0;
    const silent = probe("registry", () => {
      asked += 1;
      return new Promise(() => {});
    });
    front = await Front.start(createReadiness({ needed: [silent, up] }));
    const answers = await Promise.all([1, 2, 3].map(() => front.fetch("/ready")));
    expect(answers.map(({ status, body }) => [status, body["failing"]])).toEqual(
      [1, 2, 3].map(() => [503, ["registry"]]),
    );
    expect(asked).toBe(1);
  });

  test("each outage is logged once at its start and once at its end, and sets a gauge", async () => {
    let isUp = true;
    const flaky = probe("registry", async () => {
      if (!isUp) throw new Error("connection refused");
    });
    const { readiness, logs, gauges } = createReadiness({ needed: [flaky] });
    await readiness.look();
    expect([logs, gauges.get("part_up registry")]).toEqual([[], 1]);
    isUp = false;
    await readiness.look();
    const first = await readiness.look();
    expect([logs, gauges.get("part_up registry")]).toEqual([["warn a part is away: registry"], 0]);
    expect((await readiness.look()).away).toEqual(first.away);
    isUp = true;
    await readiness.look();
    expect(logs).toEqual(["warn a part is away: registry", "info a part is back: registry"]);
    expect(gauges.get("part_up registry")).toBe(1);
  });

  test("an outage is noticed without a request", async () => {
    const { readiness, logs } = createReadiness({ needed: [down] });
    readiness.start();
    await eventually("the log says so", () => logs.length === 1);
    await readiness.stop();
  });

  test("says so once the process begins to stop", async () => {
    const draining = new AbortController();
    front = await Front.start({ whenDraining: draining.signal });
    expect((await front.fetch("/ready")).status).toBe(200);
    draining.abort();
    expect((await front.fetch("/ready")).status).toBe(503);
    expect((await front.fetch("/health")).status).toBe(200);
  });

  test("has kept connections ended once the process begins to stop", async () => {
    const draining = new AbortController();
    front = await Front.start({ whenDraining: draining.signal });
    const { hostname, port } = new URL(front.url);
    const answers: string[] = [];
    const closed = Promise.withResolvers<void>();
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: { data: (_, bytes) => void answers.push(bytes.toString()), close: () => closed.resolve() },
    });
    const ask = () => socket.write(`GET /health HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`);
    ask();
    await eventually("it answers", () => answers.length === 1);
    draining.abort();
    ask();
    await closed.promise;
    expect(answers.map((answer) => /^connection: close\r$/im.test(answer))).toEqual([false, true]);
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
      const accept = front.queue.accept.bind(front.queue);
      front.queue.accept = async (...call) => {
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
    await expect(front.fetch("/health")).rejects.toThrow();
    await front.stop();
  });
});

test("an address that is taken is refused", async () => {
  front = await Front.start();
  const other = await Front.start();
  await expect(other.server.listen({ host: "127.0.0.1", port: front.port })).rejects.toThrow();
  await other.stop();
});
