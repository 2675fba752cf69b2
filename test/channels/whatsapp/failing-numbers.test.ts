import { afterEach, expect, test } from "bun:test";
import { judgeRelay } from "../../../src/engine/dispatch/relay-breaker.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import {
  ACCEPTED,
  type Call,
  CountingTelemetry,
  channelTo,
  chatJob,
  chatTenant,
  graphError,
  startProvider,
} from "./whatsapp-world.ts";

const LIVE = new AbortController().signal;
let running: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of running) await one.stop();
  running = [];
});

function provider(answer: (call: Call) => Response | Promise<Response>) {
  const started = startProvider(answer);
  running.push(started);
  return started;
}

const numbered = (phoneNumberId: string) => chatTenant({}, { phoneNumberId, accessToken: "own" });

test.each([
  ["500 by a gateway", () => new Response("<html>", { status: 500 })],
  ["502 by a gateway", () => new Response("<html>", { status: 502 })],
  ["503", () => Response.json(graphError(131016, 503).body, { status: 503 })],
  ["code 2", () => Response.json(graphError(2, 500).body, { status: 500 })],
])("a number that the provider fails for (%s) pauses alone, and costs no attempt", async (_, answer) => {
  const clock = new VirtualClock();
  const telemetry = new CountingTelemetry();
  const { url, calls } = provider(({ path }) => (path.includes("/777/") ? answer() : Response.json(ACCEPTED)));
  const channel = channelTo(url, { clock, telemetry });
  for (let i = 0; i < 3; i += 1) {
    expect(channel.paceMs(numbered("777"))).toBe(0);
    expect(await channel.deliver(chatJob(), numbered("777"), LIVE)).toMatchObject({
      kind: "retry",
      isUncounted: true,
      isUnsent: true,
      why: expect.stringContaining("WhatsApp is out of order for this phone number"),
    });
    await clock.advance(50);
  }
  expect(channel.paceMs(numbered("777"))).toBeGreaterThan(900);
  expect(channel.paceMs(chatTenant())).toBe(0);
  expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
  expect(channel.paceMs(numbered("777"))).toBeGreaterThan(900);
  expect(calls.length).toBe(4);
  // After the pause one message goes as a probe.
  await clock.advance(1_000);
  const next = async () =>
    channel.paceMs(numbered("777")) > 0 ? null : await channel.deliver(chatJob(), numbered("777"), LIVE);
  expect(await Promise.all([next(), next(), next()])).toMatchObject([{ kind: "retry", isUncounted: true }, null, null]);
  expect(calls.length).toBe(5);
  expect(telemetry.counted).toContain('chat_numbers_paused{"why":"failing"}');
  expect(telemetry.lines.filter((line) => line.includes("fails for a phone number"))).toHaveLength(1);
  expect(channel.findRelay()).toEqual({ key: url, name: new URL(url).host, isOwn: false });
});

test("the API counts as away once several numbers fail, with no answer in between", async () => {
  let works = false;
  const { url } = provider(() => (works ? Response.json(ACCEPTED) : new Response("<html>", { status: 503 })));
  const channel = channelTo(url);
  const deliverFrom = (number: string) => channel.deliver(chatJob(), numbered(number), LIVE);
  expect([await deliverFrom("1"), await deliverFrom("1"), await deliverFrom("2")].map(({ kind }) => kind)).toEqual([
    "retry",
    "retry",
    "retry",
  ]);
  works = true;
  expect(await deliverFrom("3")).toMatchObject({ kind: "delivered" });
  works = false;
  expect([await deliverFrom("2"), await deliverFrom("1"), await deliverFrom("3")].map(({ kind }) => kind)).toEqual([
    "retry",
    "retry",
    "away",
  ]);
});

test("a number whose calls are not answered pauses alone, too, and is no outage of the API", async () => {
  const { url } = provider(() => new Promise<Response>(() => {}));
  const channel = channelTo(url, { timeoutMs: 20 });
  for (let i = 0; i < 3; i += 1) {
    const outcome = await channel.deliver(chatJob(), numbered("777"), LIVE);
    expect(judgeRelay(outcome, false)).toBe("nothing");
  }
  expect(channel.paceMs(numbered("777"))).toBeGreaterThan(0);
  expect(channel.paceMs(numbered("778"))).toBe(0);
});

test.each([
  [
    { error: { code: "131026", message: "Undeliverable", error_data: { details: "No account" } } },
    "error 131026: Undeliverable; No account",
  ],
  [
    { errors: [{ code: 131026, title: "Undeliverable", details: "No account" }] },
    "error 131026: Undeliverable; No account",
  ],
  [{ code: "131026", message: "Undeliverable" }, "error 131026: Undeliverable"],
  [{ error: "Undeliverable" }, "HTTP 400: Undeliverable"],
  [{ error: { code: 131026, error_user_msg: "No account", message: "" } }, "error 131026: No account"],
  [{ errors: [] }, "HTTP 400"],
  [{ errors: "no" }, "HTTP 400: no"],
])("an error in the form of a gateway keeps its code and its words: %j", async (body, said) => {
  const { url } = provider(() => Response.json(body, { status: 400 }));
  expect(await channelTo(url).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({
    kind: "failed",
    error: `WhatsApp refused the message: ${said}`,
  });
});
