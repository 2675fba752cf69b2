import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const MIB = 1024 * 1024;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let key: string;
/** Nobody listens there. */
let closedRelay: string;

beforeEach(async () => {
  home = await temporaryHome();
  closedRelay = `smtp://127.0.0.1:${await freePort()}`;
});

afterEach(async () => {
  await waybill.kill();
  await home.remove();
}, 30_000);

async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
  waybill = await startWaybill(home.path, environment);
  key ||= waybill.demoKey;
}

const stored = () => readdir(join(home.path, "payloads"));

async function send(bytes: number): Promise<{ status: number; jobId: string; error: string }> {
  const data = { name: "Ada", text: "x".repeat(bytes) };
  const body = { to_address: "ada@example.com", template_id: "welcome", data };
  const answer = await waybill.request(key, "POST", "/v1/send/email", body);
  return { status: answer.status, jobId: answer.body.job_id, error: answer.body.error };
}

test("a message of megabytes waits on disk, survives a restart, is sent once and leaves nothing behind", async () => {
  key = "";
  await start({ SMTP_URL: closedRelay });
  const { status, jobId } = await send(4 * MIB);
  expect(status).toBe(202);
  const [name] = await stored();
  expect(name).toBe(`${jobId}.demo`);
  await waybill.kill();
  await start();
  expect(await finalJob(waybill, key, jobId, 60_000)).toMatchObject({ status: "success" });
  const { messages } = (await waybill.operator("GET", "/sandbox/messages?to=ada@example.com")).body;
  expect(messages).toHaveLength(1);
  await waybill.stop();
  await start();
  await eventually("the sweep removes it", async () => (await stored()).length === 0, 60_000);
}, 240_000);

test("a message whose content is lost fails and says so, and the server goes on", async () => {
  key = "";
  await start({ SMTP_URL: closedRelay });
  const { jobId } = await send(MIB);
  await waybill.kill();
  for (const name of await stored()) await rm(join(home.path, "payloads", name));
  await start();
  expect(await finalJob(waybill, key, jobId, 60_000)).toMatchObject({
    status: "failed",
    result: { error: "the message could not be sent: its stored content is gone" },
  });
  const next = await send(MIB);
  expect(await finalJob(waybill, key, next.jobId, 60_000)).toMatchObject({ status: "success" });
}, 240_000);

test("a tenant's share of the queue is bounded in jobs and bytes while its messages cannot leave", async () => {
  key = "";
  await start({ SMTP_URL: closedRelay });
  const share = { requests_per_minute: 1000, queued_jobs_max: 3, queued_bytes_max: 2 * MIB };
  expect((await waybill.operator("PUT", "/plans/narrow", share)).status).toBe(200);
  await waybill.operator("PATCH", "/tenants/demo", { plan: "narrow" });
  expect((await send(MIB)).status).toBe(202);
  const bytes = "your share of the queue is used up: it holds as many bytes of unfinished jobs as your plan allows";
  expect(await send(MIB + 1)).toMatchObject({ status: 429, error: bytes });
  await eventually("it is asked about again", async () => (await send(10)).status === 202, 60_000);
  expect((await send(10)).status).toBe(202);
  const jobs = "your share of the queue is used up: it holds as many unfinished jobs as your plan allows";
  expect(await send(10)).toMatchObject({ status: 429, error: jobs });
}, 240_000);

test("attachments and copies survive kill -9, are sent once, are told of each recipient, and go with their message", async () => {
  key = "";
  await start({ SMTP_URL: closedRelay });
  const content = Buffer.alloc(10 * MIB, "a file").toString("base64");
  const body = (bob: string) => ({
    to_address: "ann@example.com",
    // Each message has its own: a bounce of the first must not suppress the second's.
    cc: [bob],
    bcc: ["cy@reject.test"],
    template_id: "welcome",
    attachments: [{ filename: "report.pdf", content }],
  });
  const bobs = ["bob@bounce.test", "bo@bounce.test"] as const;
  const send = (bob: string) => waybill.request(key, "POST", "/v1/send/email", body(bob));
  const [first, second] = await Promise.all(bobs.map(send));
  expect([first?.status, second?.status]).toEqual([202, 202]);
  // Equal files of a tenant are stored once.
  expect((await stored()).filter((name) => name.startsWith("shared."))).toHaveLength(1);
  await waybill.kill();
  await start();
  for (const [at, bob] of bobs.entries()) {
    const jobId = [first, second][at]?.body.job_id;
    expect(await finalJob(waybill, key, jobId, 60_000)).toMatchObject({ status: "success" });
    await eventually("everything is reported", async () => {
      const { events } = (await waybill.request(key, "GET", `/v1/jobs/${jobId}/events`)).body;
      const told = events.map(({ event_type, result }: Told) => `${event_type} ${result.recipient ?? ""}`.trim());
      return told.toSorted().join() === `bounced ${bob},delivered,failed cy@reject.test,sent`;
    });
  }
  const { messages } = (await waybill.operator("GET", "/sandbox/messages?to=ann@example.com")).body;
  expect(messages).toHaveLength(2);
  expect(messages[0]).toMatchObject({
    recipients: ["ann@example.com", expect.stringContaining("@bounce.test")],
    attachments: [{ filename: "report.pdf", bytes: 10 * MIB }],
  });
  await waybill.stop();
  await start();
  await eventually("the sweep removes them", async () => (await stored()).length === 0, 60_000);
}, 240_000);

interface Told {
  readonly event_type: string;
  readonly result: { readonly recipient?: string };
}
