import { describe, expect, test } from "bun:test";
import { type DeviceChange, DeviceWebhooks } from "../../../../src/channels/wallet/devices/device-webhooks.ts";
import { walletLimits } from "../../../../src/channels/wallet/limits.ts";
import { UnavailableError } from "../../../../src/domain/errors.ts";
import { JobIds } from "../../../../src/domain/ids.ts";
import type { TenantDirectory } from "../../../../src/domain/tenants/tenant.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import { eventually } from "../../../support/eventually.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";
import { aTenant, createDirectory } from "../../../support/tenants.ts";

/** A receiver whose calls end when the test says so. */
class Receiver {
  readonly calls: {
    readonly url: string;
    readonly json: string;
    readonly signal: AbortSignal;
    end(why: string | null): void;
  }[] = [];

  post(url: string, json: string, signal: AbortSignal): Promise<string | null> {
    return new Promise((resolve) => {
      this.calls.push({ url, json, signal, end: resolve });
      signal.addEventListener("abort", () => resolve("there was no answer in time"), { once: true });
    });
  }
}

class Counting extends QuietTelemetry {
  readonly results: string[] = [];
  readonly fields: unknown[] = [];
  override count(...args: unknown[]): void {
    this.results.push(JSON.stringify(args[1]));
  }
  override log(level: string, message: string, ...fields: unknown[]): void {
    super.log(level, message);
    this.fields.push(...fields);
  }
}

const TENANTS = ["acme", "globex", "silent"].map((tenantId) => {
  const webhookUrl = tenantId === "silent" ? null : `https://${tenantId}.example/devices`;
  return aTenant({ tenantId, wallet: { apple: null, google: null, templates: new Map(), webhookUrl } });
});

function open(directory: TenantDirectory = createDirectory(TENANTS)) {
  const receiver = new Receiver();
  const telemetry = new Counting();
  const clock = { ...systemClock, nowMs: () => Date.UTC(2026, 10, 21, 7, 30, 5, 999) };
  const jobIds = new JobIds(clock, systemRandom);
  const webhooks = new DeviceWebhooks({ directory, caller: receiver, clock, jobIds, telemetry });
  return { webhooks, receiver, telemetry };
}

const aChange = (changes: Partial<DeviceChange> = {}): DeviceChange => ({
  action: "register",
  tenantId: "acme",
  passId: "pass-1",
  serial: "S-1",
  deviceId: "device-1",
  ...changes,
});
const waitForCalls = (receiver: Receiver, count: number) =>
  eventually(`${count} calls`, () => (receiver.calls.length >= count ? receiver.calls : null));
const soon = () => systemClock.monotonicMs() + 5_000;

describe("telling tenants of devices", () => {
  test("says who, what and when, to the second", async () => {
    const { webhooks, receiver } = open();
    webhooks.note(aChange({ action: "unregister", serial: "Ö/1" }));
    const [call] = await waitForCalls(receiver, 1);
    expect([call?.url, JSON.parse(call?.json ?? "")]).toEqual([
      "https://acme.example/devices",
      {
        action: "unregister",
        pass_id: "pass-1",
        serial_number: "Ö/1",
        device_id: "device-1",
        tenant_id: "acme",
        timestamp: "2026-11-21T07:30:05Z",
      },
    ]);
    call?.end(null);
    await webhooks.stop(soon());
  });

  test.each([["the receiver answered 500"], ["there was no answer in time"]])(
    "is not repeated after a failure, which is logged: %s",
    async (why) => {
      const { webhooks, receiver, telemetry } = open();
      webhooks.note(aChange());
      (await waitForCalls(receiver, 1))[0]?.end(why);
      await webhooks.stop(soon());
      expect(receiver.calls).toHaveLength(1);
      expect(telemetry.lines).toEqual([
        "info: a device webhook is due",
        "warn: a device webhook failed and is not repeated",
      ]);
      expect(telemetry.results).toEqual(['{"result":"failed"}']);
      expect(telemetry.fields.at(-1)).toMatchObject({ tenant_id: "acme", pass_id: "pass-1", error: why });
      // A device's id is enough to ask for its passes.
      expect(JSON.stringify(telemetry.fields)).not.toContain("device-1");
    },
  );

  test("leaves a line when it is due and one when it is told, so that a crash between them shows", async () => {
    const { webhooks, receiver, telemetry } = open();
    webhooks.note(aChange());
    await waitForCalls(receiver, 1);
    expect(telemetry.lines).toEqual(["info: a device webhook is due"]);
    receiver.calls[0]?.end(null);
    await webhooks.stop(soon());
    expect(telemetry.lines[1]).toBe("info: a device webhook was told");
    const ids = telemetry.fields.map((fields) => JSON.stringify(fields).match(/"webhook_id":"[^"]+"/)?.[0]);
    expect(ids[0]).toBeString();
    expect(ids[1]).toBe(ids[0]);
  });

  test("does nothing for an unknown tenant or one without a receiver", async () => {
    const { webhooks, receiver, telemetry } = open();
    webhooks.note(aChange({ tenantId: "silent" }));
    webhooks.note(aChange({ tenantId: "nobody" }));
    await webhooks.stop(soon());
    expect(receiver.calls).toEqual([]);
    expect(telemetry.results).toEqual(['{"result":"no_receiver"}', '{"result":"no_receiver"}']);
  });

  test("is given up if the registry cannot name the receiver", async () => {
    const byId = () => Promise.reject(new UnavailableError("the registry cannot be reached"));
    const { webhooks, telemetry } = open({ byApiKey: () => null, byId });
    webhooks.note(aChange());
    await webhooks.stop(soon());
    expect(telemetry.results).toEqual(['{"result":"failed"}']);
  });

  test("keeps the order of a device and a pass, and waits for nothing else", async () => {
    const { webhooks, receiver } = open();
    webhooks.note(aChange());
    webhooks.note(aChange({ action: "unregister" }));
    webhooks.note(aChange({ deviceId: "device-2" }));
    await waitForCalls(receiver, 2);
    expect(receiver.calls.map(({ json }) => JSON.parse(json).device_id)).toEqual(["device-1", "device-2"]);
    receiver.calls[0]?.end(null);
    const third = (await waitForCalls(receiver, 3))[2];
    expect(JSON.parse(third?.json ?? "")).toMatchObject({ action: "unregister", device_id: "device-1" });
    for (const call of receiver.calls) call.end(null);
    await webhooks.stop(soon());
  });

  test("of one tenant waits for no other tenant's receiver", async () => {
    const { webhooks, receiver } = open();
    for (let at = 0; at < 100; at += 1) webhooks.note(aChange({ deviceId: `hanging-${at}` }));
    webhooks.note(aChange({ tenantId: "globex" }));
    const calls = await waitForCalls(receiver, walletLimits.tenantWebhookCallsMax + 1);
    expect(calls.map(({ url }) => url).filter((url) => url.includes("globex"))).toHaveLength(1);
    expect(calls).toHaveLength(walletLimits.tenantWebhookCallsMax + 1);
    await webhooks.stop(0);
  });

  test("is bounded for a tenant, and what is beyond is counted", async () => {
    const { webhooks, telemetry } = open();
    const total = walletLimits.tenantWebhooksPendingMax + 7;
    for (let at = 0; at < total; at += 1) webhooks.note(aChange({ deviceId: `device-${at}` }));
    expect(telemetry.results.filter((result) => result.includes("dropped"))).toHaveLength(7);
    await webhooks.stop(0);
    expect(telemetry.results.filter((result) => result.includes("dropped"))).toHaveLength(
      total - walletLimits.tenantWebhookCallsMax,
    );
  });

  test("ends a call that takes too long", async () => {
    const { receiver, telemetry } = open();
    const timers: (() => void)[] = [];
    const setTimer = (_: number, run: () => void) => {
      timers.push(run);
      return { cancel: () => undefined };
    };
    const clock = { ...systemClock, setTimer };
    const jobIds = new JobIds(clock, systemRandom);
    const webhooks = new DeviceWebhooks({
      directory: createDirectory(TENANTS),
      caller: receiver,
      clock,
      jobIds,
      telemetry,
    });
    webhooks.note(aChange());
    await waitForCalls(receiver, 1);
    for (const run of timers) run();
    await eventually("it is given up", () => telemetry.results.includes('{"result":"failed"}'));
  });

  test("finishes its calls before the process ends, and gives up hanging ones", async () => {
    const { webhooks, receiver, telemetry } = open();
    for (let at = 0; at < 10; at += 1) webhooks.note(aChange({ deviceId: `device-${at}` }));
    const stopped = webhooks.stop(soon());
    for (let at = 0; at < 10; at += 1) (await waitForCalls(receiver, at + 1))[at]?.end(null);
    await stopped;
    expect(telemetry.results).toEqual(Array.from({ length: 10 }, () => '{"result":"told"}'));
    webhooks.note(aChange());
    expect(telemetry.results.at(-1)).toBe('{"result":"dropped"}');

    const hanging = open();
    for (let at = 0; at < 10; at += 1) hanging.webhooks.note(aChange({ deviceId: `device-${at}` }));
    await waitForCalls(hanging.receiver, walletLimits.tenantWebhookCallsMax);
    await hanging.webhooks.stop(systemClock.monotonicMs());
    expect(hanging.receiver.calls).toHaveLength(walletLimits.tenantWebhookCallsMax);
    expect(hanging.receiver.calls.every(({ signal }) => signal.aborted)).toBe(true);
    expect(hanging.telemetry.results).toHaveLength(10);
  });
});
