import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { useWaybill } from "../support/use-waybill.ts";
import { finalJob, type Waybill } from "../support/waybill.ts";

let waybill: Waybill;

const environment = { LOG_LEVEL: "debug", LOG_JOBS: "1" };
useWaybill((started) => {
  waybill = started;
}, environment);

type Line = Readonly<Record<string, unknown>>;

const lines = (): Line[] =>
  waybill
    .log()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));

function waitForLine(job: string, message: string): Promise<Line> {
  return eventually(
    `"${message}" of ${job} is in the log`,
    async () => lines().find(({ job_id, msg }) => job_id === job && msg === message) ?? null,
  );
}

async function send(to: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${waybill.url}/v1/send/email`, {
    method: "POST",
    headers: { "x-api-key": waybill.demoKey, "content-type": "application/json", ...headers },
    body: JSON.stringify({ to_address: to, subject: "Hi", html: "<p>Hi</p>" }),
  });
  const { job_id } = (await response.json()) as { job_id: string };
  return { job: job_id, requestId: response.headers.get("x-request-id") };
}

test("the log joins a request, its job and its end, and shows no recipient", async () => {
  const { job, requestId } = await send("ann@example.com", { "x-request-id": "order-17" });
  expect(requestId).toBe("order-17");
  await finalJob(waybill, waybill.demoKey, job);
  const accepted = { level: 30, request_id: "order-17", tenant_id: "demo", channel: "email" };
  expect(await waitForLine(job, "a job was accepted")).toMatchObject(accepted);
  const ended = { level: 30, tenant_id: "demo", status: "success", recipient: "a***@example.com", attempts: 1 };
  expect(await waitForLine(job, "a job ended")).toMatchObject(ended);
  const answered = lines().find(({ msg, request_id }) => msg === "a request was answered" && request_id === "order-17");
  expect(answered).toMatchObject({ level: 20, route: expect.any(String), method: "POST", status: 202 });
  expect(waybill.log()).not.toContain("ann@example.com");
});

test("a request without an id of its own has that of its job, so a failure's line names it", async () => {
  const { job, requestId } = await send("rita@reject.test");
  expect(requestId).toBe(job);
  const { status } = await finalJob(waybill, waybill.demoKey, job);
  expect(status).toBe("failed");
  expect(await waitForLine(job, "a job failed")).toMatchObject({
    level: 40,
    tenant_id: "demo",
    channel: "email",
    recipient: "r***@reject.test",
    attempts: 1,
    cause: "refused",
    error: expect.stringMatching(/./),
  });
  expect(waybill.log()).not.toContain("rita@reject.test");
});

test("mail that bounces after its hand-over is logged and counted as bounced", async () => {
  const { job } = await send("bob@bounce.test");
  expect(await waitForLine(job, "a message failed after its hand-over")).toMatchObject({ level: 40, type: "bounced" });
  const metrics = await (await fetch(`${waybill.url}/metrics`)).text();
  for (const outcome of ["accepted", "sent", "bounced"]) {
    expect(metrics).toMatch(new RegExp(`waybill_messages_total\\{channel="email",outcome="${outcome}"\\} [1-9]`));
  }
  expect(metrics).toContain('waybill_message_failures_total{channel="email",cause="refused"} 1');
  expect(metrics).toContain('waybill_provider_call_seconds_count{channel="email",provider="');
});

test("everything that works by itself was started, for it stops with the program", async () => {
  expect(await waybill.stop()).toBe(0);
  const stopped = lines().flatMap(({ msg, part }) => (msg === "stopped" ? [part] : []));
  const own = ["audit sweep", "news sweep", "pass sweep", "payload sweep", "tenant removals"];
  const others = ["dispatcher", "readiness", "recorder", "registry", "status", "usage", "webhooks"];
  expect(stopped).toEqual(expect.arrayContaining([...own, ...others]));
});
