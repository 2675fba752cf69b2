import { afterEach, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { Reachability } from "../../../src/channels/whatsapp/callbacks/reachability.ts";
import { chatLimits } from "../../../src/channels/whatsapp/limits.ts";
import { encodePayload, type TemplatePayload, type WhatsappPayload } from "../../../src/channels/whatsapp/payload.ts";
import { limits } from "../../../src/domain/limits.ts";
import { startDeafListener } from "../../support/deaf-listener.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import {
  ACCEPTED,
  CALLBACKS,
  type Call,
  CountingTelemetry,
  channelTo,
  chatJob,
  chatTenant,
  graphError,
  JOB_ID,
  PLATFORM,
  startProvider,
  TOKEN,
} from "./whatsapp-world.ts";

const LIVE = new AbortController().signal;
let running: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of running) await one.stop();
  running = [];
});

function provider(answer: (call: Call) => Response | Promise<Response>) {
  const started = startProvider(answer);
  running.push(started);
  return started;
}

/** A provider that handles each connection as the test says, below HTTP. */
async function rawProvider(
  onData: (socket: Socket, count: number) => void,
  onConnection: () => void = () => {},
): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    let count = 0;
    onConnection();
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", () => onData(socket, (count += 1)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  running.push({
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

async function sentBody(payload: Partial<TemplatePayload>): Promise<unknown> {
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  await channelTo(url).deliver(chatJob(payload), chatTenant(), LIVE);
  return JSON.parse(calls[0]?.text ?? "null");
}

test("a message is sent as the provider documents it, and its id comes back", async () => {
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  const job = chatJob({ params: ["Ann", "3"] });
  const outcome = await channelTo(url).deliver(job, chatTenant(), LIVE);
  expect(outcome).toMatchObject({ kind: "delivered", result: {}, providerRef: "wamid.HBgN" });
  expect(calls).toHaveLength(1);
  expect(calls[0]).toMatchObject({ method: "POST", path: "/v25.0/555/messages" });
  expect(calls[0]?.headers.get("authorization")).toBe(`Bearer ${TOKEN}`);
  expect(calls[0]?.headers.get("content-type")).toBe("application/json");
  expect(JSON.parse(calls[0]?.text ?? "")).toEqual({
    messaging_product: "whatsapp",
    recipient_type: "individual",
    to: "5491122334455",
    type: "template",
    template: {
      name: "order_update",
      language: { code: "es" },
      components: [
        {
          type: "body",
          parameters: [
            { type: "text", text: "Ann" },
            { type: "text", text: "3" },
          ],
        },
      ],
    },
    biz_opaque_callback_data: CALLBACKS.sign({ tenantId: "acme", jobId: JOB_ID, phoneNumberId: "555" }),
  });
});

test("an address that names its version is called as it is", async () => {
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  await channelTo(`${url}/graph/v21.0`).deliver(chatJob({}), chatTenant(), LIVE);
  expect(calls.map(({ path }) => path)).toEqual(["/graph/v21.0/555/messages"]);
});

test("a template without variables is sent without components", async () => {
  expect(await sentBody({})).toHaveProperty("template", { name: "order_update", language: { code: "es" } });
});

test.each([
  [
    { type: "image", link: "https://a.example/b.png" },
    { type: "image", image: { link: "https://a.example/b.png" } },
  ],
  [
    { type: "video", id: "77" },
    { type: "video", video: { id: "77" } },
  ],
  [
    { type: "document", id: "77", filename: "order.pdf" },
    { type: "document", document: { id: "77", filename: "order.pdf" } },
  ],
] as const)("media of a header goes before the body: %j", async (header, parameter) => {
  const body = await sentBody({ header, params: ["x"] });
  expect(body).toHaveProperty("template.components", [
    { type: "header", parameters: [parameter] },
    { type: "body", parameters: [{ type: "text", text: "x" }] },
  ]);
});

const BUTTONS = [
  { index: 0, sub_type: "quick_reply", value: "stop" },
  { index: 1, sub_type: "url", value: "orders/1042" },
  { index: 2, sub_type: "copy_code", value: "SAVE10" },
  { index: 9, sub_type: "flow", value: "token-7" },
] as const;

test.each([
  [
    { type: "text", text: "Ada" },
    { type: "text", text: "Ada" },
  ],
  [
    { type: "text", text: "Ada", parameter_name: "first_name" },
    { type: "text", parameter_name: "first_name", text: "Ada" },
  ],
  [
    { type: "location", latitude: -34.6037, longitude: 1e-9, name: "Obelisco" },
    { type: "location", location: { latitude: "-34.6037", longitude: "0", name: "Obelisco" } },
  ],
  [
    { type: "location", latitude: 90, longitude: -180, address: "Av. 9 de Julio" },
    { type: "location", location: { latitude: "90", longitude: "-180", address: "Av. 9 de Julio" } },
  ],
] as const)("a header that is no media is written as the provider documents it: %j", async (header, parameter) => {
  expect(await sentBody({ header })).toHaveProperty("template.components", [
    { type: "header", parameters: [parameter] },
  ]);
});

test("values by name carry their names, and each button is a component of its own kind", async () => {
  const payload = {
    to: "5491122334455",
    template: "t",
    language: "en",
    params: { a: "1", b_2: "x" },
    buttons: BUTTONS,
  };
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  await channelTo(url).deliver(chatJob({}, { payload: encodePayload(payload) }), chatTenant(), LIVE);
  const button = (index: string, sub_type: string, parameter: object) => {
    return { type: "button", sub_type, index, parameters: [parameter] };
  };
  expect(JSON.parse(calls[0]?.text ?? "")).toHaveProperty("template", {
    name: "t",
    language: { code: "en" },
    components: [
      {
        type: "body",
        parameters: [
          { type: "text", parameter_name: "a", text: "1" },
          { type: "text", parameter_name: "b_2", text: "x" },
        ],
      },
      button("0", "quick_reply", { type: "payload", payload: "stop" }),
      button("1", "url", { type: "text", text: "orders/1042" }),
      button("2", "copy_code", { type: "coupon_code", coupon_code: "SAVE10" }),
      button("9", "flow", { type: "action", action: { flow_token: "token-7" } }),
    ],
  });
});

test("free text is sent as the provider documents it, and fails once the provider's 24 hours are over", async () => {
  const payload = encodePayload({ to: "5491122334455", text: { body: "At the door", preview_url: true } });
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  const job = chatJob({}, { payload });
  expect(await channelTo(url).deliver(job, chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
  expect(JSON.parse(calls[0]?.text ?? "")).toEqual({
    messaging_product: "whatsapp",
    recipient_type: "individual",
    to: "5491122334455",
    type: "text",
    text: { body: "At the door", preview_url: true },
    biz_opaque_callback_data: CALLBACKS.sign({ tenantId: "acme", jobId: JOB_ID, phoneNumberId: "555" }),
  });
  const late = provider(() => Response.json(graphError(131047, 400).body, { status: 400 }));
  const outcome = await channelTo(late.url).deliver(job, chatTenant(), LIVE);
  expect(outcome).toMatchObject({ kind: "failed", error: expect.stringContaining("error 131047") });
});

test("a template's message without the later members is queued and sent byte for byte as before them", async () => {
  const header = { type: "document", link: "https://a.example/b.pdf", filename: "b.pdf" } as const;
  const payload: WhatsappPayload = { to: "549112233", template: "t", language: "es", params: ["Ann"], header };
  const queued =
    '{"to":"549112233","template":"t","language":"es","params":["Ann"],' +
    '"header":{"type":"document","link":"https://a.example/b.pdf","filename":"b.pdf"}}';
  expect(encodePayload(payload)).toBe(queued);
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  await channelTo(url).deliver(chatJob({}, { payload: queued }), chatTenant(), LIVE);
  const data = CALLBACKS.sign({ tenantId: "acme", jobId: JOB_ID, phoneNumberId: "555" });
  expect(calls[0]?.text).toBe(
    '{"messaging_product":"whatsapp","recipient_type":"individual","to":"549112233","type":"template",' +
      '"template":{"name":"t","language":{"code":"es"},"components":[' +
      '{"type":"header","parameters":[{"type":"document","document":{"link":"https://a.example/b.pdf","filename":"b.pdf"}}]},' +
      `{"type":"body","parameters":[{"type":"text","text":"Ann"}]}]},"biz_opaque_callback_data":"${data}"}`,
  );
});

test("a tenant's own number and token are used before the platform's", async () => {
  const { url, calls } = provider(() => Response.json(ACCEPTED));
  const tenant = chatTenant({}, { phoneNumberId: "777", accessToken: "own" });
  await channelTo(url).deliver(chatJob(), tenant, LIVE);
  expect(calls[0]?.path).toBe("/v25.0/777/messages");
  expect(calls[0]?.headers.get("authorization")).toBe("Bearer own");
});

test("without any credentials a job fails and says why", async () => {
  const channel = channelTo("http://127.0.0.1:1", { platform: { whatsapp: null } });
  expect(channel.paceMs(chatTenant())).toBe(0);
  expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({
    kind: "failed",
    error: expect.stringContaining("credentials"),
  });
});

test.each(["", "[]", "null", '{"to":1}', '{"to":"1","template":"x","language":"es","params":[1]}'])(
  "a payload that intake did not write fails: %p",
  async (payload) => {
    const outcome = await channelTo("http://127.0.0.1:1").deliver(chatJob({}, { payload }), chatTenant(), LIVE);
    expect(outcome).toMatchObject({ kind: "failed", error: "the message cannot be read" });
  },
);

test("one connection carries message after message, also after errors and long bodies", async () => {
  let count = 0;
  const { url, calls } = provider(() => {
    count += 1;
    if (count % 3 === 0) return Response.json({ error: { code: 131026 } }, { status: 400 });
    return Response.json({ ...ACCEPTED, padding: "x".repeat(10_000) });
  });
  const channel = channelTo(url);
  for (let i = 0; i < 12; i += 1) await channel.deliver(chatJob(), chatTenant(), LIVE);
  expect(new Set(calls.map(({ clientPort }) => clientPort)).size).toBe(1);
});

// The outcome of the message is unknown: it may have been sent.
const UNKNOWN = {
  kind: "retry",
  afterMs: chatLimits.ambiguousWaitMs,
  attemptsMax: chatLimits.ambiguousAttemptsMax,
  isUncertain: true,
};

test("a provider that does not answer in time leaves a message's outcome unknown", async () => {
  const telemetry = new CountingTelemetry();
  const { url } = provider(() => new Promise<Response>(() => {}));
  const outcome = await channelTo(url, { timeoutMs: 50, telemetry }).deliver(chatJob(), chatTenant(), LIVE);
  expect(outcome).toMatchObject(UNKNOWN);
  expect(telemetry.counted).toContain("chat_unanswered{}");
});

test("so does an abort after the request has left, and a connection that is lost", async () => {
  const aborter = new AbortController();
  const { url, calls } = provider(() => new Promise<Response>(() => {}));
  const delivery = channelTo(url).deliver(chatJob(), chatTenant(), aborter.signal);
  await eventually("the request has left", () => calls.length === 1);
  aborter.abort();
  expect(await delivery).toMatchObject(UNKNOWN);

  const dropped = await rawProvider((socket) => socket.destroy());
  expect(await channelTo(dropped).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject(UNKNOWN);
});

test("a request on a kept connection that breaks is not repeated by the client", async () => {
  let requests = 0;
  const url = await rawProvider((socket, count) => {
    requests += 1;
    const body = JSON.stringify(ACCEPTED);
    if (count === 1) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    else socket.destroy();
  });
  const channel = channelTo(url);
  expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
  expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject(UNKNOWN);
  expect(requests).toBe(2);
});

const okWith = (body: string, headers = "") =>
  `HTTP/1.1 200 OK\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const okJson = (body: unknown) => okWith(JSON.stringify(body));

test.each([
  ["an empty body", okWith("")],
  ["no body", "HTTP/1.1 204 No Content\r\n\r\n"],
  ["a body that is cut off", "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"],
  ["chunks that are cut off", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"],
  ["a page of somebody else's", okWith("<html>")],
  ["bytes that are not compressed as they claim", okWith("{}", "Content-Encoding: gzip\r\n")],
  ["JSON that is no object", okWith("[]")],
  ["no messages", okJson({})],
  ["messages that are no list", okJson({ messages: { id: "wamid.1" } })],
  ["an empty list of messages", okJson({ messages: [] })],
  ["a message that is no object", okJson({ messages: ["wamid.1"] })],
  ["a message without an id", okJson({ messages: [{}] })],
  ["an id that is a number", okJson({ messages: [{ id: 7 }] })],
  ["an empty id", okJson({ messages: [{ id: "" }] })],
  ["an id that is too long", okJson({ messages: [{ id: "x".repeat(chatLimits.chatMessageIdCharsMax + 1) }] })],
  ["an answer that is too long", okJson({ ...ACCEPTED, padding: "x".repeat(chatLimits.chatAnswerBytesMax) })],
  ["an error without a code", okJson({ error: { message: "?" } })],
  ["an error of a code that nobody knows", okJson({ error: { code: 987_654 } })],
  ["a gateway's time-out", "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n"],
])("an answer that says nothing about the message leaves its outcome unknown: %s", async (_, answer) => {
  const url = await rawProvider((socket) => socket.end(answer));
  expect(await channelTo(url).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject(UNKNOWN);
});

test("so does an answer that stops in its middle", async () => {
  const url = await rawProvider((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"));
  expect(await channelTo(url, { timeoutMs: 50 }).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject(UNKNOWN);
});

test("a message with an id was accepted, whatever else the answer says; a known error was not", async () => {
  const accepted = provider(() => Response.json({ ...ACCEPTED, error: { code: 1 } }));
  expect(await channelTo(accepted.url).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
  const refused = provider(() => Response.json({ error: { code: 131026 } }));
  expect(await channelTo(refused.url).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "failed" });
});

test("an answer without an end costs bounded memory and a bounded time", async () => {
  const url = await rawProvider((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const piece = `${(65_536).toString(16)}\r\n${"x".repeat(65_536)}\r\n`;
    const flood = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", flood);
    flood();
  });
  expect(await channelTo(url).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject(UNKNOWN);
});

test("an API that refuses connections, or whose name does not exist, is away, and no attempt is spent", async () => {
  const refused = await channelTo(`http://127.0.0.1:${await freePort()}`).deliver(chatJob(), chatTenant(), LIVE);
  const away = { kind: "away", why: "WhatsApp could not be reached" };
  expect(refused).toMatchObject(away);
  const nowhere = await channelTo("http://no-such-host.invalid").deliver(chatJob(), chatTenant(), LIVE);
  expect(nowhere).toMatchObject(away);
  const noTls = await rawProvider((socket) => socket.end("no TLS here"));
  expect(await channelTo(noTls.replace("http:", "https:")).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject(away);
  const aborted = await channelTo("http://127.0.0.1:1").deliver(chatJob(), chatTenant(), AbortSignal.abort());
  expect(aborted).toMatchObject({ kind: "retry", why: "its turn did not come", isUncounted: true, isUnsent: true });
});

test("an API to which no connection comes about in time is away, and no attempt is spent; an abort meanwhile is heeded", async () => {
  const deaf = await startDeafListener();
  running.push(deaf);
  const clock = new VirtualClock(0);
  const channel = channelTo(`http://127.0.0.1:${deaf.port}`, { clock });
  const first = channel.deliver(chatJob(), chatTenant(), LIVE);
  const aborter = new AbortController();
  const second = channel.deliver(chatJob(), chatTenant(), aborter.signal);
  aborter.abort();
  expect(await second).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true });
  await clock.advance(limits.chatConnectMs);
  expect(await first).toMatchObject({ kind: "away", why: "WhatsApp could not be reached" });
});

test("whether it can be reached is asked again half a minute after its last answer", async () => {
  const clock = new VirtualClock(0);
  let connections = 0;
  const url = await rawProvider(
    (socket) => {
      const body = JSON.stringify(ACCEPTED);
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    },
    () => (connections += 1),
  );
  const channel = channelTo(url, { clock });
  for (const [waitMs, made] of [
    [0, 2],
    [29_000, 2],
    [29_000, 2],
    [31_000, 3],
  ] as const) {
    await clock.advance(waitMs);
    expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
    expect(connections).toBe(made);
  }
});

test("where requests go through a proxy, no connection goes before them", () => {
  const reachability = new Reachability(new URL("https://192.0.2.1"), new VirtualClock(0));
  process.env["HTTPS_PROXY"] = "http://127.0.0.1:1";
  try {
    expect(reachability.isReached(LIVE)).toBe(true);
  } finally {
    delete process.env["HTTPS_PROXY"];
  }
});

test("a redirect is not followed: the token is for the provider alone", async () => {
  const elsewhere = provider(() => Response.json(ACCEPTED));
  const { url } = provider(() => new Response(null, { status: 307, headers: { location: `${elsewhere.url}/x` } }));
  expect(await channelTo(url).deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "retry" });
  expect(elsewhere.calls).toHaveLength(0);
});

interface Answered {
  readonly code: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly message?: string;
  readonly details?: string;
  readonly attempts?: number;
}

/** Delivers a message that meets the error, and returns the channel afterwards. */
async function after({ code, status = 400, headers = {}, attempts = 0, ...words }: Answered) {
  const clock = new VirtualClock();
  const telemetry = new CountingTelemetry();
  const { body } = graphError(code, status, words);
  const { url, calls } = provider(() => Response.json(body, { status, headers }));
  const channel = channelTo(url, { clock, telemetry });
  const outcome = await channel.deliver(chatJob({}, { attempts }), chatTenant(), LIVE);
  return { outcome, channel, clock, telemetry, calls };
}

test("a temporary fault is retried, without a pause for other messages", async () => {
  const { outcome, channel } = await after({ code: 131000, status: 500 });
  expect(outcome).toMatchObject({
    kind: "retry",
    why: "WhatsApp did not take the message yet: error 131000: Some title",
  });
  expect(channel.paceMs(chatTenant())).toBe(0);
});

test("an unknown fault is tried four times, and media that cannot be fetched twice", async () => {
  expect((await after({ code: 1, attempts: 2 })).outcome).toMatchObject({ kind: "retry" });
  expect((await after({ code: 1, attempts: 3 })).outcome).toMatchObject({ kind: "failed" });
  expect((await after({ code: 1, status: 500, attempts: 3 })).outcome).toMatchObject({ kind: "retry" });
  expect((await after({ code: 131053 })).outcome).toMatchObject({ kind: "retry" });
  expect((await after({ code: 131053, attempts: 1 })).outcome).toMatchObject({ kind: "failed" });
});

test("a refusal fails with the code, the provider's words and their details", async () => {
  const message = "(#132000) Number of parameters does not match the expected number of params";
  const { outcome } = await after({ code: 132000, message, details: "body: 1 expected, 2 given" });
  expect(outcome).toMatchObject({
    kind: "failed",
    error:
      "WhatsApp refused the message: error 132000: Number of parameters does not match the expected number of params; " +
      "body: 1 expected, 2 given",
  });
});

test("no token, no control character and no endless text reaches a tenant", async () => {
  const message = `Error validating ${TOKEN}\r\n and EAAB${"Z".repeat(200)}\u0000${"long ".repeat(9_000)}`;
  const { outcome } = await after({
    code: 100,
    message,
    details: `EAAC${"Z".repeat(200)} ${TOKEN} ${"\ud83d".repeat(1_000)}`,
  });
  const error = outcome.kind === "failed" ? outcome.error : "";
  expect(error).toStartWith("WhatsApp refused the message: error 100: Error validating (…) and (…) long long");
  expect(error).not.toContain("EAA");
  expect(error.length).toBeLessThan(2 * limits.chatErrorCharsMax + 100);
  expect(/\p{Cc}/u.test(error)).toBe(false);
  expect(error.isWellFormed()).toBe(true);
});

test("a tenant's own token is not repeated either, whatever it looks like", async () => {
  const own = { phoneNumberId: "777", accessToken: "a-secret-of-its-own" };
  const init = { message: `Bad signature in ${own.accessToken}`, details: `The session of ${own.accessToken} is over` };
  const { body } = graphError(190, 401, init);
  const { url } = provider(() => Response.json(body, { status: 401 }));
  const outcome = await channelTo(url).deliver(chatJob(), chatTenant({}, own), LIVE);
  const error = expect.stringContaining("Bad signature in (…); The session of (…) is over");
  expect(outcome).toMatchObject({ error });
  expect(JSON.stringify(outcome)).not.toContain(own.accessToken);
});

test("a throttled number sends slower, and the message costs no attempt", async () => {
  const { outcome, channel, telemetry } = await after({ code: 130429, status: 429 });
  expect(outcome).toMatchObject({ kind: "retry", isUncounted: true });
  expect(outcome).not.toHaveProperty("afterMs");
  expect(telemetry.counted).toContain('chat_provider_errors{"code":"130429","follows":"slow_number"}');
  const tenant = chatTenant();
  let atOnce = 0;
  for (; channel.paceMs(tenant) === 0 && atOnce < 20; atOnce += 1) await channel.deliver(chatJob(), tenant, LIVE);
  // At full rate eight would go at once.
  expect(atOnce).toBeLessThan(5);
});

test.each([
  [{ "retry-after": "90" }, 90_000],
  [{ "retry-after": "Thu, 15 Jan 2026 00:02:00 GMT" }, 120_000],
  [{ "retry-after": "Wed, 14 Jan 2026 00:00:00 GMT" }, 0],
  [{ "retry-after": "soon" }, 0],
  [{ "x-business-use-case-usage": '{"1":[{"estimated_time_to_regain_access":3}],"2":[]}' }, 180_000],
  [{ "x-business-use-case-usage": '{"1":[{"estimated_time_to_regain_access":0}]}' }, 0],
  [{ "x-business-use-case-usage": '{"1":[null,{"estimated_time_to_regain_access":"9"}],"2":7}' }, 0],
  [{ "x-business-use-case-usage": "[nonsense" }, 0],
  [{ "x-business-use-case-usage": '{"1":[{"type":"ads_management","estimated_time_to_regain_access":9}]}' }, 0],
  [{ "x-business-use-case-usage": '{"1":[{"type":"whatsapp","estimated_time_to_regain_access":1}]}' }, 60_000],
  [{ "retry-after": "60", "x-business-use-case-usage": '{"1":[{"estimated_time_to_regain_access":2}]}' }, 120_000],
  [{ "retry-after": "999999999" }, chatLimits.chatPauseMsMax],
] as const)(
  "the wait that the provider asks for is kept, by the message and by its number: %j",
  async (headers, waitMs) => {
    const { outcome, channel, clock } = await after({ code: 130429, status: 429, headers });
    expect(outcome.kind === "retry" ? (outcome.afterMs ?? 0) : -1).toBe(waitMs);
    if (waitMs === 0) return;
    await clock.advance(waitMs - 1);
    expect(channel.paceMs(chatTenant())).toBeGreaterThan(0);
    await clock.advance(1_001);
    expect(channel.paceMs(chatTenant())).toBe(0);
  },
);

test("a wait that comes with an accepted message holds for the next one", async () => {
  const clock = new VirtualClock();
  const headers = { "x-business-use-case-usage": '{"1":[{"estimated_time_to_regain_access":1}]}' };
  const { url } = provider(() => Response.json(ACCEPTED, { headers }));
  const channel = channelTo(url, { clock });
  expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
  await clock.advance(59_999);
  expect(channel.paceMs(chatTenant())).toBe(1);
});

test("one recipient who was written to too often waits, and all others are sent to", async () => {
  const clock = new VirtualClock();
  const { url, calls } = provider(({ text }) =>
    JSON.parse(text).to === "5491100000001"
      ? Response.json(graphError(131056, 400).body, { status: 400 })
      : Response.json(ACCEPTED),
  );
  const channel = channelTo(url, { clock });
  const busy = chatJob({ to: "5491100000001" });
  expect(await channel.deliver(busy, chatTenant(), LIVE)).toMatchObject({ afterMs: 6_000, isUncounted: true });
  expect(await channel.deliver(busy, chatTenant(), LIVE)).toMatchObject({ kind: "retry", afterMs: 12_000 });
  expect(calls).toHaveLength(1);
  expect(channel.paceMs(chatTenant())).toBe(0);
  expect(await channel.deliver(chatJob(), chatTenant(), LIVE)).toMatchObject({ kind: "delivered" });
  const own = chatTenant({}, { phoneNumberId: "777", accessToken: "own" });
  await channel.deliver(busy, own, LIVE);
  expect(calls).toHaveLength(3);
});

test("a number that was reported too often pauses for hours, and its message waits with it", async () => {
  const { outcome, channel, telemetry } = await after({ code: 131048 });
  expect(outcome).toMatchObject({ kind: "retry", isUncounted: true, afterMs: chatLimits.chatSpamPauseMs });
  expect(channel.paceMs(chatTenant())).toBe(chatLimits.chatAskAgainMs);
  expect(telemetry.counted).toContain('chat_numbers_paused{"why":"pause_number"}');
});

test("a provider that is out of order and names a time is asked again after it", async () => {
  const { outcome, channel } = await after({ code: 131016, status: 503, headers: { "retry-after": "20" } });
  expect(outcome).toMatchObject({ kind: "retry", isUncounted: true, afterMs: 20_000 });
  expect(channel.paceMs(chatTenant())).toBe(20_000);
  expect((await after({ code: 131016, status: 503 })).channel.paceMs(chatTenant())).toBe(0);
});

test("a locked account fails the message and rests, but not other numbers", async () => {
  const { outcome, channel, clock } = await after({ code: 368 });
  expect(outcome).toMatchObject({ kind: "failed" });
  await clock.advance(chatLimits.chatLockedPauseMs - 1);
  expect(channel.paceMs(chatTenant())).toBe(1);
  expect(channel.paceMs(chatTenant({}, { phoneNumberId: "777", accessToken: "own" }))).toBe(0);
});

test("refused credentials fail the message, are told of once, and stop the number until they change", async () => {
  const { outcome, channel, telemetry } = await after({ code: 190, status: 401 });
  expect(outcome).toMatchObject({
    kind: "failed",
    error: "WhatsApp refused the platform's WhatsApp credentials or account: error 190: Some title",
  });
  expect(channel.paceMs(chatTenant())).toBe(chatLimits.chatNewTokenMs);
  await channel.deliver(chatJob(), chatTenant(), LIVE);
  expect(telemetry.lines.filter((line) => line.startsWith("error"))).toHaveLength(1);
  expect(telemetry.lines.join()).not.toContain(TOKEN);
  expect(channel.paceMs(chatTenant({}, { ...PLATFORM, accessToken: "new" }))).toBe(0);
});

test("a tenant is told that it is its own credentials that were refused", async () => {
  const { url } = provider(() => Response.json(graphError(190, 401).body, { status: 401 }));
  const tenant = chatTenant({}, { phoneNumberId: "777", accessToken: "own" });
  expect(await channelTo(url).deliver(chatJob(), tenant, LIVE)).toMatchObject({
    error: expect.stringContaining("your WhatsApp credentials"),
  });
});
