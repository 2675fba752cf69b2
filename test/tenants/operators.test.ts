import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { SandboxInbox, SandboxMessage } from "../../src/domain/jobs/report.ts";
import { type Answer, Front } from "../http/support/front.ts";

const MESSAGE: SandboxMessage = {
  channel: "email",
  received_at: "2026-11-21T07:30:00.000Z",
  from: "no-reply@waybill.test",
  to: "ada@example.com",
  subject: "Hello",
  source: "Subject: Hello\r\n\r\nHello",
};
const sandbox: SandboxInbox = {
  erase: () => 0,
  messages: (to, limit) => [MESSAGE, MESSAGE].filter((message) => to === null || message.to === to).slice(0, limit),
};

let front: Front;
beforeAll(async () => {
  front = await Front.start({ sandbox });
});
afterAll(() => front.stop(), 90_000);

function expectRefused(answer: Answer, status: number, error: string): void {
  expect([answer.status, answer.body]).toEqual([status, { error }]);
}

describe("tenants", () => {
  test("are created, shown, listed and changed", async () => {
    const created = await front.operate("POST", "/tenants", {
      id: "globex",
      name: "Globex",
      plan: "pro",
      channels: ["email"],
      tokens: 5,
    });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({ id: "globex", plan: "pro", channels: ["email"], permissions: [], tokens: 5 });
    expect((await front.operate("GET", "/tenants/globex")).body).toEqual(created.body);
    const list = await front.operate("GET", "/tenants?limit=1");
    expect(list.body).toMatchObject({ tenants: [{ id: "acme" }], next_cursor: "acme" });
    expect((await front.operate("GET", "/tenants?limit=1&cursor=acme")).body).toMatchObject({
      tenants: [{ id: "globex" }],
      next_cursor: null,
    });
    const changed = await front.operate("PATCH", "/tenants/globex", {
      permissions: ["allow_raw_html"],
      name: "Globex Corp",
    });
    expect(changed.body).toMatchObject({ name: "Globex Corp", permissions: ["allow_raw_html"], plan: "pro" });
  });

  test("and templates say what of their e-mails is tracked", async () => {
    const tracking = { opens: false };
    const created = await front.operate("POST", "/tenants", { id: "quiet", name: "Quiet", tracking });
    expect(created.body).toMatchObject({ tracking });
    const changed = await front.operate("PATCH", "/tenants/quiet", { tracking: { clicks: false } });
    expect(changed.body).toMatchObject({ tracking: { clicks: false } });
    const template = {
      channel: "email",
      subject: "Code",
      html: "<p>{{.code}}</p>",
      tracking: { opens: false, clicks: false },
    };
    const put = await front.operate("PUT", "/tenants/quiet/templates/code", template);
    expect([put.status, put.body]).toEqual([200, { slug: "code", text: null, ...template }]);
    expect((await front.operate("GET", "/tenants/quiet/templates/code")).body).toEqual(put.body);
    const wrong = { channel: "email", subject: "x", html: "x", tracking: { reads: true } };
    expect((await front.operate("PUT", "/tenants/quiet/templates/x", wrong)).status).toBe(400);
    expect((await front.operate("PATCH", "/tenants/quiet", { tracking: false })).status).toBe(400);
    expect((await front.operate("PATCH", "/tenants/quiet", { tracking: {} })).body).toMatchObject({ tracking: {} });
  });

  test("need only a name", async () => {
    const created = await front.operate("POST", "/tenants", { name: "No id" });
    expect(created.status).toBe(201);
    expect(created.body["id"]).toBeString();
  });

  test.each<[unknown, string]>([
    [{}, "name is required"],
    [{ name: 5 }, "name must be 1 to 200 characters without control characters"],
    [{ name: "" }, "name must be 1 to 200 characters without control characters"],
    [{ name: "a\nb" }, "name must be 1 to 200 characters without control characters"],
    [{ name: "x", colour: "red" }, "unknown field: colour"],
    [{ name: "x", colour: "red", shape: 1 }, "unknown fields: colour, shape"],
    [
      { name: "x", id: "Not A Slug" },
      "id must be a slug of 1 to 63 lower-case letters, digits and hyphens, which does not begin with a hyphen",
    ],
    [
      { name: "x", id: "-x" },
      "id must be a slug of 1 to 63 lower-case letters, digits and hyphens, which does not begin with a hyphen",
    ],
    [{ name: "x", channels: ["sms"] }, "channels[0] must be one of email, whatsapp, wallet"],
    [{ name: "x", channels: ["email", "email"] }, "channels must be a list of channels, each once"],
    [{ name: "x", channels: "email" }, "channels must be a list of channels, each once"],
    [{ name: "x", permissions: ["root"] }, "permissions[0] must be one of allow_raw_html"],
    [{ name: "x", tokens: 1.5 }, "tokens must be an integer from 0 to 1000000000"],
    [{ name: "x", tokens: "5" }, "tokens must be an integer from 0 to 1000000000"],
    [{ name: "x", tokens: -1 }, "tokens must be an integer from 0 to 1000000000"],
    [{ name: "x", plan: "no-such" }, 'There is no plan "no-such".'],
    [[], "the body must be object"],
    [null, "the body must be object"],
  ])("of the shape %j are refused with 400: %s", async (body, error) => {
    expectRefused(await front.operate("POST", "/tenants", body), 400, error);
  });

  test("cannot be made with a __proto__ field", async () => {
    const headers = { Authorization: "Bearer operator-token-of-the-tests", "Content-Type": "application/json" };
    const body = '{"name":"x","__proto__":{"id":"y"}}';
    const answer = await front.fetch("/dash/api/tenants", { method: "POST", headers, body });
    expectRefused(answer, 400, "unknown field: __proto__");
  });

  test("that exist already are 409, and unknown ones 404", async () => {
    expect((await front.operate("POST", "/tenants", { id: "acme", name: "Again" })).status).toBe(409);
    for (const id of ["nobody", "No%20Slug", "%zz", "x".repeat(64)]) {
      expect((await front.operate("GET", `/tenants/${id}`)).status).toBe(404);
      expect((await front.operate("PATCH", `/tenants/${id}`, { name: "x" })).status).toBe(404);
      expect((await front.operate("GET", `/tenants/${id}/keys`)).status).toBe(404);
    }
  });

  test("can be given another balance of tokens, which is a movement", async () => {
    await front.operate("POST", "/tenants", { id: "balanced", name: "Balanced", tokens: 7 });
    const changed = await front.operate("PATCH", "/tenants/balanced", { id: "balanced", tokens: 5 });
    expect(changed).toMatchObject({ status: 200, body: { id: "balanced", tokens: 5 } });
    await front.operate("PATCH", "/tenants/balanced", { name: "Same", tokens: 5 });
    const { body } = await front.operate("GET", "/tenants/balanced/tokens");
    expect(body).toMatchObject({
      movements: [
        { amount: -2, reason: "balance set", balance: 5 },
        { amount: 7, reason: "opening balance", balance: 7 },
      ],
    });
  });

  test("cannot be changed by an empty body, nor in fixed fields", async () => {
    expectRefused(
      await front.operate("PATCH", "/tenants/acme", {}),
      400,
      "the body must be an object with at least one field to change",
    );
    expectRefused(
      await front.operate("PATCH", "/tenants/acme", { plan: null }),
      400,
      "the body must be an object with at least one field to change",
    );
    expectRefused(await front.operate("PATCH", "/tenants/acme", { id: "x" }), 400, "id cannot be changed");
    expectRefused(await front.operate("PATCH", "/tenants/acme", { shard: 5 }), 400, "unknown field: shard");
  });

  test.each(["limit=0", "limit=x", "limit=1&limit=2", "page=1"])("are not listed with %s", async (query) => {
    expect((await front.operate("GET", `/tenants?${query}`)).status).toBe(400);
  });
});

describe("keys", () => {
  test("are shown once, and open the API until they are revoked", async () => {
    const created = await front.operate("POST", "/tenants/acme/keys");
    expect(created.status).toBe(201);
    expect(created.headers.get("cache-control")).toBe("no-store");
    const { key_id, api_key } = created.body;
    const read = async () => (await front.request("GET", "/v1/jobs/x", { "X-API-Key": String(api_key) })).status;
    expect(await read()).toBe(404);
    const listed = await front.operate("GET", "/tenants/acme/keys");
    expect(listed.text).toContain(String(key_id));
    expect(listed.text).not.toContain(String(api_key));
    const revoked = await front.operate("DELETE", `/tenants/acme/keys/${String(key_id)}`);
    expect([revoked.status, revoked.text]).toEqual([204, ""]);
    expect(await read()).toBe(401);
    for (const id of [String(key_id), "%zz", "a%20b"]) {
      expect((await front.operate("DELETE", `/tenants/acme/keys/${id}`)).status).toBe(404);
    }
  });
});

describe("plans", () => {
  const SHARE = { queued_jobs_max: 2_000_000, queued_bytes_max: 2_147_483_648, hold_hours: 72 };

  test("are listed, created and changed, and take effect at once", async () => {
    expect((await front.operate("GET", "/plans")).body).toEqual({
      plans: [
        {
          name: "free",
          requests_per_minute: 100,
          deliveries_per_second: null,
          queued_jobs_max: 100_000,
          queued_bytes_max: 268_435_456,
          hold_hours: 72,
          tenants: expect.any(Number),
        },
        { name: "pro", requests_per_minute: 1000, deliveries_per_second: null, ...SHARE, tenants: expect.any(Number) },
      ],
    });
    const put = await front.operate("PUT", "/plans/tiny", { requests_per_minute: 3, deliveries_per_second: 0.5 });
    const tiny = { name: "tiny", requests_per_minute: 3, deliveries_per_second: 0.5 };
    expect([put.status, put.body]).toEqual([200, { ...tiny, ...SHARE, tenants: 0 }]);
    const key = await front.addTenant("tiny-one", "tiny");
    const read = await front.request("GET", "/v1/jobs/x", { "X-API-Key": key });
    expect(read.headers.get("ratelimit-limit")).toBe("3");
  });

  test("define a tenant's share of the queue, and how long a job is held", async () => {
    const share = { queued_jobs_max: 10, queued_bytes_max: 5_000_000, hold_hours: 5 };
    const given = { requests_per_minute: 7, deliveries_per_second: null, ...share };
    const put = await front.operate("PUT", "/plans/narrow", given);
    expect([put.status, put.body]).toEqual([200, { name: "narrow", ...given, tenants: 0 }]);
    const plan = (await front.registry.plans()).find(({ name }) => name === "narrow");
    expect(plan).toMatchObject({ queuedJobsMax: 10, queuedBytesMax: 5_000_000, holdMs: 5 * 60 * 60 * 1000 });
  });

  test.each<[string, unknown, string]>([
    ["tiny", {}, "requests_per_minute is required"],
    ["tiny", { requests_per_minute: 1, queued_jobs_max: 0 }, "queued_jobs_max must be an integer from 1 to 1000000000"],
    [
      "tiny",
      { requests_per_minute: 1, queued_bytes_max: "1 GB" },
      "queued_bytes_max must be an integer from 1 to 1099511627776",
    ],
    ["tiny", { requests_per_minute: 1, hold_hours: 169 }, "hold_hours must be an integer from 1 to 168"],
    ["tiny", { requests_per_minute: 0 }, "requests_per_minute must be an integer from 1 to 60000000"],
    ["tiny", { requests_per_minute: "100" }, "requests_per_minute must be an integer from 1 to 60000000"],
    [
      "tiny",
      { requests_per_minute: 1, deliveries_per_second: 0 },
      "deliveries_per_second must be a number above 0, or null for as fast as the provider takes them",
    ],
    ["tiny", { requestsPerMinute: 1 }, "unknown field: requestsPerMinute"],
    ["Not%20A%20Slug", { requests_per_minute: 1 }, "a plan's name must be a slug, such as pro"],
    ["%zz", { requests_per_minute: 1 }, "a plan's name must be a slug, such as pro"],
  ])("of the wrong shape are refused with 400: %s %j", async (name, body, error) => {
    expectRefused(await front.operate("PUT", `/plans/${name}`, body), 400, error);
  });
});

describe("templates", () => {
  const TEMPLATE = { channel: "email", subject: "Hi {{.name}}", html: "<p>Hi</p>" };

  test("are stored, shown, listed, used by a send, and deleted", async () => {
    const put = await front.operate("PUT", "/tenants/acme/templates/receipt_v2.1", TEMPLATE);
    expect([put.status, put.body]).toEqual([200, { slug: "receipt_v2.1", ...TEMPLATE, text: null }]);
    expect((await front.operate("GET", "/tenants/acme/templates/receipt_v2.1")).body).toEqual(put.body);
    expect((await front.operate("GET", "/tenants/acme/templates")).text).toContain("receipt_v2.1");
    const send = { to_address: "ada@example.com", template_id: "receipt_v2.1" };
    expect((await front.send(send)).status).toBe(202);
    expect((await front.operate("DELETE", "/tenants/acme/templates/receipt_v2.1")).status).toBe(204);
    expect((await front.operate("GET", "/tenants/acme/templates/receipt_v2.1")).status).toBe(404);
    expect((await front.send(send)).status).toBe(400);
  });

  test.each<[string, unknown, string]>([
    ["x", { channel: "wallet", pass_type: "samsung", pass_data: {} }, "pass_type must be apple or google"],
    ["x", { ...TEMPLATE, channel: "whatsapp" }, "channel must be email or wallet"],
    ["x", { ...TEMPLATE, html: "" }, "html must be HTML of 1 to 524288 characters"],
    ["x", { ...TEMPLATE, subject: "a\r\nb" }, "subject must be at most 998 characters without control characters"],
    ["x", { ...TEMPLATE, text: 5 }, "text must be plain text of at most 524288 characters, or null"],
    ["x", { ...TEMPLATE, body: "x" }, "unknown field: body"],
    ["a%20b", TEMPLATE, "a template's slug is 1 to 100 of A-Z, a-z, 0-9, dot, hyphen, underscore"],
    ["%zz", TEMPLATE, "a template's slug is 1 to 100 of A-Z, a-z, 0-9, dot, hyphen, underscore"],
  ])("of the wrong shape are refused with 400: %s %j", async (slug, body, error) => {
    expectRefused(await front.operate("PUT", `/tenants/acme/templates/${slug}`, body), 400, error);
  });
});

describe("e-mail credentials", () => {
  test("are stored and never shown", async () => {
    const body = {
      from_address: "hello@acme.example",
      from_name: "Acme",
      smtp_url: "smtps://user:secret@mail.acme.example",
      warm_up_from: "2026-03-01",
    };
    await front.registry.createTenant({ id: "own-mail", name: "Own mail", allow_custom: ["email"] });
    const answer = await front.operate("PUT", "/tenants/own-mail/credentials/email", body);
    expect([answer.status, answer.body]).toEqual([200, { stored: true, used: true }]);
    expect((await front.stores.directory.byId("own-mail"))?.emailSender).toEqual({
      fromAddress: body.from_address,
      fromName: body.from_name,
      smtpUrl: body.smtp_url,
      warmUpFrom: body.warm_up_from,
    });
    const { text, body: shown } = await front.operate("GET", "/tenants/own-mail/credentials/email");
    expect(shown).toEqual({
      kind: "email",
      channel: "email",
      from_address: body.from_address,
      from_name: body.from_name,
      smtp_server: "mail.acme.example:465",
      warm_up_from: body.warm_up_from,
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      expires_at: null,
      used: false,
      reason: "stored, not used because the domain acme.example is not verified",
      created_at: expect.any(String),
      changed_at: expect.any(String),
    });
    const all = await front.operate("GET", "/tenants/own-mail/credentials");
    expect(all.body).toEqual({ credentials: [shown] });
    expect(text + all.text + (await front.operate("GET", "/tenants/own-mail")).text).not.toContain("secret");
  });

  test("that the tenant may not use are stored, and answer and list say why they are not used", async () => {
    await front.registry.createTenant({ id: "no-custom", name: "No custom" });
    const path = "/tenants/no-custom/credentials/email";
    const reason = "stored, not used because the tenant's allow_custom does not name email";
    const answer = await front.operate("PUT", path, { from_address: "hello@acme.example" });
    expect([answer.status, answer.body]).toEqual([200, { stored: true, used: false, reason }]);
    expect((await front.operate("GET", path)).body).toMatchObject({ used: false, reason });
    expect((await front.stores.directory.byId("no-custom"))?.emailSender).toBeNull();
    await front.operate("PATCH", "/tenants/no-custom", { allow_custom: ["email"] });
    const unverified = "stored, not used because the domain acme.example is not verified";
    expect((await front.operate("GET", path)).body).toMatchObject({ used: false, reason: unverified });
  });

  test("are used in this process from the answer on, also by look-ups that had begun before, and no more once deleted", async () => {
    const { registry, stores } = front;
    await registry.createTenant({ id: "changing", name: "Changing", allow_custom: ["email"] });
    const path = "/tenants/changing/credentials/email";
    const address = async () => (await stores.directory.byId("changing"))?.emailSender?.fromAddress ?? null;
    for (const n of Array.from({ length: 20 }, (_, at) => at)) {
      const early = Array.from({ length: 5 }, address);
      const put = front.operate("PUT", path, { from_address: `n${n}@acme.example` });
      const during = put.then(address);
      expect((await put).status).toBe(200);
      expect(await during).toBe(`n${n}@acme.example`);
      await Promise.all(early);
      expect(await address()).toBe(`n${n}@acme.example`);
    }
    expect((await front.operate("DELETE", path)).status).toBe(204);
    expect(await address()).toBeNull();
    for (const method of ["GET", "DELETE"] as const) {
      expectRefused(await front.operate(method, path), 404, "there are no such credentials");
    }
    expectRefused(await front.operate("GET", "/tenants/nobody/credentials"), 404, "there is no such tenant");
  });

  test("keep the day they were stored when they change, and their fingerprint while they do not", async () => {
    await front.registry.createTenant({ id: "twice", name: "Twice" });
    const path = "/tenants/twice/credentials/email";
    const stored = async (password: string, user: string) => {
      await front.operate("PUT", path, {
        from_address: "a@b.example",
        smtp_url: `smtp://${user}:${password}@mx.example`,
      });
      return (await front.operate("GET", path)).body;
    };
    const [first, second, other] = [await stored("p1", "u"), await stored("p2", "u"), await stored("p2", "v")];
    expect(second["fingerprint"]).toBe(first["fingerprint"]);
    expect(other["fingerprint"]).not.toBe(first["fingerprint"]);
    expect(other["created_at"]).toBe(first["created_at"]);
    expect(Date.parse(String(other["changed_at"]))).toBeGreaterThanOrEqual(Date.parse(String(first["changed_at"])));
  });

  test.each<[unknown, string]>([
    [{}, "from_address is required"],
    [{ from_address: "nobody" }, "from_address must be one e-mail address"],
    [
      { from_address: "a@b.example", from_name: "a\r\nBcc: x" },
      "from_name must be 1 to 200 characters without control characters",
    ],
    [
      { from_address: "a@b.example", smtp_url: "http://mail.example" },
      "smtp_url must be the address of a mail server, such as smtp://user:password@mail.example.com:587",
    ],
    [{ from_address: "a@b.example", smtp_url: "smtp://[" }, "smtp_url must be the address of a mail server"],
    [
      { from_address: "a@b.example", warm_up_from: "1 March 2026" },
      "warm_up_from must be the UTC day (YYYY-MM-DD) on which a dedicated address began to send and its warm-up to count",
    ],
    [
      { from_address: "a@b.example", warm_up_from: "2026-02-30" },
      "warm_up_from must be a day of the calendar, YYYY-MM-DD",
    ],
    [{ from_address: "a@b.example", password: "x" }, "unknown field: password"],
  ])("of the wrong shape are refused with 400: %j", async (body, error) => {
    expectRefused(await front.operate("PUT", "/tenants/acme/credentials/email", body), 400, error);
  });
});

describe("tokens", () => {
  test("are added and taken, never below zero, and every movement is listed", async () => {
    await front.operate("POST", "/tenants", { id: "payer", name: "Payer" });
    const move = (amount: number) => front.operate("POST", "/tenants/payer/tokens", { amount, reason: "order 1" });
    expect((await move(10)).body).toEqual({ balance: 10 });
    expect((await move(-4)).body).toEqual({ balance: 6 });
    expect((await move(-7)).status).toBe(409);
    const listed = await front.operate("GET", "/tenants/payer/tokens");
    expect(listed.body).toMatchObject({
      movements: [
        { amount: -4, balance: 6 },
        { amount: 10, balance: 10 },
      ],
      next_cursor: null,
    });
  });

  test.each<[unknown, string]>([
    [{ amount: 0, reason: "x" }, "amount must not be 0"],
    [{ amount: 1.5, reason: "x" }, "amount must be an integer other than 0, up to 1000000000 either way"],
    [{ amount: 5 }, "reason is required"],
    [{ amount: 5, reason: "" }, "reason must be 1 to 200 characters without control characters"],
    [{ amount: 5, reason: "x".repeat(201) }, "reason must be 1 to 200 characters without control characters"],
  ])("are not moved by %j", async (body, error) => {
    expectRefused(await front.operate("POST", "/tenants/acme/tokens", body), 400, error);
  });
});

describe("the sandbox", () => {
  test("shows what it received, for one recipient or all", async () => {
    expect((await front.operate("GET", "/sandbox/messages?to=ada%40example.com&limit=1")).body).toEqual({
      messages: [MESSAGE],
    });
    expect((await front.operate("GET", "/sandbox/messages?to=bob%40example.com")).body).toEqual({ messages: [] });
    expect((await front.operate("GET", "/sandbox/messages")).body).toEqual({ messages: [MESSAGE, MESSAGE] });
    expect((await front.operate("GET", "/sandbox/messages?limit=x")).status).toBe(400);
  });

  test("is 404 where real providers are in use", async () => {
    const live = await Front.start();
    for (const path of ["/sandbox/messages", "/sandbox/messages?limit=x", "/sandbox/device-log?page=1"]) {
      expect([path, (await live.operate("GET", path)).status]).toEqual([path, 404]);
    }
    await live.stop();
  });
});

test("a body over 10 MiB is 413", async () => {
  const answer = await front.operate("POST", "/tenants", { name: "x".repeat(10 * 1024 * 1024) });
  expect(answer.status).toBe(413);
});
