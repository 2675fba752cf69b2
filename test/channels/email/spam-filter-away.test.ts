import { afterAll, beforeEach, expect, test } from "bun:test";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { RspamdFilter } from "../../../src/channels/email/spam/rspamd-filter.ts";
import type { ScoredMessage } from "../../../src/channels/email/spam/spam.ts";
import { SpamScreen } from "../../../src/channels/email/spam/spam-screen.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";

/** Null: it does not answer. */
let status: number | null = 200;
let asked = 0;
const hanging: ServerResponse[] = [];
const server = createServer((request, response) => {
  asked += 1;
  request.resume();
  if (status === null) hanging.push(response);
  else request.on("end", () => response.writeHead(status ?? 500).end('{"score":1,"symbols":{}}'));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
// A server that listens on TCP has an address of this form.
const { port } = server.address() as AddressInfo;
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

class Telemetry extends QuietTelemetry {
  up: number | null = null;
  override gauge(name?: string, value = 0): void {
    if (name === "spam_filter_up") this.up = value;
  }
}

const TIMEOUT_MS = 1_500;
const NEVER = new AbortController().signal;
const MESSAGE: ScoredMessage = {
  subject: "Hi",
  html: "<p>Hi</p>",
  text: null,
  from: "orders@shop.test",
  to: "ann@good.test",
  raw: async () => new TextEncoder().encode("Subject: Hi\r\n\r\nHi\r\n"),
};
const WAITS = { kind: "retry", why: "the spam filter does not answer", isUncounted: true, isUnsent: true } as const;

let telemetry: Telemetry;
let screen: SpamScreen;
beforeEach(() => {
  status = 200;
  asked = 0;
  telemetry = new Telemetry();
  const filter = new RspamdFilter(`http://127.0.0.1:${port}`, { timeoutMs: TIMEOUT_MS });
  screen = new SpamScreen({ filter, threshold: 5, clock: systemClock, random: systemRandom, telemetry });
});

const check = (signal = NEVER) => screen.check(MESSAGE, signal);

test("a dead filter is reported once when it goes and once when it is back, and mail waits meanwhile", async () => {
  expect(screen.health()).toEqual({ up: true, sinceMs: null });
  expect(await check()).toBeNull();
  expect([telemetry.up, screen.health().up]).toEqual([1, true]);
  status = 500;
  for (let i = 0; i < 10; i += 1) expect(await check()).toEqual(WAITS);
  expect([telemetry.up, screen.health().up]).toEqual([0, false]);
  expect(screen.health().sinceMs).toBeGreaterThan(Date.now() - 60_000);
  expect(telemetry.lines).toEqual(["error: the spam filter does not answer: mail that it has to score waits"]);
  status = 200;
  await eventually("it is found to be back", async () => (await check()) === null);
  expect([telemetry.up, screen.health().up]).toEqual([1, true]);
  expect(telemetry.lines.slice(1)).toEqual(["info: the spam filter answers again"]);
});

test("while it hangs, one message at a time waits for it, and no other is delayed", async () => {
  status = null;
  await Promise.all(Array.from({ length: 5 }, () => check()));
  expect(screen.health().up).toBe(false);
  const before = asked;
  const probes: Promise<unknown>[] = [];
  await eventually("one looks whether it is back", () => {
    probes.push(check());
    return asked > before;
  });
  const startMs = performance.now();
  const others = await Promise.all(Array.from({ length: 1_000 }, () => check()));
  expect(performance.now() - startMs).toBeLessThan(TIMEOUT_MS);
  expect(others.every((outcome) => outcome?.kind === "retry")).toBe(true);
  expect(new Set((await Promise.all(probes)).map((outcome) => JSON.stringify(outcome))).size).toBe(1);
  expect(asked - before).toBe(1);
});

test("a message that it fails on, or that is cancelled, is no outage", async () => {
  for (let i = 0; i < 5; i += 1) {
    status = 500;
    expect(await check()).toEqual(WAITS);
    status = 200;
    expect(await check()).toBeNull();
  }
  for (let i = 0; i < 5; i += 1) expect(await check(AbortSignal.abort())).toEqual(WAITS);
  expect(telemetry.lines).toEqual([]);
  expect(screen.health().up).toBe(true);
});
