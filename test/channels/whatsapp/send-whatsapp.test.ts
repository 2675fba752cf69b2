import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isJobId } from "../../../src/domain/ids.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenant.ts";
import { Front } from "../../http/support/front.ts";
import { must } from "../../support/must.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
  await front.registry.aliases.put("acme", {
    alias: "shipped",
    meta_name: "order_shipped_hx0123456789abcdef",
    language_code: "pt_BR",
    params: ["name"],
    header: { type: "document", link: "https://media.example/receipt.pdf", filename: "receipt.pdf" },
  });
  const plain = { alias: "plain", meta_name: "plain_2", language_code: null, params: [], header: null };
  await front.registry.aliases.put("acme", plain);
});
afterAll(() => front.stop(), 15_000);
beforeEach(() => {
  front.queue.queued.length = 0;
  front.queue.counted = 0;
});

const SEND = { phone_number: "5491122334455", template_id: "hello_world" } as const;

function payload(): unknown {
  return JSON.parse(front.queue.queued.at(-1)?.job.payload ?? "null");
}

describe("a valid chat send", () => {
  test("is queued for its number and answered with its job_id", async () => {
    const answer = await front.sendChat(SEND);
    expect([answer.status, Object.keys(answer.body), answer.body["status"]]).toEqual([
      202,
      ["job_id", "status"],
      "pending",
    ]);
    expect(isJobId(String(answer.body["job_id"]))).toBe(true);
    const { tenantId, job } = front.queue.queued[0] ?? {};
    expect([tenantId, job?.channel, job?.recipient]).toEqual(["acme", "whatsapp", "5491122334455"]);
    expect(payload()).toEqual({ to: "5491122334455", template: "hello_world", language: "es", params: [] });
  });

  test("by an alias carries the provider's name, the alias's language and its header's media", async () => {
    await front.sendChat({ ...SEND, template_id: "shipped" });
    expect(payload()).toEqual({
      to: "5491122334455",
      template: "order_shipped_hx0123456789abcdef",
      language: "pt_BR",
      params: [],
      header: { type: "document", link: "https://media.example/receipt.pdf", filename: "receipt.pdf" },
    });
  });

  test.each([
    [{ template_id: "shipped", language_code: "en_US" }, "order_shipped_hx0123456789abcdef", "en_US"],
    [{ template_id: "shipped", language_code: null }, "order_shipped_hx0123456789abcdef", "pt_BR"],
    [{ template_id: "plain" }, "plain_2", "es"],
    [{ template_id: "hello_world", language_code: "fil" }, "hello_world", "fil"],
    [{ template_id: "Shipped" }, "Shipped", "es"],
    [{ template_id: "__proto__" }, "__proto__", "es"],
    [{ template_id: " odd name " }, " odd name ", "es"],
  ])("%j goes out as the template %p in %p", async (changes, template, language) => {
    expect((await front.sendChat({ ...SEND, ...changes })).status).toBe(202);
    expect(payload()).toMatchObject({ template, language });
    // The event store knows it by the tenant's own word.
    expect(front.queue.queued[0]?.job.template).toBe(changes.template_id);
  });

  test("turns numbers and booleans into text and leaves text as it is", async () => {
    await front.sendChat({ ...SEND, params: ["Ada 👋", 1042, 0.5, -3, true, false, "", "a    b"] });
    expect(payload()).toMatchObject({ params: ["Ada 👋", "1042", "0.5", "-3", "true", "false", "", "a    b"] });
  });

  test("takes values of 1,024 characters, whatever they are made of", async () => {
    const params = ["x".repeat(1024), "👋".repeat(1024)];
    expect((await front.sendChat({ ...SEND, params })).status).toBe(202);
    expect(payload()).toMatchObject({ params });
  });

  test("with an Idempotency-Key is queued once, and the key is another one than e-mail's", async () => {
    const key = { "Idempotency-Key": "chat 1" };
    const first = await front.sendChat(SEND, key);
    const again = await front.sendChat(SEND, key);
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(front.queue.queued).toHaveLength(1);
    expect((await front.send(JSON.stringify(SEND), key)).status).toBe(400);
  });
});

describe("a malformed chat send is 400 and names what is wrong:", () => {
  const number = "phone_number must be a string of 7 to 15 digits";
  const { template_id } = SEND;
  const { phone_number } = SEND;
  test.each<[unknown, string]>([
    ["null", "the body must be a JSON object"],
    ["[]", "the body must be a JSON object"],
    ['"text"', "the body must be a JSON object"],
    ["{", "the body is not valid JSON"],
    ["", "the body is not valid JSON"],
    [{ template_id }, "phone_number is required"],
    [{ template_id, phone_number: "" }, "phone_number is required"],
    [{ template_id, phone_number: null }, "phone_number is required"],
    [{ template_id, phone_number: 5_491_122_334_455 }, number],
    [{ template_id, phone_number: "+5491122334455" }, number],
    [{ template_id, phone_number: "549 112 233" }, number],
    [{ template_id, phone_number: "123456" }, number],
    [{ template_id, phone_number: "1234567890123456" }, number],
    [{ template_id, phone_number: "5491122334455\n" }, number],
    [{ template_id, phone_number: "٥٤٩١١٢٢٣٣" }, number],
    [{ phone_number }, "template_id is required"],
    [{ phone_number, template_id: "" }, "template_id is required"],
    [{ phone_number, template_id: "  " }, "template_id is required"],
    [{ phone_number, template_id: 7 }, "template_id must be a string"],
    [{ phone_number, template_id: "x".repeat(513) }, "template_id must not be longer than 512 characters"],
    [{ phone_number, template_id: "a\u0000b" }, "template_id must not contain control characters"],
    [{ ...SEND, language_code: 5 }, "language_code must be the code of a template's language"],
    [{ ...SEND, language_code: "../es" }, "language_code must be the code of a template's language"],
    [{ ...SEND, params: "Ada" }, "params must be an array"],
    [{ ...SEND, params: { "0": "Ada" } }, "params must be an array"],
    [{ ...SEND, language_code: "" }, "language_code must be"],
    [{ ...SEND, header: {} }, "header is not a member of this request"],
    [{ ...SEND, params: ["a", null] }, "params[1] must be a string, a number or a boolean"],
    [{ ...SEND, params: [["a"]] }, "params[0] must be a string, a number or a boolean"],
    [{ ...SEND, params: [{}] }, "params[0] must be a string, a number or a boolean"],
    [{ ...SEND, params: ["x".repeat(1025)] }, "params[0] must not be longer than 1024 characters"],
    [{ ...SEND, params: ["👋".repeat(1025)] }, "params[0] must not be longer than 1024 characters"],
    [{ ...SEND, params: ["a\nb"] }, "params[0] must not contain line breaks, tabs"],
    [{ ...SEND, params: ["a\tb"] }, "params[0] must not contain line breaks, tabs"],
    [{ ...SEND, params: ["\ud800"] }, "params[0] must not contain line breaks, tabs"],
    [{ ...SEND, params: ["a     b"] }, "params[0] must not contain more than four blanks in a row"],
    [{ ...SEND, params: Array.from({ length: 201 }, () => "a") }, "params must not hold more than 200 values"],
    [`{"phone_number":"5491122334455","template_id":"a","params":[1e999]}`, "params[0] is too large for a number"],
    [
      `{"phone_number":"5491122334455","template_id":"a","params":[12345678901234567890]}`,
      "params[0] is too large for a number",
    ],
  ])("%j", async (body, error) => {
    const answer = await front.sendChat(body);
    expect(answer.status).toBe(400);
    expect(answer.body["error"]).toStartWith(error);
    expect(front.queue.queued).toBeEmpty();
    expect(front.queue.counted).toBe(1);
  });
});

describe("permission to send", () => {
  const without = { whatsapp: null, apple: null, google: null };
  const credentials = { phone_number_id: "123", access_token: "t" };

  test("a tenant without the channel gets 403, before its body is looked at", async () => {
    await front.registry.createTenant({ id: "mute", name: "Mute", plan: "pro", channels: ["email"] });
    const { api_key } = await must(front.registry.createKey("mute"));
    const answer = await front.sendChat("{", { "X-API-Key": api_key });
    expect([answer.status, answer.body["error"]]).toEqual([403, "the channel whatsapp is not enabled for this tenant"]);
  });

  test("a caller without a valid key gets 401", async () => {
    expect((await front.sendChat(SEND, { "X-API-Key": "no" })).status).toBe(401);
  });

  test("without any credentials an otherwise valid send is a 500 that says where they are set", async () => {
    const bare = await Front.start({ platform: without });
    try {
      expect((await bare.sendChat({})).status).toBe(400);
      const answer = await bare.sendChat(SEND);
      expect(answer.status).toBe(500);
      expect(answer.body["error"]).toStartWith("the channel whatsapp has no provider credentials");
      expect(answer.body["error"]).toContain("WHATSAPP_ACCESS_TOKEN");
      expect(bare.queue.queued).toBeEmpty();
      expect(bare.queue.counted).toBe(2);
      // Stored, but the tenant may not use its own.
      await bare.registry.putWhatsappCredentials("acme", credentials);
      expect((await bare.sendChat(SEND)).status).toBe(500);
      await bare.registry.changeTenant("acme", { allow_custom: ["whatsapp"] });
      expect((await bare.sendChat(SEND)).status).toBe(202);
    } finally {
      await bare.stop();
    }
  });
});

describe("operators", () => {
  test("register an alias and get back what they registered", async () => {
    const body = { meta_name: "m", language_code: "es", params: ["name"], header: { type: "image", id: "77" } };
    const put = await front.operate("PUT", "/tenants/acme/aliases/wa_welcome", body);
    expect([put.status, put.body]).toEqual([200, { alias: "wa_welcome", ...body }]);
    expect((await front.operate("GET", "/tenants/acme/aliases/wa_welcome")).body).toEqual(put.body);
    expect((await front.operate("GET", "/tenants/acme/aliases")).text).toContain("wa_welcome");
    expect((await front.operate("DELETE", "/tenants/acme/aliases/wa_welcome")).status).toBe(204);
    expect((await front.operate("GET", "/tenants/acme/aliases/wa_welcome")).status).toBe(404);
    expect((await front.operate("DELETE", "/tenants/acme/aliases/wa_welcome")).status).toBe(404);
    const short = await front.operate("PUT", "/tenants/acme/aliases/short", { meta_name: "m" });
    expect(short.body).toEqual({ alias: "short", meta_name: "m", language_code: null, params: [], header: null });
  });

  test.each<[string, unknown, string]>([
    ["a", {}, "meta_name is required"],
    ["a", { meta_name: "" }, "meta_name must be the provider's name of the template"],
    ["a", { meta_name: "m", language_code: "e s" }, "language_code must be the code"],
    ["a", { meta_name: "m", params: [5] }, "params[0] must be 1 to 200 characters"],
    ["a", { meta_name: "m", colour: "red" }, "unknown field: colour"],
    ["a", { meta_name: "m", header: { type: "image" } }, "header must have either a link or an id"],
    [
      "a",
      { meta_name: "m", header: { type: "image", link: "https://a.example/b", id: "1" } },
      "header must have either",
    ],
    ["a", { meta_name: "m", header: { type: "image", link: "http://a.example/b" } }, "header must be the media"],
    [
      "a",
      { meta_name: "m", header: { type: "image", id: "1", filename: "a" } },
      "header[filename] is for documents only",
    ],
    [".a", { meta_name: "m" }, "an alias is 1 to 100"],
    ["%E4", { meta_name: "m" }, "an alias is 1 to 100"],
  ])("an alias %s of %j is refused", async (alias, body, error) => {
    const answer = await front.operate("PUT", `/tenants/acme/aliases/${alias}`, body);
    expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(error)]);
  });

  test("set a tenant's own credentials, which are never given back", async () => {
    const path = "/tenants/acme/credentials/whatsapp";
    const answer = await front.operate("PUT", path, { phone_number_id: "123", access_token: "secret-token" });
    expect([answer.status, answer.body["stored"]]).toEqual([200, true]);
    const shown = await front.operate("GET", path);
    expect(shown.body).toMatchObject({ kind: "whatsapp", phone_number_id: "123", fingerprint: expect.any(String) });
    expect(shown.text).not.toContain("secret-token");
    for (const body of [
      {},
      { phone_number_id: "12a", access_token: "t" },
      { phone_number_id: "1", access_token: "a b" },
    ]) {
      expect((await front.operate("PUT", path, body)).status).toBe(400);
    }
  });
});

test("any body is accepted whole or refused with a sentence, and never causes an internal error", async () => {
  const anything = fc.jsonValue({ maxDepth: 3 });
  const body = fc.record(
    {
      phone_number: fc.oneof({ weight: 4, arbitrary: fc.constant(SEND.phone_number) }, fc.string(), anything),
      template_id: fc.oneof(fc.constantFrom("shipped", "__proto__"), fc.string({ unit: "binary" }), anything),
      language_code: fc.oneof(fc.constantFrom("es", "en_US"), anything),
      params: fc.oneof(fc.array(fc.oneof(fc.string(), fc.double(), fc.boolean(), anything)), anything),
    },
    { requiredKeys: ["phone_number", "template_id"] },
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof({ weight: 5, arbitrary: body }, anything), async (sent) => {
      const queued = front.queue.queued.length;
      const answer = await front.sendChat(JSON.stringify(sent));
      expect(answer.status).toBeOneOf([202, 400]);
      expect(front.queue.queued).toHaveLength(queued + (answer.status === 202 ? 1 : 0));
      if (answer.status === 400) expect(answer.body["error"]).toBeString();
      else expect(payload()).toMatchObject({ to: SEND.phone_number, params: expect.any(Array) });
    }),
    { numRuns: 300 },
  );
}, 30_000);
