import { expect, test } from "bun:test";
import { Shutdown } from "../../src/runtime/shutdown.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

test("what is started is also stopped, in its stage", async () => {
  const shutdown = new Shutdown(new QuietTelemetry());
  const order: string[] = [];
  const part = (name: string) => ({
    start: () => void order.push(`${name} starts`),
    stop: async () => void order.push(`${name} stops`),
  });
  shutdown.start("clients", "registry", part("registry"));
  shutdown.start("work", "dispatcher", part("dispatcher"));
  expect(order).toEqual(["registry starts", "dispatcher starts"]);
  await shutdown.run(0);
  expect(order.slice(2)).toEqual(["dispatcher stops", "registry stops"]);
});

test("an insert in progress gets the time that a quick drain leaves over, and a hanging part gets no more than its own", async () => {
  const telemetry = new QuietTelemetry();
  const shutdown = new Shutdown(telemetry);
  const order: string[] = [];
  shutdown.add("work", "dispatcher", () => order.push("drained"));
  // Longer than the history's own share of the ten seconds.
  shutdown.add("history", "recorder", async () => {
    await Bun.sleep(1_500);
    order.push("inserted");
  });
  shutdown.add("clients", "queue", () => new Promise(() => {}));
  shutdown.add("stores", "clickhouse", () => order.push("closed"));
  const startedAtMs = performance.now();
  await shutdown.run(0);
  expect(order).toEqual(["drained", "inserted", "closed"]);
  expect(telemetry.lines).toEqual([
    "debug: stopped",
    "debug: stopped",
    "warn: a part did not stop in time",
    "debug: stopped",
    "debug: stopped",
  ]);
  expect(performance.now() - startedAtMs).toBeLessThan(9_900);
}, 90_000);
