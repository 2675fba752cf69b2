import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatWithPass } from "../../src/channels/whatsapp/carried-pass.ts";
import { parseCarrier } from "../../src/domain/channels/carried-pass.ts";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { PLATFORM, WalletFront } from "../http/support/wallet-front.ts";
import { must } from "../support/must.ts";

const SLOW_MS = 60_000;
let world: WalletFront;
beforeAll(async () => {
  const whatsapp = { phoneNumberId: "100000000000001", accessToken: "platform-token" };
  world = await WalletFront.start({ ...PLATFORM, whatsapp });
}, SLOW_MS);
afterAll(() => world?.stop(), SLOW_MS);

let serials = 0;
const apple = (data: object = {}) => {
  serials += 1;
  const required = { serial_number: `s-${serials}`, organization_name: "Acme", description: "A pass" };
  return { pass_type: "apple", pass_data: { ...required, ...data } };
};
const google = (data: object = {}) => {
  serials += 1;
  return {
    pass_type: "google",
    pass_data: { class_id: "33.c", object_id: `33.o-${serials}`, object_data: {}, ...data },
  };
};
const MAIL = { to_address: "ada@example.com", html: "<p>{{.pass.save_link}} {{.pass.download_url}} card</p>" };
const CHAT = { phone_number: "5491122334455", template_id: "card", params: ["{{.pass.download_url}}"] };
const LINKED = { ...CHAT, params: { link: "{{.pass.save_link}}" } };
const mail = (body: object, headers: Readonly<Record<string, string>> = {}) =>
  world.front.post("/v1/send/email", { ...MAIL, ...body }, headers);
const chat = (body: object) => world.front.post("/v1/send/whatsapp", { ...CHAT, ...body });
const asKey = (apiKey: string) => ({ "X-API-Key": apiKey });

describe("a message with a pass", () => {
  test.each([
    ["an e-mail", "/v1/send/email", { ...MAIL, pass: apple() }],
    ["an e-mail with data", "/v1/send/email", { ...MAIL, data: { name: "Ada" }, pass: google() }],
    ["a chat message", "/v1/send/whatsapp", { ...CHAT, pass: apple() }],
    ["a chat message with values by name", "/v1/send/whatsapp", { ...LINKED, pass: google() }],
  ])("is %s: the pass is stored and paid for under the message's own job", async (_, path, body) => {
    const before = await world.balance();
    const answer = await world.front.post(path, body);
    const { lastJob } = world;
    expect([answer.status, answer.body]).toEqual([202, { job_id: lastJob.jobId, status: "pending" }]);
    expect(await world.balance()).toBe(before - 1);
    const passId = parseCarrier(lastJob.payload)?.pass.passId ?? "";
    const pass = await world.registry.passes.find("acme", passId);
    expect(pass).toMatchObject({ state: "creating", jobId: lastJob.jobId, content: { type: body.pass.pass_type } });
    expect(lastJob.recipient).toBe(path.endsWith("email") ? "ada@example.com" : "5491122334455");
  });

  test("is an answer whose button opens the pass", async () => {
    world.front.lastWritten = () => Date.now();
    const { phone_number } = CHAT;
    const interactive = { type: "cta_url", body: "Your card", display_text: "Add", url: "{{.pass.download_url}}" };
    const answer = await world.front.post("/v1/send/whatsapp", { phone_number, interactive, pass: apple() });
    expect(answer.status).toBe(202);
    const message = parseCarrier(world.lastJob.payload)?.message ?? {};
    const download_url = "https://example.com/p/1";
    const filled = chatWithPass(message, { values: { pass_id: "1", download_url }, file: null });
    const action = { name: "cta_url", parameters: { display_text: "Add", url: download_url } };
    expect(filled).toMatchObject({ message: { interactive: { action } } });
  });

  test("a pass that is null is none", async () => {
    const before = await world.balance();
    expect([(await mail({ pass: null })).status, (await chat({ pass: null })).status]).toEqual([202, 202]);
    expect([await world.balance(), parseCarrier(world.lastJob.payload)]).toEqual([before, null]);
  });

  test("is repeated under its Idempotency-Key, even by twenty requests at once, and paid for once", async () => {
    const before = await world.balance();
    const body = { pass: apple() };
    const key = { "Idempotency-Key": "twenty" };
    const answers = await Promise.all(Array.from({ length: 20 }, () => mail(body, key)));
    expect(new Set(answers.map((answer) => `${answer.status} ${String(answer.body["job_id"])}`)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.has("idempotency-replayed"))).toHaveLength(19);
    expect((await mail({ pass: apple() }, key)).status).toBe(422);
    expect(await world.balance()).toBe(before - 1);
  });

  test("that was certainly not queued costs nothing and frees the serial; one that may have been is left to the sweep", async () => {
    const before = await world.balance();
    const body = { pass: apple() };
    const failOn = (failure: Error) => {
      const accept = world.front.queue.accept.bind(world.front.queue);
      world.front.queue.accept = async () => {
        world.front.queue.accept = accept;
        throw failure;
      };
    };
    failOn(new UnavailableError("full"));
    expect([(await mail(body)).status, await world.balance()]).toEqual([500, before]);
    failOn(new TransportError("lost"));
    expect([(await mail(body)).status, await world.balance()]).toEqual([500, before - 1]);
  });
});

describe("a refused message costs nothing, and its sentence names the member", () => {
  const { pass_data } = apple();
  test.each<[string, object, number, string]>([
    ["of the message first", { to_address: "ada", pass: 1 }, 400, "to_address must be"],
    ["no object", { pass: "card" }, 400, "pass must be an object"],
    ["an unknown member", { pass: { ...apple(), scheduled_at: null } }, 400, "scheduled_at is not a member of pass"],
    ["no type", { pass: { pass_data } }, 400, "pass.pass_type must be"],
    ["a bad field", { pass: apple({ style: "card" }) }, 400, "pass.pass_data.style must be"],
    ["an unknown template", { pass: { template_id: "none" } }, 400, "pass: there is no wallet template"],
    ["its own member pass in data", { pass: apple(), data: { pass: 1 } }, 400, "data must have no member pass"],
    ["a script, after the pass", { html: "<script>1</script>", pass: apple() }, 422, "the inline HTML"],
    ["a bad pass, before the script", { html: "<script>1</script>", pass: {} }, 400, "pass.pass_type must be"],
  ])("%s", async (_, body, status, sentence) => {
    const before = await world.balance();
    const answer = await mail(body);
    expect([answer.status, answer.body["error"]]).toEqual([status, expect.stringContaining(sentence)]);
    expect(await world.balance()).toBe(before);
  });

  test.each<[string, object, string]>([
    [
      "a value that its pass has not",
      { ...LINKED, pass: apple() },
      "params.link is {{.pass.save_link}}, and a pass of",
    ],
    ["no value with a link", { params: ["Ada"], pass: apple() }, "pass would not reach the recipient"],
    [
      "a button that its pass has not",
      { buttons: [{ index: 0, sub_type: "url", value: "{{.pass.save_token}}" }], pass: apple() },
      "buttons[0].value is {{.pass.save_token}}",
    ],
  ])("a chat message: %s", async (_, body, sentence) => {
    const before = await world.balance();
    const answer = await chat(body);
    expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(sentence)]);
    expect(await world.balance()).toBe(before);
  });

  test("a serial that was used, and a class that another tenant has", async () => {
    const pass = apple();
    await mail({ pass });
    const before = await world.balance();
    const again = await mail({ pass });
    expect([again.status, again.body["error"]]).toEqual([400, expect.stringContaining("pass.pass_data.serial_number")]);
    await must(world.registry.registry.createTenant({ id: "owner", name: "owner", plan: "pro" }));
    await world.registry.googleClasses.claim("33.theirs", "owner");
    const foreign = await mail({ pass: google({ class_id: "33.theirs" }) });
    const sentence = expect.stringContaining("pass.pass_data.class_id");
    expect([foreign.status, foreign.body["error"]]).toEqual([400, sentence]);
    expect(await world.balance()).toBe(before);
  });

  test("a tenant without the channel wallet (403), without tokens (402), and a full rate window (429)", async () => {
    const { registry } = world.registry;
    const channels = ["email"] as const;
    const permissions = ["allow_raw_html"] as const;
    await must(registry.createTenant({ id: "poor", name: "poor", plan: "pro", channels, permissions }));
    const key = asKey((await must(registry.createKey("poor"))).api_key);
    const refused = await mail({ pass: apple() }, key);
    expect([refused.status, refused.body["error"]]).toEqual([403, expect.stringContaining("the channel wallet")]);
    await must(registry.changeTenant("poor", { channels: ["email", "wallet"] }));
    const { counted } = world.front.queue;
    expect((await mail({ pass: apple() }, key)).status).toBe(402);
    expect((await mail({}, key)).status).toBe(202);
    expect(world.front.queue.counted).toBe(counted + 2);
  });

  test("a batch, which takes no passes", async () => {
    for (const [path, single] of [
      ["/v1/send/email/batch", { ...MAIL, pass: apple() }],
      ["/v1/send/whatsapp/batch", { ...CHAT, pass: apple() }],
    ] as const) {
      const answer = await world.front.post(path, { messages: [single, { ...single, pass: null }] });
      const error = expect.stringContaining("pass is not taken in a batch");
      expect(answer.body).toMatchObject({ jobs: [{ index: 1 }], errors: [{ index: 0, error }] });
    }
  });
});
