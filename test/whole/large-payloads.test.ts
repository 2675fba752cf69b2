import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const MIB = 1024 * 1024;

const NARROW = { requests_per_minute: 1000, queued_jobs_max: 3, queued_bytes_max: 2 * MIB };
/** Each message has its own: a bounce of the first must not suppress the second's. */
const BOBS = ["bob@bounce.test", "bo@bounce.test"] as const;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let key: string;

/*
 * The tests follow one server: its first relay does not listen, it is killed, and it starts anew with one that takes
 * mail.
 */
beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path, { SMTP_URL: `smtp://127.0.0.1:${await freePort()}` });
  key = waybill.demoKey;
  expect((await waybill.operator("PUT", "/plans/narrow", NARROW)).status).toBe(200);
}, 300_000);

afterAll(async () => {
  await waybill?.kill();
  await home?.remove();
}, 90_000);

const stored = () => readdir(join(home.path, "payloads"));

async function send(bytes: number, to = "ada@example.com", apiKey = key) {
  const data = { name: "Ada", text: "x".repeat(bytes) };
  const answer = await waybill.request(apiKey, "POST", "/v1/send/email", {
    to_address: to,
    template_id: "welcome",
    data,
  });
  return { status: answer.status, jobId: String(answer.body.job_id), error: answer.body.error };
}

function sendWithCopies(bob: string) {
  const body = {
    to_address: "ann@example.com",
    cc: [bob],
    bcc: ["cy@reject.test"],
    template_id: "welcome",
    attachments: [{ filename: "report.pdf", content: Buffer.alloc(10 * MIB, "a file").toString("base64") }],
  };
  return waybill.request(key, "POST", "/v1/send/email", body);
}

/** Before the server is killed. */
const waiting = { large: "", lost: "", copied: [] as string[] };

test("a tenant's share of the queue is bounded in jobs and bytes while its messages cannot leave", async () => {
  const tenant = { id: "narrow", name: "Narrow", plan: "narrow", channels: ["email"] };
  await waybill.operator("POST", "/tenants", tenant);
  const template = { channel: "email", subject: "Hello {{.name}}", html: "<p>Hello {{.name}}</p>" };
  await waybill.operator("PUT", "/tenants/narrow/templates/welcome", template);
  const { api_key } = (await waybill.operator("POST", "/tenants/narrow/keys")).body;
  const sendNarrow = (bytes: number) => send(bytes, "nora@example.com", api_key);
  expect((await sendNarrow(MIB)).status).toBe(202);
  const bytes = "your share of the queue is used up: it holds as many bytes of unfinished jobs as it may";
  expect(await sendNarrow(MIB + 1)).toMatchObject({ status: 429, error: bytes });
  await eventually("it is asked about again", async () => (await sendNarrow(10)).status === 202, 60_000);
  expect((await sendNarrow(10)).status).toBe(202);
  const jobs = "your share of the queue is used up: it holds as many unfinished jobs as it may";
  expect(await sendNarrow(10)).toMatchObject({ status: 429, error: jobs });
  // The others' messages are searched for in the names of all stored payloads.
  for (const name of await stored()) expect(name).toEndWith(".narrow");
}, 300_000);

test("a message of megabytes waits on disk, survives a restart and is sent once", async () => {
  const large = await send(4 * MIB);
  expect(large.status).toBe(202);
  expect(await stored()).toContain(`${large.jobId}.demo`);
  const lost = await send(MIB, "leo@example.com");
  expect(await stored()).toContain(`${lost.jobId}.demo`);
  const copied = await Promise.all(BOBS.map(sendWithCopies));
  expect(copied.map(({ status }) => status)).toEqual([202, 202]);
  // Equal files of a tenant are stored once.
  expect((await stored()).filter((name) => name.startsWith("shared."))).toHaveLength(1);
  Object.assign(waiting, { large: large.jobId, lost: lost.jobId, copied: copied.map(({ body }) => body.job_id) });
  await waybill.kill();
  await rm(join(home.path, "payloads", `${lost.jobId}.demo`));
  waybill = await startWaybill(home.path);

  expect(await finalJob(waybill, key, large.jobId, 60_000)).toMatchObject({ status: "success" });
  const { messages } = (await waybill.operator("GET", "/sandbox/messages?to=ada@example.com")).body;
  expect(messages).toHaveLength(1);
}, 300_000);

test("a message whose content is lost fails and says so, and the server goes on", async () => {
  expect(await finalJob(waybill, key, waiting.lost, 60_000)).toMatchObject({
    status: "failed",
    result: { error: "the message could not be sent: its stored content is gone" },
  });
  const next = await send(MIB);
  expect(await finalJob(waybill, key, next.jobId, 60_000)).toMatchObject({ status: "success" });
}, 300_000);

test("attachments and copies survive kill -9, are sent once and are told of each recipient", async () => {
  for (const [at, bob] of BOBS.entries()) {
    const jobId = waiting.copied[at] ?? "";
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
}, 300_000);

test("messages and attachments that are sent leave nothing behind", async () => {
  await waybill.stop();
  waybill = await startWaybill(home.path);
  await eventually("the sweep removes them", async () => (await stored()).length === 0, 60_000);
}, 300_000);

interface Told {
  readonly event_type: string;
  readonly result: { readonly recipient?: string };
}
