import { expect, test } from "bun:test";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { recently } from "../support/recent-days.ts";
import { useWaybill } from "../support/use-waybill.ts";
import { type Answer, finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

let waybill: Waybill;

useWaybill((started) => {
  waybill = started;
});

async function send(to: string): Promise<string> {
  const body = { to_address: to, subject: "Hello", html: "<p>Hello</p>" };
  const answer = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", body);
  expect(answer).toMatchObject({ status: 202, body: { status: "pending" } });
  return answer.body.job_id;
}

async function fetchEvents(jobId: string): Promise<{ event_type: string; result: unknown }[]> {
  const { body } = await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${jobId}/events`);
  return body.events;
}

test("the printed curl command sends an e-mail, which succeeds and appears in both lists", async () => {
  const command = /curl [^]*'\n/.exec(waybill.screen)?.[0] ?? "";
  const curl = Bun.spawn(["sh", "-c", command], { stdout: "pipe", stderr: "ignore" });
  const accepted: Answer["body"] = await new Response(curl.stdout).json();
  expect(accepted).toMatchObject({ status: "pending" });
  const jobId: string = accepted.job_id;
  expect(await finalJob(waybill, waybill.demoKey, jobId)).toEqual({ job_id: jobId, status: "success", result: {} });
  await eventually("it is delivered", async () => (await fetchEvents(jobId)).length === 2);
  expect((await fetchEvents(jobId)).map((event) => event.event_type)).toEqual(["sent", "delivered"]);

  const listed = await eventually("both are in the tenant's list", async () => {
    const { body } = await waybill.request(waybill.demoKey, "GET", `/v1/events?${recently()}`);
    return body.events.length === 2 ? body.events : null;
  });
  expect(listed).toMatchObject([
    { job_id: jobId, channel: "email", event_type: "delivered", result: {} },
    { job_id: jobId, channel: "email", event_type: "sent", result: {} },
  ]);

  const { body } = await waybill.operator("GET", "/sandbox/messages?to=ann@example.com");
  expect(body.messages[0]).toMatchObject({ to: "ann@example.com", from: "no-reply@waybill.test", subject: "Hello" });
  expect(body.messages[0].source).toContain(`Message-ID: <${jobId}.demo@waybill.test>`);
});

test("a template of the demo tenant is rendered", async () => {
  const body = { to_address: "bob@example.com", template_id: "welcome", data: { name: "Bob <b>" } };
  const answer = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", body);
  await finalJob(waybill, waybill.demoKey, answer.body.job_id);
  const { messages } = (await waybill.operator("GET", "/sandbox/messages?to=bob@example.com")).body;
  expect(messages[0].subject).toBe("Welcome, Bob <b>");
  expect(messages[0].source).toContain("Welcome, Bob &lt;b&gt;");
});

test("an e-mail that bounces succeeds, is reported, and its recipient is suppressed", async () => {
  const jobId = await send("nobody@bounce.test");
  expect((await finalJob(waybill, waybill.demoKey, jobId)).status).toBe("success");
  await eventually("it bounces", async () => (await fetchEvents(jobId)).length === 2);
  expect((await fetchEvents(jobId))[1]).toMatchObject({
    event_type: "bounced",
    result: { code: 550, enhanced_code: "5.1.1", diagnostic: expect.any(String) },
  });
  const again = await send("Nobody@BOUNCE.test");
  expect(await finalJob(waybill, waybill.demoKey, again)).toMatchObject({
    status: "suppressed",
    result: { reason: "bounced" },
  });
  expect(await fetchEvents(again)).toMatchObject([{ event_type: "suppressed", result: { reason: "bounced" } }]);
});

test("a refused e-mail fails with the server's words", async () => {
  const jobId = await send("nobody@reject.test");
  const job = await finalJob(waybill, waybill.demoKey, jobId);
  expect(job.status).toBe("failed");
  expect(job.result.error).toContain("550");
  expect(await fetchEvents(jobId)).toMatchObject([{ event_type: "failed", result: { error: job.result.error } }]);
});

test("an e-mail that is deferred twice is sent in the end", async () => {
  const jobId = await send("later@defer.test");
  expect((await finalJob(waybill, waybill.demoKey, jobId)).status).toBe("success");
});

test("a server that drops the connection or is slow costs others nothing, and the job waits", async () => {
  const down = await send("x@down.test");
  const slow = await send("x@slow.test");
  const quick = await send("quick@example.com");
  expect((await finalJob(waybill, waybill.demoKey, quick, 8_000)).status).toBe("success");
  const { body } = await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${down}`);
  expect(body).toEqual({ job_id: down, status: "running" });
  expect((await finalJob(waybill, waybill.demoKey, slow, 20_000)).status).toBe("success");
}, 90_000);

test("every part is ready, and readiness says so", async () => {
  for (const path of ["/health", "/ready", "/metrics", "/openapi.json", "/docs"]) {
    expect((await fetch(waybill.url + path)).status).toBe(200);
  }
});

test("every counter of an alert is there before its first event, since Prometheus sees no increase in a series that begins with it", async () => {
  const alerts = await Bun.file(join(import.meta.dir, "../../infra/prometheus/alerts.yaml")).text();
  // Expressions with labels that others choose compare with an earlier state ("unless"); a mail log has to be
  // configured.
  const expressions = alerts.split("\n").filter((line) => /^ +expr:/.test(line) && !line.includes(" unless "));
  const counters = new Set(expressions.join("\n").match(/waybill_(?!mail_log)\w+_total\b/g));
  const fresh = await temporaryHome();
  const started = await startWaybill(fresh.path);
  try {
    const metrics = await (await fetch(`${started.url}/metrics`)).text();
    const missing = [...counters].filter((name) => !new RegExp(`^${name}(\\{| )`, "m").test(metrics));
    expect([counters.size > 2, missing]).toEqual([true, []]);
    for (const outcome of ["sent", "failed", "bounced"]) {
      expect(metrics).toContain(`waybill_messages_total{channel="whatsapp",outcome="${outcome}"} 0`);
    }
    expect(metrics).toContain('waybill_http_requests_total{route="send_email",method="POST",status="503"} 0');
  } finally {
    await started.stop();
    await fresh.remove();
  }
}, 60_000);
