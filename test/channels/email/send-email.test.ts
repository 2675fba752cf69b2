import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../../src/domain/errors.ts";
import { isJobId } from "../../../src/domain/ids.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import { Front } from "../../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.queue.failure = null;
  front.database.isAway = false;
  front.queue.queued.length = 0;
  front.queue.counted = 0;
});

const SEND = { to_address: "ada@example.com", template_id: "welcome" } as const;
const KNOWN =
  "known are to_address, to_name, subject, template_id, html, text, topic, data, cc, bcc, reply_to, headers, tracking, attachments, tags, pass, scheduled_at, fallback";
const NO_SUCH = 'there is no e-mail template with the template_id "no-such"';

function payload(): unknown {
  return JSON.parse(front.queue.queued.at(-1)?.job.payload ?? "null");
}

describe("a valid send", () => {
  test("is queued and answered with its job_id", async () => {
    const answer = await front.send({
      ...SEND,
      to_name: "Ada",
      subject: "Hello {{.name}}",
      data: { name: "Ada", nested: { list: [1, null, true] } },
    });
    expect(answer.status).toBe(202);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(Object.keys(answer.body)).toEqual(["job_id", "status"]);
    expect(answer.body["status"]).toBe("pending");
    expect(isJobId(String(answer.body["job_id"]))).toBe(true);
    expect(front.queue.queued).toHaveLength(1);
    const { tenantId, job } = front.queue.queued[0] ?? {};
    expect(tenantId).toBe("acme");
    expect(job?.jobId).toBe(String(answer.body["job_id"]));
    expect(job?.channel).toBe("email");
    expect(job?.idempotency).toBeNull();
    expect(job?.template).toBe("welcome");
    expect(payload()).toEqual({
      to: "ada@example.com",
      toName: "Ada",
      subject: "Hello {{.name}}",
      template: "welcome",
      data: { name: "Ada", nested: { list: [1, null, true] } },
    });
  });

  test("names its recipient without regard to case, and keeps the address as it was given", async () => {
    await front.send({ ...SEND, to_address: "Ada@Example.COM" });
    expect(front.queue.queued[0]?.job.recipient).toBe("ada@example.com");
    expect(payload()).toEqual({ to: "Ada@Example.COM", template: "welcome" });
  });

  test("with both html and template_id carries the html, and the template's subject unless it has its own", async () => {
    const answer = await front.send({ ...SEND, html: "<p>Hello</p>" });
    expect(answer.status).toBe(202);
    expect(payload()).toEqual({ to: "ada@example.com", html: "<p>Hello</p>", subject: "Hi" });
    expect(front.queue.queued[0]?.job).not.toHaveProperty("template");
    await front.send({ ...SEND, html: "<p>Hello</p>", subject: "Mine" });
    expect(payload()).toMatchObject({ subject: "Mine" });
  });

  test("may have null for an optional member, as if it were absent", async () => {
    const nothing = { to_name: null, subject: null, html: null, data: null };
    expect((await front.send({ ...SEND, ...nothing })).status).toBe(202);
    expect(payload()).toEqual({ to: "ada@example.com", template: "welcome" });
    expect((await front.send({ ...SEND, template_id: null, html: "<p>Hello</p>" })).status).toBe(202);
  });

  test("is accepted while the tenant has to be loaded first", async () => {
    await front.forgetAcme();
    expect(front.stores.directory.byIdNow?.("acme")).toBeUndefined();
    expect((await front.send(SEND)).status).toBe(202);
  });

  test.each([
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
  ])("may be declared as %s", async (type) => {
    expect((await front.send(SEND, { "Content-Type": type })).status).toBe(202);
  });

  test("keeps a data key named __proto__ as data", async () => {
    const answer = await front.send(
      '{"to_address":"a@b.example","template_id":"welcome","data":{"__proto__":{"polluted":1}}}',
    );
    expect(answer.status).toBe(202);
    expect(front.queue.queued[0]?.job.payload).toBe(
      '{"to":"a@b.example","template":"welcome","data":{"__proto__":{"polluted":1}}}',
    );
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("ignores inherited fields", async () => {
    const answer = await front.send('{"__proto__":{"to_address":"a@b.example","template_id":"welcome"}}');
    const error = `__proto__ is not a member of this request: ${KNOWN}`;
    expect([answer.status, answer.body]).toEqual([400, { error }]);
  });
});

describe("a malformed send is refused with 400 and a sentence that names the field", () => {
  const address = "to_address must be one e-mail address of at most 254 bytes, such as ada@example.com";
  test.each<[string, unknown, string]>([
    ["an empty object", {}, "to_address is required"],
    ["an empty to_address", { ...SEND, to_address: "" }, "to_address is required"],
    ["a null to_address", { ...SEND, to_address: null }, "to_address is required"],
    ["a member that nobody knows", { ...SEND, to: "bob@example.com" }, `to is not a member of this request: ${KNOWN}`],
    ["html beside an unknown template", { ...SEND, html: "<p>Hello</p>", template_id: "no-such" }, NO_SUCH],
    ["a numeric to_address", { ...SEND, to_address: 5 }, "to_address must be a string"],
    ["a list of addresses", { ...SEND, to_address: ["a@b.example"] }, "to_address must be a string"],
    ["two addresses", { ...SEND, to_address: "a@b.example,c@d.example" }, address],
    ["a display name", { ...SEND, to_address: "Ada <a@b.example>" }, address],
    ["a long address", { ...SEND, to_address: `a@${"b".repeat(60)}.${"c.".repeat(100)}example` }, address],
    [
      "a line break in to_address",
      { ...SEND, to_address: "a@b.example\r\nBcc: c@d.example" },
      "to_address must not contain control characters",
    ],
    [
      "a line break in to_name",
      { ...SEND, to_name: "Ada\nBcc: c@d.example" },
      "to_name must not contain control characters",
    ],
    ["a NUL in subject", { ...SEND, subject: "a\u0000b" }, "subject must not contain control characters"],
    ["a C1 control in subject", { ...SEND, subject: "a\u0085b" }, "subject must not contain control characters"],
    ["a long subject", { ...SEND, subject: "s".repeat(999) }, "subject must not be longer than 998 characters"],
    ["a numeric to_name", { ...SEND, to_name: 1 }, "to_name must be a string"],
    ["an object as template_id", { ...SEND, template_id: {} }, "template_id must be a string"],
    ["a boolean html", { ...SEND, html: true }, "html must be a string"],
    ["data as a list", { ...SEND, data: [1] }, "data must be an object"],
    ["data as text", { ...SEND, data: "x" }, "data must be an object"],
    ["neither template_id nor html nor text", { to_address: "a@b.example" }, "template_id, html or text is required"],
    ["an empty template_id", { ...SEND, template_id: "" }, "template_id, html or text is required"],
    ["an unknown template", { ...SEND, template_id: "no-such" }, NO_SUCH],
    [
      "a template named like a built-in",
      { ...SEND, template_id: "__proto__" },
      'there is no e-mail template with the template_id "__proto__"',
    ],
    ["a list", [SEND], "the body must be a JSON object"],
    ["a null", "null", "the body must be a JSON object"],
    ["a number", "5", "the body must be a JSON object"],
    ["a string", '"x"', "the body must be a JSON object"],
    ["nothing", "", "the body is not valid JSON"],
    ["cut JSON", '{"to_address":', "the body is not valid JSON"],
    ["two values", "{}{}", "the body is not valid JSON"],
    ["JSON with a trailing comma", '{"a":1,}', "the body is not valid JSON"],
    ["a hundred thousand levels", `{"data":${"[".repeat(100_000)}`, "the body is nested deeper than 100 levels"],
  ])("%s", async (_case, body, error) => {
    const answer = await front.send(body);
    expect([answer.status, answer.body]).toEqual([400, { error }]);
    expect(front.queue.queued).toBeEmpty();
    expect(front.queue.counted).toBe(1);
    expect(answer.headers.get("ratelimit-limit")).toBe("100000");
  });

  test("brackets inside strings are not levels", async () => {
    expect((await front.send({ ...SEND, data: { text: `\\"${"[{".repeat(500)}` } })).status).toBe(202);
  });

  test.each([
    null,
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/jsonx",
    "application/json; charset=latin1",
  ])("the content type %p", async (type) => {
    const body = new TextEncoder().encode(JSON.stringify(SEND));
    const headers = { "X-API-Key": front.apiKey, ...(type === null ? null : { "Content-Type": type }) };
    const answer = await front.fetch("/v1/send/email", { method: "POST", headers, body });
    expect([answer.status, answer.body]).toEqual([400, { error: "the Content-Type must be application/json" }]);
  });

  test("bytes that are not UTF-8", async () => {
    const headers = { "X-API-Key": front.apiKey, "Content-Type": "application/json" };
    const body = Buffer.from('{"to_address":"a\xff@b.example"}', "latin1");
    const answer = await front.fetch("/v1/send/email", { method: "POST", headers, body });
    expect([answer.status, answer.body]).toEqual([400, { error: "the body is not valid UTF-8" }]);
  });
});

describe("inline HTML", () => {
  test("without allow_raw_html is refused with 403, after a malformed body and before its content is checked", async () => {
    const key = await front.addTenant("plain", "pro");
    const refused = await front.send({ to_address: "a@b.example", html: "" }, { "X-API-Key": key });
    expect(refused.status).toBe(403);
    expect(refused.body["error"]).toContain("allow_raw_html");
    expect(refused.body["violations"]).toBeUndefined();
    expect((await front.send({ html: "<p>x</p>" }, { "X-API-Key": key })).status).toBe(400);
  });

  test.each([
    ["empty", ""],
    ["image_only", '<img src="https://example.com/a.png">'],
    ["script", "<p>Hello</p><script>alert(1)</script>"],
    ["too_large", `<p>${"x".repeat(524_288)}</p>`],
  ])("that is %s is refused with 422 and says so", async (rule, html) => {
    const answer = await front.send({ ...SEND, html });
    expect(answer.status).toBe(422);
    expect(answer.body["violations"]).toContainEqual({ rule, message: expect.any(String) });
    expect(typeof answer.body["error"]).toBe("string");
    expect(front.queue.queued).toBeEmpty();
  });

  test.each([
    ["empty", {}],
    ["too_large", { x: "y".repeat(524_288) }],
  ])("that is %s once its placeholders are filled is refused, too", async (rule, data) => {
    const answer = await front.send({ ...SEND, html: "<p>{{.x}}</p>", data });
    expect([answer.status, answer.body["violations"]]).toEqual([422, [{ rule, message: expect.any(String) }]]);
    expect(front.queue.queued).toBeEmpty();
  });
});

test("a template that would be too large once it is filled is refused before it is queued", async () => {
  const html = "<p>Hello {{.x}}</p>";
  await front.operate("PUT", "/tenants/acme/templates/greeting", { channel: "email", subject: "s", html });
  const send = { to_address: "ada@example.com", template_id: "greeting" };
  const answer = await front.send({ ...send, data: { x: "y".repeat(524_288) } });
  expect([answer.status, answer.body["violations"]]).toEqual([
    422,
    [{ rule: "too_large", message: expect.any(String) }],
  ]);
  expect(front.queue.queued).toBeEmpty();
  expect((await front.send({ ...send, data: { x: "Ada" } })).status).toBe(202);
});

describe("the order of the checks", () => {
  test("a caller without a key gets 401, and is not counted", async () => {
    for (const key of ["", "wrong", "x".repeat(5000)]) {
      const answer = await front.send("{", { "X-API-Key": key, "Content-Type": "text/plain" });
      expect([answer.status, answer.body]).toEqual([
        401,
        { error: "the API key is missing or unknown: send it as X-API-Key" },
      ]);
      expect(answer.headers.get("www-authenticate")).toStartWith("ApiKey");
      expect(answer.headers.has("ratelimit-limit")).toBe(false);
    }
    expect(front.queue.counted).toBe(0);
  });

  test("a disabled channel is 403 before a malformed body is 400", async () => {
    const key = await front.addTenant("chat-only", "pro");
    await front.registry.changeTenant("chat-only", { channels: ["whatsapp"] });
    const answer = await front.send("{", { "X-API-Key": key });
    expect([answer.status, answer.body]).toEqual([403, { error: "the channel email is not enabled for this tenant" }]);
    expect(front.queue.counted).toBe(1);
  });

  test("over the limit, everything is 429 with Retry-After: valid, malformed, forbidden", async () => {
    await front.registry.putPlan({ name: "two", requestsPerMinute: 2, deliveriesPerSecond: null, ...QUEUE_SHARE });
    const key = await front.addTenant("small", "two");
    expect((await front.send(SEND, { "X-API-Key": key })).status).toBe(400);
    expect((await front.send("{", { "X-API-Key": key })).headers.get("ratelimit-remaining")).toBe("0");
    await front.registry.putTemplate("small", {
      slug: "welcome",
      channel: "email",
      subject: "Hi",
      html: "x",
      text: null,
    });
    await front.registry.changeTenant("small", { channels: ["email"] });
    for (const body of [SEND, "{", { ...SEND, html: "" }]) {
      const answer = await front.send(body, { "X-API-Key": key });
      expect(answer.status).toBe(429);
      expect(answer.body["error"]).toBeString();
      expect(answer.headers.get("retry-after")).toBe("17");
      expect(answer.headers.get("ratelimit-limit")).toBe("2");
      expect(answer.headers.get("ratelimit-remaining")).toBe("0");
      expect(answer.headers.get("ratelimit-reset")).toBe("17");
    }
    expect(front.queue.queued).toBeEmpty();
  });

  test("every send counts exactly once, taken or refused", async () => {
    const answers = await Promise.all([SEND, {}, "{", { ...SEND, html: "" }, SEND].map((body) => front.send(body)));
    expect(answers.map(({ status }) => status)).toEqual([202, 400, 400, 422, 202]);
    expect(front.queue.counted).toBe(5);
  });
});

describe("an Idempotency-Key", () => {
  test("with the same body answers the first job_id again and queues nothing", async () => {
    const first = await front.send(SEND, { "Idempotency-Key": "order 1" });
    const again = await front.send(SEND, { "Idempotency-Key": "order 1" });
    expect([first.status, again.status]).toEqual([202, 202]);
    expect(again.body).toEqual(first.body);
    expect(first.headers.has("idempotency-replayed")).toBe(false);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(front.queue.queued).toHaveLength(1);
  });

  test("a replay is the first answer, also when the template is gone by now", async () => {
    const template = { slug: "fleeting", channel: "email", subject: "Hi", html: "<p>Hi</p>", text: null } as const;
    await front.registry.putTemplate("acme", template);
    const send = { to_address: "ada@example.com", template_id: "fleeting" };
    const first = await front.send(send, { "Idempotency-Key": "fleeting-1" });
    expect(first.status).toBe(202);
    await front.registry.deleteTemplate("acme", "fleeting");
    const again = await front.send(send, { "Idempotency-Key": "fleeting-1" });
    expect([again.status, again.body]).toEqual([202, first.body]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect((await front.send(send, { "Idempotency-Key": "fleeting-2" })).status).toBe(400);
  });

  test("with another body is 422", async () => {
    await front.send(SEND, { "Idempotency-Key": "order 2" });
    const answer = await front.send({ ...SEND, to_name: "Ada" }, { "Idempotency-Key": "order 2" });
    expect([answer.status, answer.body]).toEqual([
      422,
      { error: "this Idempotency-Key was used before with another body" },
    ]);
    expect(front.queue.queued).toHaveLength(1);
  });

  test("is free again after a refused send", async () => {
    expect((await front.send({}, { "Idempotency-Key": "order 3" })).status).toBe(400);
    expect((await front.send(SEND, { "Idempotency-Key": "order 3" })).status).toBe(202);
  });

  test.each(["", "x".repeat(256), "a\u00e9", "a\tb"])(
    "that is not 1 to 255 printable ASCII characters is 400: %p",
    async (key) => {
      const answer = await front.send(SEND, { "Idempotency-Key": key });
      expect(answer.status).toBe(400);
      expect(answer.body["error"]).toStartWith("the Idempotency-Key must be");
      expect(front.queue.queued).toBeEmpty();
    },
  );

  test("of 255 characters is accepted", async () => {
    expect((await front.send(SEND, { "Idempotency-Key": "x".repeat(255) })).status).toBe(202);
  });
});

describe("when something fails", () => {
  test.each([
    [TransportError, "it is not known whether the job was queued"],
    [UnavailableError, "the job was not queued"],
  ])("a queue that answers with a %p is a 500 that says what to do", async (Failure, effect) => {
    front.queue.failure = new Failure("redis is away");
    const answer = await front.send(SEND);
    const error = `${effect}: try again, with an Idempotency-Key if it must not be sent twice`;
    expect([answer.status, answer.body]).toEqual([500, { error }]);
  });

  test("an unexpected error is a 500 without a name or a stack, logged with the request id", async () => {
    front.queue.failure = new RangeError("secret internals");
    const answer = await front.send(SEND, { "X-Request-Id": "trace-me" });
    expect([answer.status, answer.text]).toEqual([500, '{"error":"internal error"}']);
    expect(answer.headers.get("x-request-id")).toBe("trace-me");
    const log = JSON.stringify(front.logs.at(-1));
    expect(log).toContain("trace-me");
    expect(log).toContain("secret internals");
  });

  test("a registry that cannot be reached is a 500 that does not name the part that is away", async () => {
    await front.forgetAcme();
    front.database.isAway = true;
    const answer = await front.send(SEND);
    expect([answer.status, answer.text]).toEqual([
      500,
      '{"error":"a part of the service cannot be reached at the moment: try again"}',
    ]);
  });
});
