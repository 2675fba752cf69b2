import { expect, test } from "bun:test";
import { text } from "../channels/wallet/google-world.ts";
import { eventually } from "../support/eventually.ts";
import { useWaybill } from "../support/use-waybill.ts";
import type { Waybill } from "../support/waybill.ts";

const SLOW_MS = 60_000;
/** The platform's issuer by default. */
const PLATFORM = "3388000000012345678";
let waybill: Waybill;
let key = "";

useWaybill(async (started) => {
  waybill = started;
  await waybill.operator("POST", "/tenants", { id: "acme", name: "Acme", channels: ["wallet"], tokens: 10 });
  key = (await waybill.operator("POST", "/tenants/acme/keys")).body.api_key;
});

const call = (method: string, path: string, body?: unknown) => waybill.request(key, method, path, body);

function finished(jobId: string) {
  return eventually(`the job ${jobId} ends`, async () => {
    const { body } = await call("GET", `/v1/jobs/${jobId}`);
    return body.status === "success" || body.status === "failed" ? body : null;
  });
}

test(
  "an event ticket is created, updated and fetched in an unconfigured program",
  async () => {
    const classId = `${PLATFORM}.final`;
    const serial = `${PLATFORM}.ticket-1`;
    const classData = { id: classId, issuerName: "Acme", eventName: text("The final") };
    const made = await call("POST", "/v1/google/classes", { class_type: "eventTicket", class_data: classData });
    expect([made.status, made.body]).toEqual([201, { status: "created", class_id: classId }]);

    const created = await call("POST", "/v1/passes/create", {
      pass_type: "google",
      pass_data: {
        class_id: classId,
        class_type: "eventTicket",
        object_id: serial,
        object_data: { ticketHolderName: "Ada", textModulesData: [{ id: "gate", header: "Gate", body: "A" }] },
      },
    });
    expect(created.status).toBe(202);
    const { status, result } = await finished(created.body.job_id);
    expect([status, result]).toEqual([
      "success",
      {
        pass_id: expect.any(String),
        save_link: expect.stringMatching(/^https:\/\/pay\.google\.com\/gp\/v\/save\/[\w-]+\.[\w-]+\.[\w-]+$/),
      },
    ]);
    expect((await finished(created.body.job_id)).result).toEqual(result);

    const passId = result.pass_id;
    const updated = await call("PUT", `/v1/passes/${passId}`, {
      pass_data: { textModulesData: [{ id: "gate", header: "Gate", body: "B" }] },
      notify_message: "Your gate has changed",
    });
    expect([updated.status, updated.body.status]).toEqual([202, "updating"]);
    expect((await finished(updated.body.job_id)).status).toBe("success");

    const seen = await call("GET", `/v1/passes/${passId}/status`);
    expect([seen.status, seen.body]).toEqual([
      200,
      {
        pass_id: passId,
        pass_type: "google",
        version: 2,
        status: "active",
        google_status: "ACTIVE",
        has_users: false,
        is_installed: false,
      },
    ]);
    const { messages } = (await waybill.operator("GET", `/sandbox/messages?to=${serial}`)).body;
    expect(messages.map(({ subject }: { subject: string }) => subject)).toEqual([
      "POST eventTicketObject addMessage",
      "PATCH eventTicketObject",
      "POST eventTicketObject",
    ]);
    expect(JSON.parse(messages[1].source)).toMatchObject({ textModulesData: [{ id: "gate", body: "B" }] });
  },
  SLOW_MS,
);

test(
  "a pass that Google refuses fails with its words, and its token is given back",
  async () => {
    const balance = async () => (await waybill.operator("GET", "/tenants/acme")).body.tokens;
    const before = await balance();
    const created = await call("POST", "/v1/passes/create", {
      pass_type: "google",
      pass_data: { class_id: `${PLATFORM}.nothing`, object_id: `${PLATFORM}.ticket-2`, object_data: {} },
    });
    const job = await finished(created.body.job_id);
    expect([job.status, job.result.error]).toEqual(["failed", expect.stringContaining(`${PLATFORM}.nothing`)]);
    expect(await balance()).toBe(before);
  },
  SLOW_MS,
);

test(
  "a tenant's class is refused to another tenant of the platform's issuer",
  async () => {
    await waybill.operator("POST", "/tenants", { id: "globex", name: "Globex", channels: ["wallet"], tokens: 10 });
    const other = (await waybill.operator("POST", "/tenants/globex/keys")).body.api_key;
    const classId = `${PLATFORM}.members`;
    const aPass = (name: string) => ({
      pass_type: "google",
      pass_data: { class_id: classId, object_id: `${PLATFORM}.${name}`, object_data: {} },
    });
    const created = await call("POST", "/v1/send/wallet", aPass("member-1"));
    expect((await finished(created.body.job_id)).status).toBe("success");
    const ask = (method: string, path: string, body?: unknown) => waybill.request(other, method, path, body);
    expect((await ask("POST", "/v1/send/wallet", aPass("member-2"))).status).toBe(400);
    expect((await ask("GET", `/v1/google/classes/${classId}?class_type=generic`)).status).toBe(404);
    expect((await call("GET", `/v1/google/classes/${classId}?class_type=generic`)).body).toMatchObject({ id: classId });
  },
  SLOW_MS,
);

test(
  "who saves a pass and removes it is told to the tenant's webhook, and the pass's status says so",
  async () => {
    const told: { action: string; pass_id: string; serial_number: string; device_id: null }[] = [];
    const receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        // As our own program writes it.
        told.push((await request.json()) as (typeof told)[number]);
        return new Response(null, { status: 204 });
      },
    });
    try {
      const wallet_webhook_url = `http://127.0.0.1:${receiver.port}/wallet`;
      await waybill.operator("PUT", "/tenants/acme/wallet-webhook", { wallet_webhook_url });
      const classId = `${PLATFORM}.miles`;
      const class_data = {
        id: classId,
        issuerName: "Acme",
        programName: "Miles",
        programLogo: { sourceUri: { uri: "https://images.example.com/logo.png" } },
      };
      expect((await call("POST", "/v1/google/classes", { class_type: "loyalty", class_data })).status).toBe(201);
      const held = await call("GET", `/v1/google/classes/${classId}?class_type=loyalty`);
      expect(held.body).toMatchObject({ callbackOptions: { url: `${waybill.url}/webhook/google-wallet` } });
      const pass = async (name: string) => {
        const pass_data = {
          class_id: classId,
          class_type: "loyalty",
          object_id: `${PLATFORM}.${name}`,
          object_data: { loyaltyPoints: { balance: { int: 5 } } },
        };
        const accepted = await call("POST", "/v1/passes/create", { pass_type: "google", pass_data });
        return (await finished(accepted.body.job_id)).result.pass_id;
      };
      const [saved, removed] = [await pass("card-1-saved"), await pass("card-1-removed")];
      const of = (passId: string) => told.filter(({ pass_id }) => pass_id === passId).map(({ action }) => action);
      await eventually("the webhook is told", () => of(saved).length === 1 && of(removed).length === 2);
      expect([of(saved), of(removed)]).toEqual([["register"], ["register", "unregister"]]);
      expect(told[0]).toMatchObject({ tenant_id: "acme", device_id: null, serial_number: expect.any(String) });
      const status = async (passId: string) => (await call("GET", `/v1/passes/${passId}/status`)).body;
      expect(await status(saved)).toMatchObject({ has_users: true, is_installed: true });
      expect(await status(removed)).toMatchObject({ has_users: false, is_installed: false });
    } finally {
      await receiver.stop(true);
    }
  },
  SLOW_MS,
);
