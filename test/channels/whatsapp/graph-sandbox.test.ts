import { afterEach, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { joinedInbox } from "../../../src/app/open-channels.ts";
import {
  type GraphSandbox,
  type GraphSandboxOptions,
  startGraphSandbox,
} from "../../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";

const SECRET = "a secret of some length";
let running: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of running.reverse()) await one.stop();
  running = [];
});

function start(options: Partial<GraphSandboxOptions> = {}): GraphSandbox {
  const sandbox = startGraphSandbox({
    webhookSecret: SECRET,
    clock: systemClock,
    random: new SeededRandom(7),
    telemetry: new QuietTelemetry(),
    ...options,
  });
  running.push(sandbox);
  return sandbox;
}

interface Status {
  readonly id: string;
  readonly status: string;
  readonly opaque: string | undefined;
}

/** An API that stores the statuses of its calls, and gives the test's answer. */
function startApi(answer: () => number = () => 200) {
  const statuses: Status[] = [];
  const calls: { path: string; isSigned: boolean }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request): Promise<Response> {
      const body = await request.text();
      const expected = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
      const isSigned = request.headers.get("x-hub-signature-256") === expected;
      calls.push({ path: new URL(request.url).pathname, isSigned });
      const status = answer();
      if (status === 200) {
        for (const entry of JSON.parse(body).entry) {
          for (const { value } of entry.changes) {
            for (const one of value.statuses) {
              statuses.push({ id: one.id, status: one.status, opaque: one.biz_opaque_callback_data });
            }
          }
        }
      }
      return new Response(null, { status });
    },
  });
  running.push({ stop: () => server.stop(true) });
  return { url: `http://127.0.0.1:${server.port}`, statuses, calls };
}

const BODY = {
  messaging_product: "whatsapp",
  recipient_type: "individual",
  to: "5491122334455",
  type: "template",
  template: { name: "order_update", language: { code: "es" } },
  biz_opaque_callback_data: "acme/1",
};

async function post(sandbox: GraphSandbox, body: unknown, init: { token?: string; path?: string } = {}) {
  const { token = "any", path = "/v25.0/555/messages" } = init;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${sandbox.url}${path}`, { method: "POST", headers, body: text });
  // A test inspects any body, and fails if a member is missing.
  // oxlint-disable-next-line typescript/no-explicit-any
  const answer: any = await response.json();
  return { status: response.status, body: answer };
}

const template = (components: unknown) => ({ ...BODY, template: { ...BODY.template, components } });
const text = (value: unknown) => [{ type: "body", parameters: [{ type: "text", text: value }] }];

const PARAMETER = [{ type: "text", text: "x" }] as const;
const button = (more: object) => ({ type: "button", sub_type: "url", index: "0", parameters: PARAMETER, ...more });
const takes = (count: number, components: unknown) => ({
  ...BODY,
  template: { ...BODY.template, name: `receipt_takes_${count}`, components },
});

test("what fills a template in every form, and free text, are accepted and shown", async () => {
  const sandbox = start();
  const named = { ...PARAMETER[0], parameter_name: "first_name" };
  const location = { latitude: "-34.6037", longitude: "-58.3816", name: "Obelisco" };
  const full = takes(1, [
    { type: "header", parameters: [{ type: "location", location }] },
    { type: "body", parameters: [named] },
    button({}),
    button({ index: 1, sub_type: "quick_reply", parameters: [{ type: "payload", payload: "stop" }] }),
    button({ index: "2", sub_type: "copy_code", parameters: [{ type: "coupon_code", coupon_code: "SAVE10" }] }),
    button({ index: "3", sub_type: "flow", parameters: [{ type: "action", action: { flow_token: "t" } }] }),
  ]);
  expect(await post(sandbox, full)).toMatchObject({ status: 200 });
  const free = { ...BODY, type: "text", template: undefined, text: { body: "At the door", preview_url: false } };
  expect(await post(sandbox, free)).toMatchObject({ status: 200 });
  expect(await post(sandbox, { ...BODY, to: "5491122330005" })).toMatchObject({ status: 200 });
  const shown = sandbox.inbox.messages("5491122334455", 10);
  expect(shown.map(({ subject }) => subject)).toEqual(["At the door", "receipt_takes_1 (es)"]);
  expect(JSON.parse(shown[1]?.source ?? "")).toEqual(full);
});

test("a message is accepted as the provider does it, kept as it came, and called back on in order and signed", async () => {
  const sandbox = start();
  const api = startApi();
  sandbox.callBack(api.url);
  const body = template([
    { type: "header", parameters: [{ type: "image", image: { link: "https://a.example/b.png" } }] },
    ...text("Ann"),
  ]);
  const answer = await post(sandbox, body);
  expect(answer).toMatchObject({
    status: 200,
    body: { messaging_product: "whatsapp", contacts: [{ input: "5491122334455", wa_id: "5491122334455" }] },
  });
  const { id } = answer.body.messages[0];
  expect(id).toStartWith("wamid.");
  await eventually("three statuses", () => api.statuses.length === 3);
  const opaque = "acme/1";
  expect(api.statuses).toEqual([
    { id, status: "sent", opaque },
    { id, status: "delivered", opaque },
    { id, status: "read", opaque },
  ]);
  expect(api.calls.every(({ path, isSigned }) => path === "/webhook/whatsapp" && isSigned)).toBe(true);
  const [message] = sandbox.inbox.messages("5491122334455", 10);
  expect(message).toMatchObject({
    channel: "whatsapp",
    from: "555",
    to: "5491122334455",
    subject: "order_update (es)",
  });
  expect(JSON.parse(message?.source ?? "")).toEqual(body);
});

test("a number that ends in 0001 is undeliverable, and nothing is kept or called back", async () => {
  const sandbox = start();
  const answer = await post(sandbox, { ...BODY, to: "5491122330001" });
  expect(answer).toMatchObject({ status: 400, body: { error: { code: 131026 } } });
  expect(sandbox.inbox.messages(null, 10)).toEqual([]);
});

test.each([
  ["0002", 429, 130429],
  ["0003", 500, 131000],
])(
  "a number that ends in %s is refused twice with %p, then accepted; each message for itself",
  async (end, status, code) => {
    const sandbox = start();
    const body = { ...BODY, to: `549112233${end}` };
    expect(await post(sandbox, body)).toMatchObject({ status, body: { error: { code } } });
    expect(await post(sandbox, { ...body, biz_opaque_callback_data: "acme/2" })).toMatchObject({ status });
    expect(await post(sandbox, body)).toMatchObject({ status });
    expect(await post(sandbox, body)).toMatchObject({ status: 200 });
    expect(await post(sandbox, { ...body, biz_opaque_callback_data: "acme/2" })).toMatchObject({ status });
  },
);

test("a number that ends in 0004 is accepted, and fails by callback", async () => {
  const sandbox = start();
  const api = startApi();
  sandbox.callBack(api.url);
  expect(await post(sandbox, { ...BODY, to: "5491122330004" })).toMatchObject({ status: 200 });
  await post(sandbox, BODY);
  await eventually("the statuses of both", () => api.statuses.length === 4);
  expect(api.statuses.map(({ status }) => status)).toEqual(["failed", "sent", "delivered", "read"]);
});

test.each([
  ["{", 100],
  [[], 100],
  [{ ...BODY, messaging_product: undefined }, 100],
  [{ ...BODY, recipient_type: "group" }, 100],
  [{ ...BODY, to: "" }, 100],
  [{ ...BODY, to: "ann" }, 131009],
  [{ ...BODY, type: "poll", poll: { id: "1" } }, 131051],
  [{ ...BODY, type: "image", image: {} }, 100],
  [{ ...BODY, type: "sticker", sticker: { id: "1", caption: "x" } }, 100],
  [{ ...BODY, type: "location", location: {} }, 131008],
  [{ ...BODY, type: "contacts", contacts: [{ name: {} }] }, 131008],
  [{ ...BODY, type: "reaction", reaction: { emoji: "x" } }, 100],
  [{ ...BODY, type: "text", text: { body: "x" }, context: {} }, 100],
  [{ ...BODY, type: "interactive", interactive: { type: "poll" } }, 100],
  [{ ...BODY, type: "interactive", interactive: { type: "button", action: {} } }, 100],
  [{ ...BODY, type: "interactive", interactive: { type: "button", body: { text: "x" }, action: {} } }, 131009],
  [{ ...BODY, to: "5491122330005", type: "image", image: { id: "1" } }, 131047],
  [{ ...BODY, type: "text" }, 100],
  [{ ...BODY, type: "text", text: { body: "" } }, 100],
  [{ ...BODY, type: "text", text: { body: "x".repeat(4_097) } }, 100],
  [{ ...BODY, type: "text", text: { body: "x", preview_url: "no" } }, 100],
  [{ ...BODY, to: "5491122330005", type: "text", text: { body: "x" } }, 131047],
  [{ ...BODY, biz_opaque_callback_data: "x".repeat(513) }, 131009],
  [{ ...BODY, template: undefined }, 131008],
  [{ ...BODY, template: { language: { code: "es" } } }, 131008],
  [{ ...BODY, template: { name: "x" } }, 131008],
  [template({}), 100],
  [template([null]), 100],
  [template([{ type: "footer", parameters: [] }]), 100],
  [template([{ type: "body" }]), 100],
  [template([{ type: "body", parameters: [] }]), 132000],
  [template(text(7)), 100],
  [template(text("")), 131008],
  [template(text("two\nlines")), 132018],
  [template(text("x".repeat(1_025))), 132005],
  [template([{ type: "body", parameters: [{ type: "image", image: { id: "1" } }] }]), 132012],
  [template([{ type: "header", parameters: [{ type: "image", image: {} }] }]), 100],
  [template([{ type: "header", parameters: [{ type: "location", location: { latitude: "1" } }] }]), 131008],
  [template([{ ...text("a")[0], type: "header" }, ...text("b"), { ...text("a")[0], type: "header" }]), 100],
  [template([{ type: "header", parameters: [...(text("a")[0]?.parameters ?? []), ...PARAMETER] }]), 132000],
  [template([{ type: "body", parameters: [{ ...PARAMETER[0], parameter_name: "a" }, ...PARAMETER] }]), 100],
  [takes(2, text("one")), 132000],
  [takes(1, undefined), 132000],
  [template([button({ parameters: [] })]), 132000],
  [template([button({ parameters: [...PARAMETER, ...PARAMETER] })]), 132000],
  [template([button({ index: "10" })]), 100],
  [template([button({ sub_type: "menu" })]), 100],
  [template([button({ sub_type: "mpm", parameters: [{ type: "action", action: {} }] })]), 131008],
  [template([{ type: "carousel", cards: [] }]), 100],
  [template([{ type: "carousel", cards: [{ card_index: 0, components: [] }] }]), 131008],
  [template([{ type: "limited_time_offer", parameters: [{}] }]), 131008],
  [template([{ type: "body", parameters: [{ type: "currency", currency: { fallback_value: "1" } }] }]), 131008],
  [template([button({ sub_type: "quick_reply" })]), 131008],
  [template([button({}), button({})]), 100],
  [template([{ type: "header", parameters: [{ type: "image", image: { link: "ftp://x" } }] }]), 131009],
] as const)("what the real API refuses is refused in its words: %j with %p", async (body, code) => {
  const answer = await post(start(), body);
  expect(answer).toMatchObject({ status: 400, body: { error: { code, type: "OAuthException" } } });
  expect(answer.body.error.message).toStartWith(`(#${code}) `);
});

test("without a valid token nothing is read", async () => {
  const sandbox = start();
  const expired = await post(sandbox, BODY, { token: "expired-1" });
  expect(expired).toMatchObject({ status: 401, body: { error: { code: 190, error_subcode: 463 } } });
  expect(await post(sandbox, "{", { token: "" })).toMatchObject({ status: 401, body: { error: { code: 190 } } });
  const other = await post(sandbox, BODY, { path: "/v25.0/555/media" });
  expect(other).toMatchObject({ status: 400, body: { error: { code: 100, error_subcode: 33 } } });
});

test("statuses wait until the API is there and takes them, and none is lost", async () => {
  const sandbox = start();
  await post(sandbox, BODY);
  let refusals = 2;
  const api = startApi(() => (refusals-- > 0 ? 503 : 200));
  sandbox.callBack(api.url);
  await post(sandbox, BODY);
  await eventually("all statuses", () => api.statuses.length === 6);
  expect(api.calls.length).toBeGreaterThanOrEqual(3);
});

test("shuffled and doubled, every status comes twice and not in order", async () => {
  const sandbox = start({ shuffled: true, doubled: true });
  const api = startApi();
  for (let i = 0; i < 30; i += 1) await post(sandbox, { ...BODY, biz_opaque_callback_data: `acme/${i}` });
  sandbox.callBack(api.url);
  await eventually("all statuses", () => api.statuses.length === 180);
  const byMessage = Map.groupBy(api.statuses, ({ id }) => id);
  expect(byMessage.size).toBe(30);
  const orders = Array.from(byMessage.values(), (all) => all.map(({ status }) => status));
  for (const order of orders)
    expect([...order].sort()).toEqual(["delivered", "delivered", "read", "read", "sent", "sent"]);
  expect(new Set(orders.map((order) => order.join())).size).toBeGreaterThan(5);
});

test("early, the first status comes before the message's own answer", async () => {
  const sandbox = start({ early: true });
  const api = startApi();
  sandbox.callBack(api.url);
  const answer = await post(sandbox, BODY);
  expect(api.statuses[0]).toMatchObject({ id: answer.body.messages[0].id, status: "sent" });
  await eventually("the others", () => api.statuses.length === 3);
});

test("a phone number over its throughput is refused, and no other", async () => {
  const sandbox = start({ findTrouble: (phoneNumberId) => (phoneNumberId === "555" ? "throttled" : null) });
  expect(await post(sandbox, BODY)).toMatchObject({ status: 429, body: { error: { code: 130429 } } });
  expect(await post(sandbox, BODY, { path: "/v25.0/777/messages" })).toMatchObject({ status: 200 });
});

test("a stop waits for the callback in flight, and makes no other", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<Response>();
  let calls = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => {
      calls += 1;
      return answered;
    },
  });
  running.push({ stop: () => server.stop(true) });
  const sandbox = start();
  sandbox.callBack(`http://127.0.0.1:${server.port}`);
  await post(sandbox, BODY);
  await eventually("a callback", () => calls === 1);
  await post(sandbox, BODY);
  let isStopped = false;
  const stopping = sandbox.stop().then(() => {
    isStopped = true;
  });
  await Bun.sleep(0);
  expect(isStopped).toBe(false);
  answer(new Response(null));
  await stopping;
  expect(calls).toBe(1);
});

test("messages of several sandboxes are one list, newest first", () => {
  const createInbox = (times: readonly string[]) => ({
    erase: () => 0,
    messages: (to: string | null, limit: number) =>
      times
        .map(
          (received_at) =>
            ({ channel: "email", received_at, from: "", to: to ?? "", subject: "", source: "" }) as const,
        )
        .slice(0, limit),
  });
  const joined = joinedInbox([createInbox(["2026-01-04", "2026-01-01"]), createInbox(["2026-01-03", "2026-01-02"])]);
  const times = joined.messages(null, 3).map(({ received_at }) => received_at);
  expect(times).toEqual(["2026-01-04", "2026-01-03", "2026-01-02"]);
});

test("a person's id is taken in place of a number, but for templates that copy a code, and statuses name it", async () => {
  const calls: string[] = [];
  const api = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      calls.push(await request.text());
      return new Response(null);
    },
  });
  running.push({ stop: () => api.stop(true) });
  const sandbox = start();
  sandbox.callBack(`http://127.0.0.1:${api.port}`);
  const { to: _number, ...rest } = BODY;
  const sent = await post(sandbox, { ...rest, recipient: "US.1349" });
  expect([sent.status, sent.body.contacts]).toEqual([200, [{ input: "US.1349", user_id: "US.1349" }]]);
  await eventually("the statuses have come", () => calls.join("").includes('"read"'));
  expect(calls.join("")).toContain('"recipient_user_id":"US.1349"');
  expect(calls.join("")).not.toContain("recipient_id");
  expect((await post(sandbox, { ...rest, recipient: "1349" })).body.error.code).toBe(131_009);
  const code = [
    { type: "button", sub_type: "copy_code", index: "0", parameters: [{ type: "coupon_code", coupon_code: "1" }] },
  ];
  expect((await post(sandbox, { ...template(code), to: undefined, recipient: "US.1" })).body.error.code).toBe(131_062);
});
