import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { listSpellings } from "../../../src/channels/whatsapp/free-text.ts";
import { TransportError } from "../../../src/domain/errors.ts";
import { isJobId } from "../../../src/domain/ids.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
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
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.queue.queued.length = 0;
  front.queue.counted = 0;
});

const SEND = { phone_number: "5491122334455", template_id: "hello_world" } as const;

const BUTTON = { index: 0, sub_type: "url", value: "orders/1" } as const;

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

  test.each(["US.13491208655302741918", "US.ENT.11815799212886844830", "br.Ab9"])(
    "to a person known by the id %s alone goes out to that id",
    async (recipient) => {
      expect((await front.sendChat({ template_id: "hello_world", recipient, phone_number: null })).status).toBe(202);
      expect(payload()).toMatchObject({ to: recipient });
      // The recipient as a search and the suppression list store it.
      expect(front.queue.queued[0]?.job.recipient).toBe(recipient.toLowerCase());
    },
  );

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
    // The event store has it under the tenant's own name.
    expect(front.queue.queued[0]?.job.template).toBe(changes.template_id);
  });

  test("turns numbers and booleans into text and leaves text as it is", async () => {
    await front.sendChat({ ...SEND, params: ["Ada 👋", 1042, 0.5, -3, true, false, "a    b"] });
    expect(payload()).toMatchObject({ params: ["Ada 👋", "1042", "0.5", "-3", "true", "false", "a    b"] });
  });

  test("takes values of 1,024 characters, whatever they are made of", async () => {
    const params = ["x".repeat(1024), "👋".repeat(1024)];
    expect((await front.sendChat({ ...SEND, params })).status).toBe(202);
    expect(payload()).toMatchObject({ params });
  });

  test("carries a header of its own before the alias's, values by name, and buttons", async () => {
    const header = { type: "location", latitude: -34.6, longitude: -58, name: "Obelisco", address: null } as const;
    const buttons = [BUTTON, { index: 3, sub_type: "quick_reply", value: 42 }];
    const sent = `{"phone_number":"5491122334455","template_id":"shipped","params":{"first_name":"Ada","__proto__":7},"header":${JSON.stringify(header)},"buttons":${JSON.stringify(buttons)}}`;
    expect((await front.sendChat(sent)).status).toBe(202);
    expect(front.queue.queued.at(-1)?.job.payload).toBe(
      '{"to":"5491122334455","template":{"name":"order_shipped_hx0123456789abcdef"},"language":"pt_BR",' +
        '"params":{"first_name":"Ada","__proto__":"7"},' +
        '"header":{"type":"location","latitude":-34.6,"longitude":-58,"name":"Obelisco"},' +
        '"buttons":[{"index":0,"sub_type":"url","value":"orders/1"},{"index":3,"sub_type":"quick_reply","value":"42"}]}',
    );
  });

  test.each([
    [
      { type: "text", text: "Ada", parameter_name: null },
      { type: "text", text: "Ada" },
    ],
    [
      { type: "document", id: "77", link: null, filename: "a.pdf" },
      { type: "document", id: "77", filename: "a.pdf" },
    ],
    [
      { type: "image", link: "https://españa.example/año 1.png".replace(" ", "%20") },
      { type: "image", link: "https://xn--espaa-rta.example/a%C3%B1o%201.png" },
    ],
    [
      { type: "image", link: "https://a.example:443/%C3%B1?q=x#y" },
      { type: "image", link: "https://a.example:443/%C3%B1?q=x#y" },
    ],
    [null, undefined],
  ])("takes the header %j", async (header, queued) => {
    expect((await front.sendChat({ ...SEND, header, buttons: [], params: {} })).status).toBe(202);
    const plain = { to: "5491122334455", template: "hello_world", language: "es", params: [] };
    expect(payload()).toEqual(queued === undefined ? plain : { ...plain, header: queued });
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
    [{ template_id, phone_number: "05491122334455" }, "phone_number must begin with the country's code"],
    [{ template_id, phone_number: "0000000" }, "phone_number must begin with the country's code"],
    [{ template_id, phone_number, recipient: "US.1" }, "send either phone_number or recipient, not both"],
    [{ template_id, recipient: "" }, "recipient must be the provider's id of a person"],
    [{ template_id, recipient: phone_number }, "recipient must be the provider's id of a person"],
    [{ template_id, recipient: "USA.1349" }, "recipient must be the provider's id of a person"],
    [{ template_id, recipient: "US.13 49" }, "recipient must be the provider's id of a person"],
    [{ template_id, recipient: `US.${"1".repeat(129)}` }, "recipient must be the provider's id of a person"],
    [{ template_id, recipient: 7 }, "recipient must be the provider's id of a person"],
    [{ phone_number }, "template_id is required"],
    [{ phone_number, template_id: "" }, "template_id is required"],
    [{ phone_number, template_id: "  " }, "template_id is required"],
    [{ phone_number, template_id: 7 }, "template_id must be a string"],
    [{ phone_number, template_id: "x".repeat(513) }, "template_id must not be longer than 512 characters"],
    [{ phone_number, template_id: "a\u0000b" }, "template_id must not contain control characters"],
    [{ ...SEND, language_code: 5 }, "language_code must be the code of a template's language"],
    [{ ...SEND, language_code: "../es" }, "language_code must be the code of a template's language"],
    [{ ...SEND, params: "Ada" }, "params must be an array"],
    [{ ...SEND, params: { "0": "Ada" } }, 'params has the name "0": a name must be 1 to 100 of a-z'],
    [{ ...SEND, params: { First: "Ada" } }, 'params has the name "First"'],
    [{ ...SEND, params: { ["x".repeat(101)]: "Ada" } }, "params has the name"],
    [{ ...SEND, params: { a: null } }, "params.a must be a string, a number or a boolean"],
    [{ ...SEND, params: { a: "x\ny" } }, "params.a must not contain line breaks"],
    [
      { ...SEND, params: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`a${i}`, "x"])) },
      "params must not hold more than 200 values",
    ],
    [{ ...SEND, language_code: "" }, "language_code must be"],
    [{ ...SEND, footer: {} }, "footer is not a member of this request: known are phone_number, template_id"],
    [{ ...SEND, header: "image" }, "header must be an object with a type"],
    [{ ...SEND, header: {} }, "header.type must be one of text, image, video, document, location"],
    [{ ...SEND, header: { type: "__proto__" } }, "header.type must be one of"],
    [{ ...SEND, header: { type: "image" } }, "header must have either a link or an id"],
    [{ ...SEND, header: { type: "image", link: "https://a.example/b", id: "1" } }, "header must have either a link"],
    [{ ...SEND, header: { type: "image", link: "http://a.example/b" } }, "header.link must be an https address"],
    [{ ...SEND, header: { type: "image", link: "https://a.example/ b" } }, "header.link must be an https address"],
    [{ ...SEND, header: { type: "image", link: `https://a.example/${"b".repeat(2_048)}` } }, "header.link must be"],
    [{ ...SEND, header: { type: "image", link: 7 } }, "header.link must be"],
    [
      { ...SEND, header: { type: "image", link: "https://a.example/mi foto ñ.png" } },
      "header.link must be an https address of at most 2048 characters without blanks and control characters",
    ],
    [
      { ...SEND, header: { type: "image", link: `https://a.example/${"ñ".repeat(1_000)}` } },
      "header.link must be an https address of at most 2048 characters once its letters beyond ASCII are escaped",
    ],
    [{ ...SEND, header: { type: "image", link: "https://exa mple/ñ" } }, "header.link must be"],
    [{ ...SEND, header: { type: "image", link: "https://[ñ]/" } }, "header.link must be"],
    [{ ...SEND, header: { type: "video", id: "../7" } }, "header.id must be the provider's id"],
    [
      { ...SEND, header: { type: "image", id: "1", filename: "a" } },
      "header.filename is not a member of a header of the",
    ],
    [
      { ...SEND, header: { type: "document", id: "1", filename: "a\u0000" } },
      "header.filename must be a text of 1 to 240",
    ],
    [{ ...SEND, header: { type: "text" } }, "header.text is required"],
    [{ ...SEND, header: { type: "text", text: " " } }, "header.text must not be empty"],
    [{ ...SEND, header: { type: "text", text: "x".repeat(61) } }, "header.text must not be longer than 60 characters"],
    [{ ...SEND, header: { type: "text", text: "x", parameter_name: "X" } }, "header.parameter_name must be 1 to 100"],
    [{ ...SEND, header: { type: "location", longitude: 1 } }, "header.latitude must be a number from -90 to 90"],
    [{ ...SEND, header: { type: "location", latitude: 1, longitude: "1" } }, "header.longitude must be a number"],
    [{ ...SEND, header: { type: "location", latitude: 90.1, longitude: 1 } }, "header.latitude must be"],
    [{ ...SEND, header: { type: "location", latitude: 1, longitude: 1, name: "" } }, "header.name must be a text"],
    [{ ...SEND, buttons: {} }, "buttons must be an array of objects"],
    [{ ...SEND, buttons: Array.from({ length: 11 }, () => BUTTON) }, "buttons must not hold more than 10 entries"],
    [{ ...SEND, buttons: [null] }, "buttons[0] must be an object"],
    [{ ...SEND, buttons: [{ ...BUTTON, text: "x" }] }, "buttons[0].text is not a member of a button"],
    [{ ...SEND, buttons: [{ ...BUTTON, index: "0" }] }, "buttons[0].index must be a whole number from 0 to 9"],
    [{ ...SEND, buttons: [{ ...BUTTON, index: 10 }] }, "buttons[0].index must be a whole number from 0 to 9"],
    [
      { ...SEND, buttons: [{ ...BUTTON, sub_type: "toString" }] },
      "buttons[0].sub_type must be one of quick_reply, url",
    ],
    [{ ...SEND, buttons: [{ ...BUTTON, value: null }] }, "buttons[0].value is required"],
    [{ ...SEND, buttons: [{ ...BUTTON, value: "" }] }, "buttons[0].value must not be empty"],
    [{ ...SEND, buttons: [{ ...BUTTON, value: "x".repeat(2_001) }] }, "buttons[0].value must not be longer than 2000"],
    [
      { ...SEND, buttons: [{ ...BUTTON, sub_type: "copy_code", value: "x".repeat(21) }] },
      "buttons[0].value must not be lo",
    ],
    [{ ...SEND, buttons: [BUTTON, BUTTON] }, "buttons[1].index is 0 as another entry's"],
    [{ ...SEND, text: "Hi" }, "template_id is for messages from a template: send either template_id or text"],
    [{ phone_number, text: "Hi", params: [] }, "params is for messages from a template"],
    [{ phone_number, text: "Hi", header: {} }, "header is for messages from a template"],
    [{ phone_number, text: null }, "template_id is required"],
    [{ phone_number, text: 7 }, "text must be a string, or an object with body and preview_url"],
    [{ phone_number, text: " \n" }, "text must not be empty"],
    [{ phone_number, text: "x".repeat(4_097) }, "text must not be longer than 4096 characters"],
    [{ phone_number, text: "a\u0000" }, "text must not contain control characters"],
    [{ phone_number, text: "\ud800" }, "text must not contain control characters"],
    [{ phone_number, text: {} }, "text.body is required"],
    [{ phone_number, text: { body: "" } }, "text.body must not be empty"],
    [{ phone_number, text: { body: "Hi", preview_url: "yes" } }, "text.preview_url must be true or false"],
    [{ phone_number, text: { body: "Hi", to: "x" } }, "text.to is not a member of text: known are body, preview_url"],
    [{ ...SEND, params: ["a", null] }, "params[1] must be a string, a number or a boolean"],
    [{ ...SEND, params: [["a"]] }, "params[0] must be a string, a number or a boolean"],
    [{ ...SEND, params: [{}] }, "params[0] must be a string, a number or a boolean"],
    [{ ...SEND, params: ["x".repeat(1025)] }, "params[0] must not be longer than 1024 characters"],
    [{ ...SEND, params: ["👋".repeat(1025)] }, "params[0] must not be longer than 1024 characters"],
    [{ ...SEND, params: [""] }, "params[0] must not be empty"],
    [{ ...SEND, params: { name: " " } }, "params.name must not be empty"],
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

describe("free text", () => {
  const { phone_number } = SEND;
  const HOUR_MS = 60 * 60_000;
  afterEach(() => {
    front.lastWritten = () => null;
  });

  test("is taken while the recipient wrote to the sending number within 24 hours, under any spelling", async () => {
    const asked: unknown[] = [];
    front.lastWritten = (...question) => {
      asked.push(question);
      return Date.now() - 23.9 * HOUR_MS;
    };
    expect((await front.sendChat({ phone_number, text: "On my way\n👋" })).status).toBe(202);
    expect(payload()).toEqual({ to: phone_number, text: { body: "On my way\n👋", preview_url: false } });
    expect(front.queue.queued[0]?.job).toMatchObject({ recipient: phone_number });
    expect(front.queue.queued[0]?.job).not.toHaveProperty("template");
    const full = { body: "https://a.example", preview_url: true };
    expect((await front.sendChat({ phone_number, text: full, template_id: null })).status).toBe(202);
    expect(payload()).toEqual({ to: phone_number, text: full });
    expect(asked[0]).toEqual(["100000000000001", ["5491122334455", "541122334455"]]);
    expect(asked).toHaveLength(2);
  });

  test("is 422 afterwards, and says nothing of who wrote to a number of others", async () => {
    const sentence =
      "text is only taken within 24 hours of the recipient's last message to the number that sends: send a template " +
      "(template_id) instead";
    for (const last of [null, Date.now() - 24 * HOUR_MS]) {
      front.lastWritten = () => last;
      const answer = await front.sendChat({ phone_number, text: "Hi" });
      expect([answer.status, answer.body["error"]]).toEqual([422, sentence]);
    }
    expect([front.queue.queued, front.queue.counted]).toEqual([[], 2]);
  });

  test("to a tenant's own number says since when it is closed", async () => {
    const credentials = { phone_number_id: "777", access_token: "t" };
    const key = await front.addTenant("owner", "pro");
    await must(front.registry.changeTenant("owner", { allow_custom: ["whatsapp"] }));
    await must(front.registry.putWhatsappCredentials("owner", credentials));
    const lastMs = Date.now() - 25 * HOUR_MS;
    front.lastWritten = (phoneNumberId) => (phoneNumberId === "777" ? lastMs : Date.now());
    const since = new Date(lastMs + 24 * HOUR_MS).toISOString();
    const answer = await front.sendChat({ phone_number, text: "Hi" }, { "X-API-Key": key });
    expect(answer.status).toBe(422);
    expect(answer.body["error"]).toContain(
      `closed at ${since}: the last message is of ${new Date(lastMs).toISOString()}`,
    );
    front.lastWritten = () => null;
    const never = await front.sendChat({ phone_number, text: "Hi" }, { "X-API-Key": key });
    expect(never.body["error"]).toContain("no message from the last two days is known");
  });

  test("that was taken is answered the same under its key once the time is over; a template asks nobody", async () => {
    const key = { "Idempotency-Key": "answer 1" };
    front.lastWritten = () => Date.now();
    const first = await front.sendChat({ phone_number, text: "Hi" }, key);
    front.lastWritten = () => null;
    const again = await front.sendChat({ phone_number, text: "Hi" }, key);
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body]);
    front.lastWritten = () => {
      throw new TransportError("redis is away");
    };
    expect((await front.sendChat(SEND)).status).toBe(202);
    const away = await front.sendChat({ phone_number, text: "Hi" });
    expect([away.status, away.text.includes("redis")]).toEqual([500, false]);
  });

  test.each([
    ["5215512345678", "525512345678"],
    ["525512345678", "5215512345678"],
    ["541122334455", "5491122334455"],
    ["5511987654321", "551187654321"],
    ["551187654321", "5511987654321"],
  ])("to %s is also looked for as %s", (to, other) => {
    expect(listSpellings(to)).toEqual([to, other]);
  });

  test.each(["4915112345678", "15550001111", "5491122334", "55119876543210"])("to %s is looked for as it is", (to) => {
    expect(listSpellings(to)).toEqual([to]);
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
      header: fc.oneof(
        anything,
        fc.record({ type: fc.constantFrom("text", "video", "location"), text: anything, id: anything, link: anything }),
        fc.record({ type: fc.constant("location"), latitude: fc.double(), longitude: anything, name: anything }),
      ),
      buttons: fc.oneof(
        anything,
        fc.array(fc.record({ index: fc.nat(11), sub_type: fc.constantFrom("url", "flow", "x"), value: anything })),
      ),
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
      else expect(payload()).toMatchObject({ to: SEND.phone_number, params: expect.any(Object) });
    }),
    { numRuns: 300 },
  );
}, 90_000);
