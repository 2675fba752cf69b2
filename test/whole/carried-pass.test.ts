import { expect, test } from "bun:test";
import { unzipSync } from "fflate";
import { eventually } from "../support/eventually.ts";
import { useWaybill } from "../support/use-waybill.ts";
import { finalJob, type Waybill } from "../support/waybill.ts";

const SLOW_MS = 60_000;
const ISSUER = "3388000000012345678";
/** Another address than Google's own, to which links lead by default. */
const SAVE_URL = "https://save.example.com/pass";
let waybill: Waybill;
let key = "";

useWaybill(
  async (started) => {
    waybill = started;
    const channels = ["email", "whatsapp", "wallet"];
    const tenant = { id: "acme", name: "Acme", channels, permissions: ["allow_raw_html"], tokens: 10 };
    await waybill.operator("POST", "/tenants", tenant);
    key = (await waybill.operator("POST", "/tenants/acme/keys")).body.api_key;
  },
  { SAVE_URL_BASE: SAVE_URL },
);

const call = (method: string, path: string, body?: unknown) => waybill.request(key, method, path, body);
const tokens = async (): Promise<number> => (await waybill.operator("GET", "/tenants/acme")).body.tokens;

const apple = (serial_number: string) => ({
  pass_type: "apple",
  pass_data: { serial_number, organization_name: "Acme", description: "Card", style: "storeCard" },
});
const google = (name: string) => ({
  pass_type: "google",
  pass_data: {
    class_id: `${ISSUER}.members`,
    class_type: "generic",
    object_id: `${ISSUER}.${name}`,
    object_data: {},
  },
});

/** The first message to the recipient, with its lines unfolded. */
function sent(to: string): Promise<{ readonly source: string; readonly attachments?: unknown }> {
  return eventually(`a message to ${to}`, async () => {
    const { messages } = (await waybill.operator("GET", `/sandbox/messages?to=${to}`)).body;
    const [message] = messages;
    return message && { ...message, source: message.source.replaceAll("=\r\n", "") };
  });
}

test(
  "an e-mail brings an Apple pass as a file and as a link, for one token and under one job",
  async () => {
    const before = await tokens();
    const html = '<p>Your card: <a href="{{.pass.download_url}}">here</a>, number {{.pass.pass_id}}</p>';
    const subject = "A card";
    const body = { to_address: "ada@example.com", subject, html, pass: apple("card-1") };
    const accepted = await call("POST", "/v1/send/email", body);
    expect([accepted.status, await tokens()]).toEqual([202, before - 1]);
    const job = await finalJob(waybill, key, accepted.body.job_id);
    expect([job.status, Object.keys(job.result)]).toEqual(["success", ["pass_id", "download_url"]]);

    const linked = await fetch(job.result.download_url);
    expect([linked.status, linked.headers.get("content-type")]).toEqual([200, "application/vnd.apple.pkpass"]);
    expect(linked.headers.get("cache-control")).toBe("private, no-store");
    const file = await linked.bytes();
    expect(JSON.parse(new TextDecoder().decode(unzipSync(file)["pass.json"])).serialNumber).toBe("card-1");
    const { source, attachments } = await sent("ada@example.com");
    expect(source).toContain(`(${job.result.download_url}), number ${job.result.pass_id}`);
    expect(source).toContain("Content-Type: application/vnd.apple.pkpass");
    expect(attachments).toEqual([{ filename: "card-1.pkpass", bytes: file.length }]);
    const altered = job.result.download_url.replace(/.$/, (last: string) => (last === "A" ? "B" : "A"));
    expect((await fetch(altered)).status).toBe(404);

    // It is a pass like any other.
    const updated = await call("PUT", `/v1/passes/${job.result.pass_id}`, { pass_data: { description: "Gold card" } });
    expect((await finalJob(waybill, key, updated.body.job_id)).status).toBe("success");
    expect(await (await fetch(job.result.download_url)).bytes()).not.toEqual(file);
  },
  SLOW_MS,
);

test(
  "an e-mail and a chat message bring the link of a Google pass",
  async () => {
    const html = '<p>Your card: <a href="{{.pass.save_link}}">here</a></p>';
    const mailed = await call("POST", "/v1/send/email", { to_address: "bob@example.com", html, pass: google("bob") });
    const mail = await finalJob(waybill, key, mailed.body.job_id);
    expect([mail.status, Object.keys(mail.result)]).toEqual(["success", ["pass_id", "save_link"]]);
    expect(mail.result.save_link).toMatch(/^https:\/\/save\.example\.com\/pass\/[\w.-]+$/);
    const message = await sent("bob@example.com");
    expect([message.source.includes(`(${mail.result.save_link})`), message.attachments]).toEqual([true, undefined]);

    const buttons = [{ index: 0, sub_type: "url", value: "{{.pass.save_token}}" }];
    const params = ["Eve", "{{.pass.save_link}}"];
    const chat = { phone_number: "5491122334455", template_id: "card", params, buttons, pass: google("eve") };
    const sentChat = await call("POST", "/v1/send/whatsapp", chat);
    const job = await finalJob(waybill, key, sentChat.body.job_id);
    expect(job.status).toBe("success");
    const { source } = await sent("5491122334455");
    expect(source).toContain(`"Eve"`);
    expect(source).toContain(`"${job.result.save_link}"`);
    expect(source).toContain(`"${job.result.save_link.slice(job.result.save_link.lastIndexOf("/") + 1)}"`);
  },
  SLOW_MS,
);

test(
  "a message that is refused, suppressed or cancelled gives token and serial back",
  async () => {
    const before = await tokens();
    const html = "<p>Your card</p>";
    await waybill.operator("PUT", "/tenants/acme/suppressions/gone@example.com", { reason: "manual" });
    const send = (body: object) => call("POST", "/v1/send/email", { html, pass: apple("again"), ...body });
    for (const [to_address, status] of [
      ["ada@reject.test", "failed"],
      ["gone@example.com", "suppressed"],
    ]) {
      const accepted = await send({ to_address });
      expect([accepted.status, (await finalJob(waybill, key, accepted.body.job_id)).status]).toEqual([202, status]);
      expect(await tokens()).toBe(before);
    }
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const planned = await send({ to_address: "ada@example.com", scheduled_at: later });
    expect([planned.status, await tokens()]).toEqual([202, before - 1]);
    expect((await call("POST", `/v1/jobs/${planned.body.job_id}/cancel`)).status).toBe(200);
    expect(await tokens()).toBe(before);
  },
  SLOW_MS,
);
