import { afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type PassSigner, PassSigners } from "../../../src/channels/wallet/apple/pass-signers.ts";
import { ApnsConnections } from "../../../src/channels/wallet/apple/push/apns-connections.ts";
import { PassPusher } from "../../../src/channels/wallet/apple/push/pass-pusher.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import type { PushTarget } from "../../../src/channels/wallet/passes.ts";
import { startApnsSandbox } from "../../../src/channels/wallet/sandbox/apns-sandbox.ts";
import type { Clock } from "../../../src/domain/clock.ts";
import type { Identity } from "../../../src/runtime/certificates/certificate-authority.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";
import { patientClock } from "../../support/patient-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { AppleAuthority, PASS_TYPE } from "./apple-authority.ts";
import { answers, PushServer, takes } from "./push-server.ts";
import { usable } from "./usable.ts";

setDefaultTimeout(90_000);

/** A second of it passes in ten milliseconds: waits of minutes take a moment, over real sockets. */
const HURRIED: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => systemClock.monotonicMs() * 100,
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs / 100, run),
};

/** Its time has stopped: no call ends because of a deadline. */
const STOPPED: Clock = { ...systemClock, setTimer: () => ({ cancel: () => {} }) };

/** Counts the timers that are set: with no timer and no call in flight, the test is at rest. */
class CountedTimers implements Clock {
  waiting = 0;
  readonly nowMs = () => this.clock.nowMs();
  readonly monotonicMs = () => this.clock.monotonicMs();

  constructor(private readonly clock: Clock) {}

  setTimer(delayMs: number, run: () => void) {
    this.waiting += 1;
    let isSet = true;
    const end = () => {
      if (isSet) this.waiting -= 1;
      isSet = false;
    };
    const timer = this.clock.setTimer(delayMs, () => {
      end();
      run();
    });
    return {
      cancel: () => {
        end();
        timer.cancel();
      },
    };
  }
}

class CountedTries extends QuietTelemetry {
  tries = 0;
  foreign = 0;
  override count(name = "", labels: Readonly<Record<string, string>> = {}): void {
    if (name !== "apple_pushes") return;
    this.tries += 1;
    if (labels["outcome"] === "foreign") this.foreign += 1;
  }
}

let apple: AppleAuthority;
let identity: Identity;
let signer: PassSigner;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  apple = await AppleAuthority.make();
  identity = await apple.server();
  const signers = new PassSigners({ telemetry: new QuietTelemetry(), nowMs: Date.now });
  signer = usable(await signers.open(await apple.signer(), "acme"));
});

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const OF_OTHER = "of-globex";
const never = () => new AbortController().signal;

interface Told {
  readonly push: (signal?: AbortSignal) => Promise<void>;
  /** Pushes for a pass of another tenant, which has devices of its own. */
  readonly pushOther: () => Promise<void>;
  readonly forgotten: string[];
  readonly telemetry: CountedTries;
  readonly timers: CountedTimers;
}

function pusherTo(url: string, tokens: readonly string[], clock: Clock = patientClock): Told {
  const forgotten: string[] = [];
  const telemetry = new CountedTries();
  const timers = new CountedTimers(clock);
  const devices = {
    targets: async (passId: string): Promise<readonly PushTarget[]> =>
      (passId === "pass-1" ? tokens : [OF_OTHER]).map((pushToken) => ({ deviceId: `device-${pushToken}`, pushToken })),
    forget: async (passTypeId: string, pushToken: string, goneAtMs: number | null) => {
      expect(passTypeId).toBe(PASS_TYPE);
      forgotten.push(goneAtMs === null ? pushToken : `${pushToken} at ${goneAtMs}`);
    },
  };
  // Waits between connections are hurried like those between tries. Deadlines are not: a busy machine would miss them.
  const waits: Clock = { ...clock, setTimer: (delayMs, run) => systemClock.setTimer(delayMs, run) };
  const connections = new ApnsConnections({
    url,
    ca: apple.root.certificatePem,
    verifies: true,
    clock: waits,
    random: systemRandom,
  });
  const pusher = new PassPusher({ connections, devices, clock: timers, random: systemRandom, telemetry });
  ends.push(() => pusher.stop());
  return {
    push: (signal = never()) => pusher.push({ passId: "pass-1", tenantId: "acme" }, signer, signal),
    pushOther: () => pusher.push({ passId: "pass-2", tenantId: "globex" }, signer, never()),
    forgotten,
    telemetry,
    timers,
  };
}

async function serve(script = takes, port = 0): Promise<{ server: PushServer; url: string }> {
  const server = new PushServer(identity, script);
  ends.push(() => server.stop());
  return { server, url: await server.listen(port) };
}

const createTokens = (count: number) => Array.from({ length: count }, (_, i) => `token${i}`);

test("a push carries what Apple asks for, and the pass's own certificate", async () => {
  const sandbox = await startApnsSandbox({ server: identity, clock: systemClock, telemetry: new QuietTelemetry() });
  ends.push(() => sandbox.stop());
  await pusherTo(sandbox.url, ["0a1b2c"]).push();
  const [message] = sandbox.inbox.messages("0a1b2c", 10);
  expect(message).toMatchObject({ channel: "wallet", from: PASS_TYPE, to: "0a1b2c" });
  const [headers, payload] = message?.source.split("\n\n") ?? [];
  expect(payload).toBe("{}");
  expect(headers).toContain(":method: POST\n:path: /3/device/0a1b2c\n");
  expect(headers).toContain(`apns-topic: ${PASS_TYPE}\napns-push-type: background\napns-priority: 5\n`);
});

test("the sandbox takes nothing without a certificate, and nothing for another pass type", async () => {
  const sandbox = await startApnsSandbox({ server: identity, clock: systemClock, telemetry: new QuietTelemetry() });
  ends.push(() => sandbox.stop());
  const ca = apple.root.certificatePem;
  const connections = new ApnsConnections({
    url: sandbox.url,
    ca,
    verifies: true,
    clock: systemClock,
    random: systemRandom,
  });
  ends.push(() => connections.close());
  const other = { ...signer, id: "other", passTypeId: "pass.test.other" };
  const refused = { kind: "answered", status: 400, reason: "TopicDisallowed", goneAtMs: null } as const;
  expect(await connections.post(other, "abc")).toEqual(refused);
  const none = new ApnsConnections({ url: sandbox.url, ca, verifies: true, clock: systemClock, random: systemRandom });
  ends.push(() => none.close());
  // Without it there is no connection; with an empty one TLS has no certificate to present.
  const anonymous = { id: "none", passTypeId: PASS_TYPE, tls: {} as PassSigner["tls"] };
  expect((await none.post(anonymous, "abc")).kind).toBe("unanswered");
  expect(sandbox.inbox.messages(null, 10)).toEqual([]);
});

test("thousands of devices are told over one connection, each once", async () => {
  const { server, url } = await serve();
  const tokens = createTokens(3_000);
  const { push } = pusherTo(url, [...tokens, ...tokens]);
  await push();
  expect(server.tokens.toSorted()).toEqual(tokens.toSorted());
  await push();
  expect(server.tokens).toHaveLength(6_000);
  expect(server.sessions).toBe(1);
});

test("devices are forgotten when Apple says that they are gone, and for no other reason", async () => {
  const replies: Record<string, [number, string, number?]> = {
    gone: [410, "Unregistered", 1_700_000_000_123],
    unsaid: [410, "ExpiredToken"],
    bad: [400, "BadDeviceToken"],
    foreign: [400, "DeviceTokenNotForTopic"],
    ours: [400, "BadTopic"],
    proxy: [410, "Gone"],
    path: [404, "BadPath"],
    large: [413, "PayloadTooLarge"],
  };
  const { server, url } = await serve((stream, token, nth) =>
    answers(...(replies[token] ?? [200, ""]))(stream, token, nth),
  );
  const { push, forgotten } = pusherTo(url, [...Object.keys(replies), "fine"]);
  await push();
  expect(forgotten.toSorted()).toEqual(["bad", "foreign", "gone at 1700000000123", "unsaid"]);
  // Refusals by Apple are not retried.
  expect(server.tokens).toHaveLength(9);
});

test("tokens of other push services are never shown to Apple, and counted", async () => {
  const { server, url } = await serve();
  const { push, forgotten, telemetry } = pusherTo(url, ["a", "cA47ZTE:APA91bHx", "APA91bHvUNfe", "b"]);
  await push();
  expect(server.tokens.toSorted()).toEqual(["a", "b"]);
  expect(telemetry.foreign).toBe(2);
  expect(forgotten).toEqual([]);
});

test("a push that Apple cannot take at the moment is retried a few times, after the update has ended", async () => {
  const { server, url } = await serve((stream, token, nth) =>
    token === "never" || nth < 3 ? answers(503, "ServiceUnavailable")(stream, token, nth) : takes(stream, token, nth),
  );
  const { push, forgotten, telemetry, timers } = pusherTo(url, ["a", "b", "never"], HURRIED);
  await push();
  await eventually("every try is answered", () => telemetry.tries === 8);
  expect(timers.waiting).toBe(0);
  for (const [token, tries] of Object.entries({ a: 2, b: 2, never: 4 })) {
    expect(server.tokens.filter((one) => one === token)).toHaveLength(tries);
  }
  expect(forgotten).toEqual([]);
});

test("a push that waits for its retry also stands for the next one", async () => {
  const { server, url } = await serve(answers(429, "TooManyRequests"));
  const { push } = pusherTo(url, ["a"]);
  await push();
  server.does(takes);
  await push();
  expect(server.tokens).toEqual(["a", "a"]);
});

test("a certificate that Apple refuses pauses for a while, and no device is forgotten", async () => {
  const { server, url } = await serve(answers(403, "BadCertificate"));
  const { push, forgotten, telemetry } = pusherTo(url, createTokens(2_000));
  await push();
  const tried = server.tokens.length;
  // Only the pushes that were in flight when the first answer came.
  expect(tried).toBeLessThan(500);
  await push();
  expect(server.tokens).toHaveLength(tried);
  expect(forgotten).toEqual([]);
  expect(telemetry.lines).toEqual(["error: Apple takes no pushes with this certificate; they pause"]);
});

test("a server that goes away in the middle of it loses no push", async () => {
  const { server, url } = await serve((stream, token, nth) => {
    takes(stream, token, nth);
    if (nth % 50 === 20) stream.session?.close();
  });
  const { push } = pusherTo(url, createTokens(300), HURRIED);
  await push();
  await eventually("every device was told", () => new Set(server.tokens).size === 300);
  expect(server.sessions).toBeGreaterThan(1);
});

test("a connection that breaks in the middle of it loses no push", async () => {
  const told = new Set<string>();
  const { server, url } = await serve((stream, token, nth) => {
    if (nth === 40) return stream.session?.destroy();
    told.add(token);
    takes(stream, token, nth);
  });
  const { push } = pusherTo(url, createTokens(100), HURRIED);
  await push();
  await eventually("every device was told", () => told.size === 100);
  expect(server.sessions).toBeGreaterThan(1);
});

test("refused streams are retried", async () => {
  const { server, url } = await serve((stream, token, nth) =>
    // REFUSED_STREAM (RFC 9113, 7)
    nth < 5 ? stream.close(7) : takes(stream, token, nth),
  );
  await pusherTo(url, createTokens(10), HURRIED).push();
  await eventually("every device was told", () => new Set(server.tokens.slice(5)).size === 10);
});

test("a server that never answers delays an update by no more than the first round", async () => {
  const { server, url } = await serve(() => undefined);
  const { push } = pusherTo(url, createTokens(1_000), HURRIED);
  const startedMs = HURRIED.monotonicMs();
  await push();
  // A second of the hurried clock, on a machine that may be busy.
  expect(HURRIED.monotonicMs() - startedMs).toBeLessThan(200_000);
  expect(server.tokens.length).toBeLessThan(1_000);
});

test("a tenant whose pushes all hang leaves room for another's, in flight and waiting", async () => {
  const { server, url } = await serve((stream, token, nth) => {
    if (token === OF_OTHER) takes(stream, token, nth);
  });
  const { apnsPendingMax, apnsRequests } = walletLimits;
  const { push, pushOther, telemetry } = pusherTo(url, createTokens(apnsPendingMax + 1_000), STOPPED);
  void push();
  await eventually("its share is in flight", () => server.tokens.length === apnsRequests.each);
  // It has its share while in flight or pending; the rest was dropped at once.
  expect(telemetry.tries).toBe(apnsPendingMax / 2 + 1_000 - apnsRequests.each);
  await pushOther();
  expect(server.tokens.slice(apnsRequests.each)).toEqual([OF_OTHER]);
});

test("an aborted delivery waits for no push", async () => {
  const { server, url } = await serve(() => undefined);
  const aborter = new AbortController();
  const { push, telemetry } = pusherTo(url, ["a"], STOPPED);
  const pushed = push(aborter.signal);
  await eventually("the push is in flight", () => server.tokens.length === 1);
  aborter.abort();
  await pushed;
  expect(telemetry.tries).toBe(0);
});

test("a push service that is down does not fail an update, and gets the pushes when it is back", async () => {
  const port = await freePort();
  const { push, telemetry } = pusherTo(`https://127.0.0.1:${port}`, ["a", "b"], HURRIED);
  await push();
  const { server } = await serve(takes, port);
  await eventually("both were told", () => new Set(server.tokens).size === 2);
  expect(telemetry.lines).toEqual([]);
});

test("a server with an untrusted certificate gets no push", async () => {
  const stranger = await AppleAuthority.make();
  const server = new PushServer(await stranger.server(), takes);
  ends.push(() => server.stop());
  await pusherTo(await server.listen(), ["a"]).push();
  expect(server.tokens).toEqual([]);
});

test("after the stop nothing is sent", async () => {
  const { server, url } = await serve(answers(503, "ServiceUnavailable"));
  const { push, timers } = pusherTo(url, ["a"]);
  await push();
  for (const end of ends.splice(1)) end();
  await push();
  expect(timers.waiting).toBe(0);
  expect(server.tokens).toEqual(["a"]);
});
