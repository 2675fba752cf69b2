import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";
import { signed, status, webhookBody } from "../support/whatsapp-webhook.ts";
import { eventsIn, isSignedWith, Receiver } from "../webhooks/receiver.ts";

/** What reached the provider. */
interface Call {
  readonly path: string;
  readonly authorization: string | null;
  readonly wamid: string;
  // The test looks into whatever came.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/** The tenant's own. */
const NUMBER = "777";
const calls: Call[] = [];
let provider: Bun.Server<undefined>;
let waybill: Waybill;
let home: Awaited<ReturnType<typeof temporaryHome>>;
let secret = "";

/** A provider that repeats no opaque data, and reports that a message was delivered before it says what it is called. */
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
    // The provider does not know that it was heard.
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
