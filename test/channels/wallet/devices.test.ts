import { afterAll, beforeAll, expect, test } from "bun:test";
import { unzipSync } from "fflate";
import { AppleBundles } from "../../../src/channels/wallet/apple/apple-bundles.ts";
import { PassSigners } from "../../../src/channels/wallet/apple/pass-signers.ts";
import { ApnsConnections } from "../../../src/channels/wallet/apple/push/apns-connections.ts";
import { PassPusher } from "../../../src/channels/wallet/apple/push/pass-pusher.ts";
import { DeviceLog } from "../../../src/channels/wallet/devices/device-log.ts";
import { type ApnsSandbox, startApnsSandbox } from "../../../src/channels/wallet/sandbox/apns-sandbox.ts";
import { WalletChannel } from "../../../src/channels/wallet/wallet-channel.ts";
import type { AppleContent, AppleSigner } from "../../../src/domain/channels/wallet.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { Front, NO_PASSES } from "../../http/support/front.ts";
import { eventually } from "../../support/eventually.ts";
import { type AMadePass, PASS_TYPE, PassWorld } from "../../support/pass-world.ts";
import { patientClock } from "../../support/patient-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant } from "../../support/tenants.ts";
import { WalletDevice } from "../../support/wallet-device.ts";
import { AppleAuthority } from "./apple-authority.ts";
import { usable } from "./usable.ts";

/** The full run: WAYBILL_DEVICES=1000. */
const DEVICES = Number(process.env["WAYBILL_DEVICES"] ?? 60);
const PASSES = 5;
const UPDATES = 20;

let world: PassWorld;
let front: Front;
let apns: ApnsSandbox;
let channel: WalletChannel;
let apple: AppleSigner;
let bundles: AppleBundles;
const telemetry = new QuietTelemetry();
const log = new DeviceLog({ clock: systemClock, telemetry, keptMax: 1_000 });
const byToken = new Map<string, WalletDevice>();
let jobs = 0;

beforeAll(async () => {
  const authority = await AppleAuthority.make();
  apple = await authority.signer({ passTypeId: PASS_TYPE });
  world = await PassWorld.open();
  const { passes, devices } = world.registry;
  front = await Front.start({ passKit: { ...NO_PASSES, passes, devices, webhooks: { note: () => undefined }, log } });
  apns = await startApnsSandbox({
    server: await authority.server(),
    clock: systemClock,
    telemetry,
    onPush: ({ topic, pushToken }) => byToken.get(pushToken)?.push(topic),
  });
  const nowMs = () => Date.now();
  const platform = { whatsapp: null, apple: null, google: null };
  const signers = new PassSigners({ telemetry, nowMs });
  bundles = new AppleBundles({ passes, signers, platform, publicUrl: front.url, telemetry, nowMs });
  const clock = systemClock;
  const connections = new ApnsConnections({
    url: apns.url,
    ca: authority.root.certificatePem,
    verifies: true,
    clock,
    random: systemRandom,
  });
  const pusher = new PassPusher({ connections, devices, clock: patientClock, random: systemRandom, telemetry });
  const google = { deliver: () => Promise.reject(new Error("no pass here is Google's")) };
  channel = new WalletChannel({ passes, bundles, pusher, google, telemetry });
}, 300_000);

afterAll(async () => {
  channel?.close();
  await apns?.stop();
  await front?.stop();
  await world?.stop();
}, 90_000);

const tenant = () => aTenant({ wallet: { apple, google: null, templates: new Map(), webhookUrl: null } });

/** One field of a pass, on its way to the holder. */
async function update(pass: AMadePass, value: string): Promise<void> {
  const jobId = `update-${(jobs += 1)}`;
  const content: AppleContent = { type: "apple", style: "generic", pass: { logoText: value }, images: {} };
  const updated = await world.registry.passes.update("acme", {
    passId: pass.passId,
    jobId,
    notificationKind: null,
    notifyMessage: null,
    images: new Map(),
    change: () => content,
  });
  const { version } = usable(updated);
  const payload = JSON.stringify({ action: "update", passId: pass.passId, version });
  const job: QueuedJob = {
    jobId,
    tenantId: "acme",
    channel: "wallet",
    entryId: "0-1",
    attempts: 0,
    recipient: "",
    suppressed: null,
    payload,
  };
  const deliver = () => channel.deliver(job, tenant(), new AbortController().signal);
  let outcome = await deliver();
  // A read may be late behind a hundred transactions. The engine retries, too.
  while (outcome.kind === "retry") outcome = await deliver();
  expect(outcome.kind).toBe("delivered");
}

function valueIn(bytes: Uint8Array | null): unknown {
  const file = bytes === null ? undefined : unzipSync(bytes)["pass.json"];
  return JSON.parse(new TextDecoder().decode(file)).logoText;
}

test(`${DEVICES} devices converge to the last of ${UPDATES} rapid updates, and have nothing to complain of`, async () => {
  const passes = await Promise.all(Array.from({ length: PASSES }, () => world.aPass()));
  const files = new Map<string, Uint8Array>();
  for (const pass of passes) files.set(pass.passId, usable(await bundles.getBundle(pass, tenant())).bytes);
  // Each device has two of the passes, so that a listing can name several.
  const devices = Array.from({ length: DEVICES }, (_, at) => {
    const device = new WalletDevice(`device-${at}`, `${at.toString(16).padStart(62, "0")}ab`);
    byToken.set(device.pushToken, device);
    return { device, has: [0, 1].flatMap((next) => passes[(at + next) % PASSES] ?? []) };
  });
  await Promise.all(
    devices.map(async ({ device, has }) => {
      for (const pass of has) {
        const { passTypeId, serial, authenticationToken, passId } = pass;
        const bytes = files.get(passId) ?? new Uint8Array();
        const serviceUrl = `${front.url}/wallet`;
        expect(await device.add({ passTypeId, serial, authenticationToken, serviceUrl, bytes })).toBe(201);
      }
    }),
  );

  const startedMs = performance.now();
  const updates: Promise<void>[] = [];
  for (let at = 1; at <= UPDATES; at += 1) {
    for (const pass of passes) updates.push(update(pass, `version ${at}`));
  }
  await Promise.all(updates);
  const isCurrent = (value: string) =>
    devices.every(({ device, has }) => has.every((pass) => valueIn(device.getBytes(pass)) === value));
  await eventually("all devices have the last version", () => isCurrent(`version ${UPDATES}`), 120_000);
  await Promise.all(devices.map(({ device }) => device.idle()));
  const seconds = (performance.now() - startedMs) / 1000;

  // From now on no call is rapid and no complaint is forgiven.
  for (const { device } of devices) device.nothingIsInFlight();
  const [first] = passes;
  if (first === undefined) throw new Error("there is no pass");
  await update(first, "one more");
  await eventually(
    "its devices have it",
    () => devices.every(({ device, has }) => !has.includes(first) || valueIn(device.getBytes(first)) === "one more"),
    60_000,
  );
  await Promise.all(devices.map(({ device }) => device.idle()));

  expect(log.latest(10)).toEqual([]);
  expect(devices.flatMap(({ device }) => device.complaints)).toEqual([]);
  const sum = (of: (device: WalletDevice) => number) => devices.reduce((total, { device }) => total + of(device), 0);
  const run = `${DEVICES} devices, ${PASSES} passes, ${UPDATES} updates each: ${seconds.toFixed(1)} s`;
  const [pushes, fetches, retries] = [sum((one) => one.pushes), sum((one) => one.fetches), sum((one) => one.retries)];
  process.stdout.write(`${run}, ${pushes} pushes, ${fetches} fetches, ${retries} retries\n`);
}, 300_000);

test("a device that was away gets the last version when it asks", async () => {
  const pass = await world.aPass();
  const { bytes } = usable(await bundles.getBundle(pass, tenant()));
  // No push reaches it.
  const device = new WalletDevice("device-away", "f".repeat(64));
  await device.add({ ...pass, serviceUrl: `${front.url}/wallet`, bytes });
  for (const value of ["a", "b", "c"]) await update(pass, value);
  device.push(PASS_TYPE);
  await device.idle();
  expect([valueIn(device.getBytes(pass)), device.complaints, device.fetches]).toEqual(["c", [], 1]);
}, 90_000);
