import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";
import { signed, status, webhookBody } from "../support/whatsapp-webhook.ts";
import { eventsIn, isSignedWith, Receiver } from "../webhooks/receiver.ts";

/** A call that reached the provider. */
interface Call {
  readonly path: string;
  readonly authorization: string | null;
  readonly wamid: string;
  // The test inspects any body.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/** Uses the tenant's own credentials. */
const NUMBER = "777";
const calls: Call[] = [];
let provider: Bun.Server<undefined>;
let waybill: Waybill;
let home: Awaited<ReturnType<typeof temporaryHome>>;
let secret = "";

/** A provider that returns no opaque data, and reports a delivery before the message's id. */
function startProvider() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const wamid = `wamid.${crypto.randomUUID()}`;
      await callBack([status(wamid, "delivered")]);
      const { pathname: path } = new URL(request.url);
      calls.push({ path, authorization: request.headers.get("authorization"), wamid, body: await request.json() });
      return Response.json({ messaging_product: "whatsapp", contacts: [], messages: [{ id: wamid }] });
    },
  });
}

async function callBack(statuses: readonly object[], messages: readonly object[] = []): Promise<void> {
  const { body, signature } = signed(JSON.stringify(webhookBody({ statuses, messages }, NUMBER)), secret);
  const headers = { "X-Hub-Signature-256": signature };
  const response = await fetch(`${waybill.url}/webhook/whatsapp`, { method: "POST", headers, body });
  expect([response.status, await response.json()]).toEqual([200, { status: "received" }]);
}

const start = () => startWaybill(home.path, { WHATSAPP_API_URL: provider.url.origin });

beforeAll(async () => {
  home = await temporaryHome();
  provider = startProvider();
  waybill = await start();
  secret = (await readFile(join(home.path, "webhook-secret"), "utf8")).trim();
}, 300_000);

afterAll(async () => {
  await waybill?.stop();
  await provider?.stop(true);
  await home?.remove();
}, 300_000);

test("a message sent by an alias is tracked by its id alone, also by a status that arrives before its id", async () => {
  await waybill.operator("PATCH", "/tenants/demo", { allow_custom: ["whatsapp"] });
  const sender = { phone_number_id: NUMBER, access_token: "own-token" };
  expect((await waybill.operator("PUT", "/tenants/demo/credentials/whatsapp", sender)).status).toBe(200);
  const alias = { meta_name: "order_hx01", language_code: "pt_BR", header: { type: "image", id: "42" } };
  expect((await waybill.operator("PUT", "/tenants/demo/aliases/order", alias)).status).toBe(200);

  const send = { phone_number: "5491122334455", template_id: "order", params: ["Ada", 7, true] };
  const { status: code, body } = await waybill.request(waybill.demoKey, "POST", "/v1/send/whatsapp", send);
  expect([code, body.status]).toEqual([202, "pending"]);
  expect(await finalJob(waybill, waybill.demoKey, body.job_id)).toMatchObject({ status: "success", result: {} });
  const call = calls.find(({ body: sent }) =>
    sent.biz_opaque_callback_data.startsWith(`demo/${body.job_id}/${NUMBER}/`),
  );
  expect(call?.path).toEndWith(`/${NUMBER}/messages`);
  expect(call?.authorization).toBe("Bearer own-token");
  expect(call?.body).toMatchObject({
    to: "5491122334455",
    template: { name: "order_hx01", language: { code: "pt_BR" }, components: [{ type: "header" }, { type: "body" }] },
  });

  const wamid = call?.wamid ?? "";
  await callBack([status(wamid, "sent"), status(wamid, "read"), status(wamid, "read")]);
  const types = await eventually("the early status has joined the others", async () => {
    const { body: history } = await waybill.request(waybill.demoKey, "GET", `/v1/jobs/${body.job_id}/events`);
    const found: string[] = history.events.map((event: { event_type: string }) => event.event_type);
    return found.length >= 3 ? found : null;
  });
  expect([types[0], types.toSorted()]).toEqual(["sent", ["delivered", "read", "sent"]]);
}, 300_000);

test("the generated secret answers the provider's challenge", async () => {
  const query = new URLSearchParams({ "hub.mode": "subscribe", "hub.verify_token": secret, "hub.challenge": "7" });
  const response = await fetch(`${waybill.url}/webhook/whatsapp?${query.toString()}`);
  expect([response.status, await response.text()]).toEqual([200, "7"]);
});

test("incoming messages are recorded once and shown to operators", async () => {
  const message = { from: "5491122334455", id: "wamid.hello", type: "text", text: { body: "¡Hola!" } };
  await callBack([], [message]);
  await callBack([], [message]);
  const { body } = await waybill.operator("GET", "/whatsapp/messages");
  expect(body).toMatchObject({
    messages: [{ message_id: "wamid.hello", from: "5491122334455", name: "Ada", type: "text", content: message }],
    next_cursor: null,
  });
  expect((await waybill.operator("GET", "/whatsapp/messages?cursor=x")).status).toBe(400);
});

test("somebody with a username and no number is told of, answered, found, suppressed, followed and erased by the id", async () => {
  const receiver = new Receiver();
  try {
    const { demoKey } = waybill;
    await waybill.request(demoKey, "POST", "/v1/webhooks", { url: receiver.url, event_types: ["message.received"] });
    const hello = { from_user_id: "AR.77", id: "wamid.hidden", timestamp: String(Math.floor(Date.now() / 1_000)) };
    const answer = { ...hello, type: "contacts", origin: "contact_request", contacts: [{ phones: [{ phone: "+1" }] }] };
    await callBack([], [answer]);
    await eventually("the tenant is told", () => receiver.calls.length > 0, 20_000);
    expect(eventsIn(receiver.calls[0] ?? { id: "", text: "[]", headers: {} })[0]).toMatchObject({
      type: "message.received",
      data: { from: null, user_id: "AR.77", type: "contacts", content: answer },
    });
    const { body: kept } = await waybill.operator("GET", "/whatsapp/messages");
    expect(kept.messages[0]).toMatchObject({ message_id: "wamid.hidden", from: null, user_id: "AR.77" });

    const send = (recipient: string) =>
      waybill.request(demoKey, "POST", "/v1/send/whatsapp", { recipient, text: "Hello" });
    expect((await send("AR.78")).status).toBe(422);
    const sent = await send("AR.77");
    expect(sent.status).toBe(202);
    expect(await finalJob(waybill, demoKey, sent.body.job_id)).toMatchObject({ status: "success" });
    const call = calls.find(({ body }) => body.biz_opaque_callback_data.includes(sent.body.job_id));
    expect([call?.body.recipient, call?.body.to]).toEqual(["AR.77", undefined]);

    const found = await eventually("the search finds it", async () => {
      const { body } = await waybill.operator("GET", "/jobs?recipient=AR.77");
      return body.jobs?.length > 0 ? body.jobs : null;
    });
    expect(found).toMatchObject([{ job_id: sent.body.job_id }]);

    expect((await waybill.request(demoKey, "PUT", "/v1/suppressions/AR.77", {})).status).toBe(200);
    expect(await finalJob(waybill, demoKey, (await send("AR.77")).body.job_id)).toMatchObject({ status: "suppressed" });
    const system = { type: "user_changed_user_id", previous_user_id: "AR.77", user_id: "AR.99", body: "…" };
    await callBack([], [{ id: "wamid.moved", timestamp: hello.timestamp, type: "system", system }]);
    const moved = await send("AR.99");
    expect(moved.status).toBe(202);
    expect(await finalJob(waybill, demoKey, moved.body.job_id)).toMatchObject({ status: "suppressed" });
    const erased = await waybill.operator("POST", "/tenants/demo/erasures", { recipient: "AR.77" });
    expect(erased.body.erased).toMatchObject({ suppressions: 1 });
  } finally {
    await receiver.stop();
  }
}, 300_000);

test("news of the account whose number is the tenant's, and what nobody understands, reach the tenant and the operators", async () => {
  const receiver = new Receiver();
  try {
    const asked = { url: receiver.url, event_types: ["account.updated", "message.unknown"] };
    await waybill.request(waybill.demoKey, "POST", "/v1/webhooks", asked);
    const odd = { id: "wamid.odd", status: "teleported" };
    await callBack([odd]);
    const value = { event: "PAUSED", message_template_name: "order", message_template_language: "es" };
    const change = { field: "message_template_status_update", value };
    const { body, signature } = signed(
      JSON.stringify({ entry: [{ id: "102290129340398", time: 1_795_247_400, changes: [change] }] }),
      secret,
    );
    const headers = { "X-Hub-Signature-256": signature };
    expect((await fetch(`${waybill.url}/webhook/whatsapp`, { method: "POST", headers, body })).status).toBe(200);
    const told = () => receiver.calls.flatMap(eventsIn);
    await eventually("both are told", () => told().length === 2, 20_000);
    expect(told()).toMatchObject([
      { type: "message.unknown", data: { part: "status", phone_number_id: NUMBER, content: odd } },
      {
        type: "account.updated",
        timestamp: "2026-11-21T07:50:00.000Z",
        data: { account_id: "102290129340398", field: change.field, event: "PAUSED", alarming: true, content: value },
      },
    ]);
    const { body: kept } = await waybill.operator("GET", "/whatsapp/messages?limit=2");
    expect(kept.messages.map(({ type }: { type: string }) => type)).toEqual(["account.updated", "message.unknown"]);
  } finally {
    await receiver.stop();
  }
}, 300_000);

test("a message that was answered with 200 reaches the tenant's webhook, even if the server is killed right then", async () => {
  const receiver = new Receiver();
  try {
    const { demoKey } = waybill;
    const asked = { url: receiver.url, event_types: ["message.received"] };
    const { secret: own } = (await waybill.request(demoKey, "POST", "/v1/webhooks", asked)).body;
    const message = { from: "5491122334455", id: "wamid.where", type: "text", text: { body: "Where is it?" } };
    await callBack([], [message]);
    await waybill.kill();
    waybill = await start();
    // The provider does not know that it was received.
    await callBack([], [message, { ...message, id: "wamid.now" }]);
    const told = () => [...new Set(receiver.calls.flatMap(eventsIn).map(({ data }) => data.message_id))];
    await eventually("both are told", () => told().length === 2, 20_000);
    expect(told()).toEqual(["wamid.where", "wamid.now"]);
    expect(eventsIn(receiver.calls[0] ?? { id: "", text: "[]", headers: {} })[0]).toMatchObject({
      type: "message.received",
      data: { channel: "whatsapp", phone_number_id: NUMBER, from: "5491122334455", text: "Where is it?" },
    });
    expect(receiver.calls.every((call) => isSignedWith(own, call))).toBe(true);
  } finally {
    await receiver.stop();
  }
}, 300_000);
