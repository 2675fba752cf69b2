import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { parsePayload } from "../../src/channels/email/payload.ts";
import { LargeBodies } from "../../src/http/request-body.ts";
import { Front, OPERATOR_TOKEN } from "../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);

const PATH = "/tenants/acme/templates";
const TEMPLATE = {
  channel: "email",
  subject: "Hi {{.name}}",
  html: "<p>Hi {{.name}}, {{ .user.city }}</p><style>@media print{.a{color:red}}</style>",
};

test.each<[Record<string, string>, string]>([
  [{ html: "<p>\n  x {{.name</p>" }, 'html has a broken placeholder at line 2, column 5: "{{.name</p>"'],
  [{ html: "{{name}}" }, 'html has a broken placeholder at line 1, column 1: "{{name}}"'],
  [{ html: "{{.a}}{{#if .b}}" }, 'html has a broken placeholder at line 1, column 7: "{{#if .b}}"'],
  [{ html: "{{}}" }, "write braces that are meant literally as &#123;&#123;"],
  [{ subject: "Hi {{.na me}}" }, 'subject has a broken placeholder at line 1, column 4: "{{.na me}}"'],
  [{ text: "{{.}} {{.a}}" }, "braces that are meant literally come from a variable"],
  [{ text: "{{{{.a}}" }, 'text has a broken placeholder at line 1, column 1: "{{{{.a}}"'],
])("a template with a broken placeholder is refused with the place: %j", async (flaw, error) => {
  const answer = await front.operate("PUT", `${PATH}/broken`, { ...TEMPLATE, ...flaw });
  expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(error)]);
  expect((await front.operate("GET", `${PATH}/broken`)).status).toBe(404);
});

test("braces that can mean only themselves are taken, and templates stored before are sent as they were", async () => {
  const html = "<p>{{{.name}}} &#123;&#123;x}} } {</p><script>if(a){b={c:{}}}</script>";
  expect((await front.operate("PUT", `${PATH}/braces`, { ...TEMPLATE, html })).status).toBe(200);
  const old = {
    slug: "old",
    channel: "email",
    subject: "x {{.name",
    html: "<p>x {{.name {{.city}}</p>",
    text: null,
  } as const;
  await front.registry.putTemplate("acme", old);
  const answer = await front.operate("POST", `${PATH}/old/preview`, { data: { city: "Rome" } });
  expect(answer.body).toMatchObject({ subject: "x {{.name", html: "<p>x {{.name Rome</p>" });
});

test("a preview shows what a send would make, what is missing, its size and its spam score", async () => {
  await front.operate("PUT", `${PATH}/welcome`, TEMPLATE);
  const { status, body } = await front.operate("POST", `${PATH}/welcome/preview`, { data: { name: "<Ann>" } });
  expect([status, body]).toEqual([
    200,
    {
      channel: "email",
      subject: "Hi <Ann>",
      html: "<p>Hi &lt;Ann&gt;, </p><style>@media print{.a{color:red}}</style>",
      text: expect.stringContaining("Hi <Ann>,"),
      missing: ["user.city"],
      size_bytes: expect.any(Number),
      spam: { score: expect.any(Number), rules: expect.any(Array) },
    },
  ]);
  const { subject, html, text } = body as Record<string, string>;
  expect(body["size_bytes"]).toBe(Buffer.byteLength(`${subject}${html}${text}`));
  const bare = await front.operate("POST", `${PATH}/welcome/preview`, {});
  expect(bare.body["missing"]).toEqual(["name", "user.city"]);
  const shout = {
    ...TEMPLATE,
    subject: "FREE MONEY!!! ACT NOW",
    html: "<p>You won a lottery prize, click here now</p>",
  };
  await front.operate("PUT", `${PATH}/shout`, shout);
  const scored = await front.operate("POST", `${PATH}/shout/preview`, {});
  expect((scored.body["spam"] as { score: number }).score).toBeGreaterThan(0);
});

test("a preview shows a sample of the unsubscribe link, which is not missing but in a subject", async () => {
  const html = '<p>x</p><a href="{{.unsubscribe_url}}">Leave</a>';
  const template = { channel: "email", subject: "Hi", html, topic: "Product  News" };
  const put = await front.operate("PUT", `${PATH}/leave`, template);
  expect([put.status, put.body["topic"]]).toEqual([200, "product news"]);
  expect((await front.operate("GET", `${PATH}/leave`)).body["topic"]).toBe("product news");
  const { body } = await front.operate("POST", `${PATH}/leave/preview`, {});
  expect(body).toMatchObject({
    html: '<p>x</p><a href="https://example.com/unsubscribe">Leave</a>',
    text: expect.stringContaining("https://example.com/unsubscribe"),
    missing: [],
  });
  await front.operate("PUT", `${PATH}/leave`, { ...template, subject: "{{.unsubscribe_url}}", topic: null });
  expect((await front.operate("POST", `${PATH}/leave/preview`, {})).body["missing"]).toEqual(["unsubscribe_url"]);
  expect((await front.operate("GET", `${PATH}/leave`)).body).not.toHaveProperty("topic");
  const refused = await front.operate("PUT", `${PATH}/leave`, { ...template, topic: "a@b" });
  expect([refused.status, refused.body["error"]]).toEqual([400, expect.stringContaining("topic must be 1 to 64")]);
  await front.operate("DELETE", `${PATH}/leave`);
});

test.each([
  ["that is long", { html: `<p>${"word ".repeat(10_000)}</p>`, data: {} }, true],
  ["that its values make long", { html: "<p>{{.a}}{{.a}}</p>", data: { a: "word ".repeat(4_000) } }, true],
  ["whose text its values make long", { html: "<p>x</p>", text: "{{.a}}", data: { a: "<".repeat(40_000) } }, true],
  ["that is short", { html: "<p>{{.a}}</p>", data: { a: "word ".repeat(100) } }, false],
])(
  "the preview of a message %s is made in its caller's turn, if it is heavy",
  async (_what, { data, ...template }, waits) => {
    await front.operate("PUT", `${PATH}/weighed`, { ...TEMPLATE, ...template });
    const turns = spyOn(LargeBodies.prototype, "inTurn");
    try {
      expect((await front.operate("POST", `${PATH}/weighed/preview`, { data })).status).toBe(200);
      const headers = { "Content-Type": "application/json", "X-API-Key": front.apiKey };
      const own = { method: "POST", headers, body: JSON.stringify({ data }) };
      expect((await fetch(`${front.url}/v1/templates/weighed/preview`, own)).status).toBe(200);
      const callers = turns.mock.calls.map(([caller]) => caller);
      expect(callers).toEqual(waits ? ["operator", expect.objectContaining({ tenantId: "acme" })] : []);
    } finally {
      turns.mockRestore();
    }
  },
);

test("a message that would be too large to send is refused in the preview as well", async () => {
  await front.operate("PUT", `${PATH}/large`, { ...TEMPLATE, html: "<p>{{.a}}{{.a}}</p>" });
  const answer = await front.operate("POST", `${PATH}/large/preview`, { data: { a: "x".repeat(300_000) } });
  expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining("would be larger than 512 KB")]);
});

test("the preview of a pass template is the pass_data laid over it, checked as in a send", async () => {
  const ticket = {
    channel: "wallet",
    pass_type: "apple",
    style: "eventTicket",
    pass_data: { organization_name: "Acme", primary_fields: [{ key: "event", label: "Event", value: "?" }] },
  };
  expect((await front.operate("PUT", `${PATH}/ticket`, ticket)).status).toBe(200);
  const data = { serial_number: "7", primary_fields: [{ key: "event", value: "The final" }] };
  const { status, body } = await front.operate("POST", `${PATH}/ticket/preview`, { data });
  expect([status, body]).toEqual([
    200,
    {
      channel: "wallet",
      pass_type: "apple",
      style: "eventTicket",
      pass_data: expect.objectContaining({
        organizationName: "Acme",
        serialNumber: "7",
        primaryFields: [{ key: "event", label: "Event", value: "The final" }],
      }),
    },
  ]);
  const refused = await front.operate("POST", `${PATH}/ticket/preview`, { data: { label_color: "green-ish" } });
  expect([refused.status, refused.body["error"]]).toEqual([400, expect.stringContaining("label_color")]);
});

test("a test send queues a real job of the tenant, beside its rate window, and answers its id", async () => {
  await front.operate("PUT", `${PATH}/welcome`, TEMPLATE);
  const [queued, counted] = [front.queue.queued.length, front.queue.counted];
  const body = { to_address: "Ann@Example.com", to_name: "Ann", data: { name: "Ann" } };
  const answer = await front.operate("POST", `${PATH}/welcome/test`, body);
  expect([answer.status, answer.body]).toEqual([202, { job_id: expect.any(String), status: "pending" }]);
  const last = front.queue.queued.at(-1);
  expect([front.queue.queued.length, front.queue.counted]).toEqual([queued + 1, counted]);
  expect(last).toMatchObject({ tenantId: "acme", job: { jobId: answer.body["job_id"], template: "welcome" } });
  expect(parsePayload(last?.job.payload ?? "")).toMatchObject({ to: "Ann@Example.com", template: "welcome" });
});

test("a repeated test send under one Idempotency-Key queues nothing more, and another body under it is refused", async () => {
  await front.operate("PUT", `${PATH}/welcome`, TEMPLATE);
  const queued = front.queue.queued.length;
  const ask = (path: string, caller: Record<string, string>, key: string, data: unknown = {}) => {
    const headers = { ...caller, "Content-Type": "application/json", "Idempotency-Key": key };
    return front.fetch(path, {
      method: "POST",
      headers,
      body: JSON.stringify({ to_address: "ann@example.com", data }),
    });
  };
  const callers = [
    ["/v1/templates", { "X-API-Key": front.apiKey }],
    [`/dash/api${PATH}`, { Authorization: `Bearer ${OPERATOR_TOKEN}` }],
  ] as const;
  for (const [i, [path, caller]] of callers.entries()) {
    const key = `trial-${i}`;
    const one = await ask(`${path}/welcome/test`, caller, key);
    expect([one.status, one.headers.get("Idempotency-Replayed")]).toEqual([202, null]);
    const two = await ask(`${path}/welcome/test`, caller, key);
    expect([two.status, two.body, two.headers.get("Idempotency-Replayed")]).toEqual([202, one.body, "true"]);
    const other = await ask(`${path}/welcome/test`, caller, key, { name: "Bob" });
    expect([other.status, other.body["error"]]).toEqual([
      422,
      expect.stringContaining("used before with another body"),
    ]);
    expect((await ask(`${path}/welcome/test`, caller, "é")).status).toBe(400);
    expect(front.queue.queued.length).toBe(queued + i + 1);
  }
  const [path, caller] = callers[0];
  await front.operate("DELETE", `${PATH}/welcome`);
  expect((await ask(`${path}/welcome/test`, caller, "trial-0")).headers.get("Idempotency-Replayed")).toBe("true");
  expect((await ask(`${path}/welcome/test`, caller, "trial-new")).status).toBe(404);
  expect((await ask("/dash/api/tenants/nobody/templates/welcome/test", callers[1][1], "trial-1")).status).toBe(404);
});

test("a test send is refused for what a send is refused for, and queues nothing then", async () => {
  await front.operate("PUT", `${PATH}/welcome`, TEMPLATE);
  const queued = front.queue.queued.length;
  const send = async (path: string, body: unknown) => {
    const answer = await front.operate("POST", path, body);
    return [answer.status, answer.body["error"]];
  };
  const to = { to_address: "ann@example.com" };
  expect(await send(`${PATH}/welcome/test`, {})).toEqual([400, "to_address is required"]);
  expect(await send(`${PATH}/welcome/test`, [])).toEqual([400, "the body must be a JSON object"]);
  expect(await send(`${PATH}/welcome/test`, { ...to, html: "<p>x</p>" })).toEqual([
    400,
    expect.stringContaining("html is not a member of this request"),
  ]);
  expect(await send(`${PATH}/none/test`, to)).toEqual([404, "there is no such template"]);
  expect(await send("/tenants/nobody/templates/welcome/test", to)).toEqual([404, "there is no such tenant"]);
  expect(await send(`${PATH}/ticket/test`, to)).toEqual([409, expect.stringContaining("preview them")]);
  await front.registry.createTenant({ id: "no-mail", name: "No mail", channels: ["wallet"] });
  await front.operate("PUT", "/tenants/no-mail/templates/welcome", TEMPLATE);
  expect(await send("/tenants/no-mail/templates/welcome/test", to)).toEqual([
    409,
    "the channel email is not enabled for this tenant",
  ]);
  await front.operate("PATCH", "/tenants/no-mail", { channels: ["email"], allow_custom: ["email"] });
  await front.operate("PUT", "/tenants/no-mail/credentials/email", { from_address: "me@unverified.example" });
  expect(await send("/tenants/no-mail/templates/welcome/test", to)).toEqual([
    409,
    expect.stringContaining("unverified.example is not verified"),
  ]);
  expect(front.queue.queued.length).toBe(queued);
});
