import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
/** A spam filter with the test's answers: `/checkv2` of rspamd's protocol. */
let verdict: { readonly score: number } | null = { score: 1 };
let asked = 0;
const rspamd = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => {
    asked += 1;
    if (verdict === null) return new Response("away", { status: 503 });
    const symbols = { SAMPLE_RULE: { name: "SAMPLE_RULE", score: verdict.score, description: "as the test says" } };
    return Response.json({ score: verdict.score, required_score: 15, action: "no action", symbols });
  },
});

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path, { SPAM_FILTER: rspamd.url.href });
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await rspamd.stop(true);
  await home.remove();
}, 90_000);

async function send(): Promise<string> {
  const body = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };
  const { status, body: answer } = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", body);
  expect(status).toBe(202);
  return answer.job_id;
}

async function fetchStatus(jobId: string): Promise<string> {
  return (await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${jobId}`)).body.status;
}

async function mailCount(): Promise<number> {
  return (await waybill.operator("GET", "/sandbox/messages?to=ann@example.com")).body.messages.length;
}

test("a message below the threshold is sent", async () => {
  verdict = { score: 1 };
  expect((await finalJob(waybill, waybill.demoKey, await send())).status).toBe("success");
});

test("a message above it fails with its score and rules, and is not sent", async () => {
  verdict = { score: 7.5 };
  const before = await mailCount();
  const jobId = await send();
  expect(await finalJob(waybill, waybill.demoKey, jobId)).toEqual({
    job_id: jobId,
    status: "failed",
    result: {
      error: expect.stringContaining("spam"),
      spam_score: 7.5,
      spam_rules: [{ rule: "SAMPLE_RULE", score: 7.5, description: "as the test says" }],
    },
  });
  const { events } = (await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${jobId}/events`)).body;
  expect(events).toMatchObject([{ event_type: "failed", result: { error: expect.any(String) } }]);
  expect(Object.keys(events[0].result)).toEqual(["error"]);
  expect(await mailCount()).toBe(before);
});

test("while the filter is away the message stays pending, and is sent once it is back", async () => {
  verdict = null;
  const before = await mailCount();
  const jobId = await send();
  const seen = new Set<string>();
  const enough = asked + 3;
  await eventually("it was tried some times", async () => {
    seen.add(await fetchStatus(jobId));
    return asked >= enough;
  });
  expect([...seen]).toEqual(["pending"]);
  expect(await mailCount()).toBe(before);
  verdict = { score: 0 };
  expect((await finalJob(waybill, waybill.demoKey, jobId, 30_000)).status).toBe("success");
}, 300_000);

test("an e-mail from a template is not scored", async () => {
  verdict = { score: 99 };
  const body = { to_address: "bob@example.com", template_id: "welcome", data: { name: "Bob" } };
  const { body: answer } = await waybill.request(waybill.demoKey, "POST", "/v1/send/email", body);
  expect((await finalJob(waybill, waybill.demoKey, answer.job_id)).status).toBe("success");
});
