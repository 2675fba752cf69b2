import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { verifiedPasses } from "../support/verified-passes.ts";
import { type DevicePass, openPass, openPasses, WalletDevice } from "../support/wallet-device.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

setDefaultTimeout(90_000);

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let receiver: Bun.Server<undefined>;
let apiKey = "";
const heard: Readonly<Record<string, unknown>>[] = [];
/** The answer of the tenant's receiver to a call. */
let answer: () => Response | Promise<Response> = () => new Response();

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      heard.push({ type: request.headers.get("content-type"), ...JSON.parse(await request.text()) });
      return answer();
    },
  });
  home = await temporaryHome();
  waybill = await startWaybill(home.path);
  await waybill.operator("POST", "/tenants", { id: "club", name: "Club", channels: ["wallet"], tokens: 10 });
  apiKey = (await waybill.operator("POST", "/tenants/club/keys")).body.api_key;
  const url = `http://127.0.0.1:${receiver.port}/devices`;
  const put = await waybill.operator("PUT", "/tenants/club/wallet-webhook", { wallet_webhook_url: url });
  expect([put.status, put.body]).toEqual([200, { wallet_webhook_url: url }]);
});

afterAll(async () => {
  await waybill?.stop();
  await receiver?.stop(true);
  await home?.remove();
}, 90_000);

/** Creates a pass and opens its file as a device would. */
async function aPass(serial: string): Promise<DevicePass & { readonly passId: string }> {
  const pass_data = {
    serial_number: serial,
    organization_name: "Club",
    description: "Player",
    auxiliary_fields: [{ key: "round", label: "Round", value: "1", changeMessage: "Now round %@" }],
  };
  const accepted = await waybill.request(apiKey, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
  expect([accepted.status, accepted.body.error]).toEqual([202, undefined]);
  const job = await finalJob(waybill, apiKey, accepted.body.job_id);
  expect([job.status, job.result.error]).toEqual(["success", undefined]);
  const bytes = new Uint8Array(Buffer.from(job.result.pkpass_base64, "base64"));
  return { passId: job.result.pass_id, ...openPass(bytes) };
}

function passJson(bytes: Uint8Array | null): Record<string, unknown> {
  return JSON.parse(new TextDecoder().decode(bytes === null ? undefined : unzipSync(bytes)["pass.json"]));
}

/** Updates the pass, and lets the device fetch once the push has arrived. */
async function updateTo(round: string, pass: Awaited<ReturnType<typeof aPass>>, device: WalletDevice): Promise<void> {
  const arrivals = async () =>
    (await waybill.operator("GET", `/sandbox/messages?to=${device.pushToken}`)).body.messages.length;
  const before = await arrivals();
  const pass_data = { auxiliary_fields: [{ key: "round", value: round }] };
  const updated = await waybill.request(apiKey, "PUT", `/v1/passes/${pass.passId}`, { pass_data });
  expect(updated.status).toBe(202);
  await finalJob(waybill, apiKey, updated.body.job_id);
  await eventually("the push", async () => (await arrivals()) > before);
  device.push(pass.passTypeId);
  await device.idle();
}

test("a pass is installed on a device, updated there and removed, and its tenant hears of each once", async () => {
  const pass = await aPass("PLAYER-1");
  expect(pass.serviceUrl).toBe(`${waybill.url}/wallet`);
  const device = new WalletDevice("device-1", "00ff".repeat(16));
  expect([await device.add(pass), await device.register(pass)]).toEqual([201, 200]);
  const status = await waybill.request(apiKey, "GET", `/v1/passes/${pass.passId}/status`);
  expect(status.body).toMatchObject({ installed_devices: 1, is_installed: true });

  await updateTo("2", pass, device);
  expect(JSON.stringify(passJson(device.getBytes(pass)))).toContain('"value":"2"');

  expect([await device.remove(pass), await device.remove(pass)]).toEqual([200, 200]);
  await eventually("both calls", () => heard.length >= 2);
  const { passId, serial } = pass;
  const common = { type: "application/json", pass_id: passId, serial_number: serial, device_id: "device-1" };
  const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(heard).toEqual(
    ["register", "unregister"].map((action) => ({ ...common, action, tenant_id: "club", timestamp })),
  );
  expect((await waybill.operator("GET", "/sandbox/device-log")).body).toEqual({ complaints: [] });
  expect(device.complaints).toEqual([]);
});

test("one link brings several passes as one file, each signed, and later as they are then", async () => {
  const passes = [await aPass("SEAT-1"), await aPass("SEAT-2"), await aPass("SEAT-3")];
  const pass_ids = passes.map(({ passId }) => passId);
  const link = await waybill.request(apiKey, "POST", "/v1/passes/link", { pass_ids });
  expect([link.status, link.body.download_url]).toEqual([200, `${waybill.url}/p/${link.body.download_token}`]);

  const file = await fetch(link.body.download_url);
  expect([file.status, file.headers.get("content-type")]).toEqual([200, "application/vnd.apple.pkpasses"]);
  expect(file.headers.get("content-disposition")).toBe('attachment; filename="passes.pkpasses"');
  expect(file.headers.get("cache-control")).toBe("private, no-store");
  const bytes = await file.bytes();
  expect(passes).toMatchObject([...openPasses(bytes)]);
  const verified = await verifiedPasses(bytes, join(home.path, "apple-sandbox.pem"));
  expect(verified.map((files) => files.includes("pass.json"))).toEqual([true, true, true]);
  const device = new WalletDevice("family", "ee11".repeat(16));
  for (const pass of openPasses(bytes)) expect(await device.add(pass)).toBe(201);

  const pass_data = { auxiliary_fields: [{ key: "round", value: "9" }] };
  const updated = await waybill.request(apiKey, "PUT", `/v1/passes/${pass_ids[1]}`, { pass_data });
  await finalJob(waybill, apiKey, updated.body.job_id);
  const [, second] = openPasses(await (await fetch(link.body.download_url)).bytes());
  expect(JSON.stringify(passJson(second?.bytes ?? null))).toContain('"value":"9"');
});

test("a device waits for no receiver, and pending notifications are sent before the process ends", async () => {
  const pass = await aPass("PLAYER-2");
  const before = heard.length;
  const release = Promise.withResolvers<void>();
  answer = () => release.promise.then(() => new Response());
  for (let at = 0; at < 8; at += 1) expect(await new WalletDevice(`slow-${at}`, `ab${at}`).add(pass)).toBe(201);
  expect(heard.length - before).toBeLessThan(8);
  const stopped = waybill.stop();
  release.resolve();
  expect(await stopped).toBe(0);
  expect(heard.length - before).toBe(8);
});

test("after a restore, devices that saw later updates than the backup has get the next one", async () => {
  await waybill.kill();
  waybill = await startWaybill(home.path);
  const pass = await aPass("PLAYER-3");
  const device = new WalletDevice("device-ahead", "11ee".repeat(16));
  expect(await device.add(pass)).toBe(201);
  await updateTo("2", pass, device);
  const backups = await temporaryHome();
  const [folder, port] = [{ WAYBILL_HOME: home.path }, new URL(waybill.url).port];
  expect(await runCommand(["backup", `${backups.path}/`], folder)).toMatchObject({ code: 0, errors: "" });
  for (const round of ["3", "4", "5"]) await updateTo(round, pass, device);
  expect(JSON.stringify(passJson(device.getBytes(pass)))).toContain('"value":"5"');

  await waybill.kill();
  await rm(home.path, { recursive: true });
  const restored = await runCommand(["restore", backups.path, "--queued=send"], folder);
  await backups.remove();
  expect(restored).toMatchObject({ code: 0, errors: "" });
  // On the same port, because the address is in the pass.
  waybill = await startWaybill(home.path, { PORT: port });
  await updateTo("6", pass, device);
  expect(JSON.stringify(passJson(device.getBytes(pass)))).toContain('"value":"6"');
  expect(device.complaints).toEqual([]);
});
