import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { CallbackParts } from "../../../src/channels/whatsapp/callbacks/callback-parts.ts";
import { readWhatsappWebhook } from "../../../src/channels/whatsapp/callbacks/webhook.ts";
import { startGraphSandbox } from "../../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import {
  type TemplateList,
  type TemplateVersion,
  templateIn,
} from "../../../src/channels/whatsapp/templates/template-list.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { Front } from "../../http/support/front.ts";
import { eventually } from "../../support/eventually.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { startProvider } from "./whatsapp-world.ts";

const ACCOUNT = "102290129340398";
const TOKEN = "EAAGm0PX4ZCpsBAKZCtoken";
const LONG_AGO_MS = Date.UTC(2026, 0, 1);

/** The provider's templates; each test sets them. */
let listed: JsonObject[] = [];
let front: Front;
let provider: ReturnType<typeof startProvider>;
let sandbox: ReturnType<typeof startGraphSandbox>;
let key = "";
let tenants = 0;
let tenantId = "";

beforeAll(async () => {
  sandbox = startGraphSandbox({
    webhookSecret: "a secret of some length",
    clock: systemClock,
    random: new SeededRandom(7),
    telemetry: new QuietTelemetry(),
    get templates() {
      return listed;
    },
  });
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(async () => {
  await front.stop();
  await sandbox.stop();
}, 90_000);
beforeEach(async () => {
  await provider?.stop();
  provider = startProvider(({ target, headers }) => fetch(`${sandbox.url}${target}`, { headers }));
  front.graphUrl = provider.url;
  front.queue.queued.length = 0;
  tenants += 1;
  tenantId = `tenant-${tenants}`;
  key = await front.addTenant(tenantId, "pro");
  await must(front.registry.changeTenant(tenantId, { allow_custom: ["whatsapp"] }));
  const credentials = { phone_number_id: "777", access_token: TOKEN, business_account_id: ACCOUNT };
  await must(front.registry.putWhatsappCredentials(tenantId, credentials));
});

function template(name: string, changes: JsonObject = {}): JsonObject {
  const components = [{ type: "BODY", text: "Hello {{1}}, order {{2}}" }];
  return { name, language: "en", status: "APPROVED", parameter_format: "POSITIONAL", components, ...changes };
}

const call = (method: string, path: string) =>
  front.fetch(path, { method, headers: { "X-API-Key": key, "Content-Type": "application/json" } });
const sync = () => call("POST", "/v1/whatsapp/templates/sync");
const send = (body: object) =>
  front.sendChat({ phone_number: "5491122334455", language_code: "en", ...body }, { "X-API-Key": key });

/** A list that was read long ago. */
async function old(templates: readonly JsonObject[], isComplete = true) {
  const versions = Map.groupBy(
    templates.map((one) => templateIn(one)),
    (one) => one?.[0] ?? "",
  );
  const read = Array.from(versions, ([name, all]) => [name, all.flatMap((one) => one?.[1] ?? [])] as const);
  const list: TemplateList = { accountId: ACCOUNT, readAtMs: LONG_AGO_MS, isComplete, templates: new Map(read) };
  await must(front.registry.chatTemplates.put(tenantId, list));
}

describe("a sync", () => {
  test("reads every page and keeps what is needed of each template; both lists show it", async () => {
    listed = [
      ...Array.from({ length: 120 }, (_, i) => template(`plain_${i}`)),
      template("full", {
        status: "PAUSED",
        category: "MARKETING",
        parameter_format: "NAMED",
        components: [
          { type: "HEADER", format: "TEXT", text: "{{who}}" },
          { type: "BODY", text: "{{first_name}} {{ first_name }} {{order}}" },
          {
            type: "BUTTONS",
            buttons: [{ type: "QUICK_REPLY" }, { type: "URL", url: "https://a.example/{{1}}" }, { type: "COPY_CODE" }],
          },
        ],
      }),
      template("full", { language: "es", components: [{ type: "HEADER", format: "IMAGE" }] }),
    ];
    const answer = await sync();
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ account_id: ACCOUNT, complete: true, read_at: expect.any(String) });
    expect(answer.body["templates"]).toHaveLength(122);
    expect((answer.body["templates"] as JsonObject[]).slice(0, 2)).toEqual([
      {
        name: "full",
        language: "en",
        status: "PAUSED",
        category: "MARKETING",
        parameter_format: "NAMED",
        header_format: "TEXT",
        header_params: ["who"],
        body_params: ["first_name", "order"],
        filled_buttons: [1, 2],
      },
      {
        name: "full",
        language: "es",
        status: "APPROVED",
        category: null,
        parameter_format: "POSITIONAL",
        header_format: "IMAGE",
        header_params: [],
        body_params: null,
        filled_buttons: [],
      },
    ]);
    expect(provider.calls.map(({ headers }) => headers.get("authorization"))).toEqual(Array(2).fill(`Bearer ${TOKEN}`));
    expect((await call("GET", "/v1/whatsapp/templates")).body).toEqual(answer.body);
    expect((await front.operate("GET", `/tenants/${tenantId}/whatsapp/templates`)).body).toEqual(answer.body);
  });

  test("that cannot be says why, without the token, and keeps the former list", async () => {
    await old([template("kept")]);
    const refusal = { error: { code: 200, message: `(#200) ${TOKEN} lacks a permission` } };
    for (const [answer, sentence] of [
      [() => Response.json(refusal, { status: 403 }), "WhatsApp did not list the templates: error 200: (…) lacks"],
      [() => new Response("<html>", { status: 502 }), "WhatsApp did not list the templates: HTTP 502"],
      [() => new Response("x".repeat(9_000_000)), "WhatsApp did not list the templates: HTTP 200"],
      [() => Response.redirect("http://127.0.0.1:9/", 302), "WhatsApp did not list the templates: HTTP 302"],
    ] as const) {
      await provider.stop();
      provider = startProvider(answer);
      front.graphUrl = provider.url;
      const answered = await sync();
      expect([answered.status, answered.body["error"]]).toEqual([409, expect.stringContaining(sentence)]);
    }
    front.graphUrl = "http://127.0.0.1:9";
    expect((await sync()).body["error"]).toBe("WhatsApp did not answer: try again");
    const kept = await call("GET", "/v1/whatsapp/templates");
    expect(kept.body).toMatchObject({ complete: true, templates: [{ name: "kept" }] });
  });

  test("of endless pages ends, and its list is not taken for whole", async () => {
    await provider.stop();
    let pages = 0;
    provider = startProvider(() => {
      pages += 1;
      const paging = { cursors: { after: String(pages) }, next: "http://127.0.0.1:9/" };
      return Response.json({ data: [template(`t${pages}`), null, { name: 7 }, { name: "a\u0000" }], paging });
    });
    front.graphUrl = provider.url;
    const answer = await sync();
    expect([answer.status, answer.body["complete"]]).toEqual([200, false]);
    expect((await send({ template_id: "other", params: ["Ada", 1] })).status).toBe(202);
  });

  test("needs an account, which the credentials name", async () => {
    await must(front.registry.putWhatsappCredentials(tenantId, { phone_number_id: "777", access_token: TOKEN }));
    expect((await call("GET", "/v1/whatsapp/templates")).body).toEqual({
      account_id: null,
      read_at: null,
      complete: false,
      templates: [],
    });
    expect(await sync()).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("business_account_id") },
    });
    expect((await front.operate("POST", "/tenants/nobody/whatsapp/templates/sync")).status).toBe(404);
  });
});

describe("a send whose template does not fit is 400 and says so, whether the list is fresh or the provider was asked:", () => {
  const fitting = [
    template("order"),
    template("named", { parameter_format: "NAMED", components: [{ type: "BODY", text: "{{who}} {{what}}" }] }),
    template("bare", { components: [{ type: "BODY", text: "Hello" }] }),
    template("photo", {
      components: [
        { type: "HEADER", format: "IMAGE" },
        { type: "BODY", text: "Hello" },
      ],
    }),
    template("head", {
      components: [
        { type: "HEADER", format: "TEXT", text: "{{1}}" },
        { type: "BODY", text: "x" },
      ],
    }),
    template("shop", {
      components: [
        { type: "BODY", text: "Hello" },
        { type: "BUTTONS", buttons: [{ type: "PHONE_NUMBER" }, { type: "URL", url: "https://a.example/{{1}}" }] },
      ],
    }),
    template("paused", { status: "PAUSED" }),
    template("rejected", { status: "REJECTED" }),
    template("disabled", { status: "DISABLED" }),
  ];
  const params = ["Ada", 7];
  const header = { type: "document", id: "1" };
  test.each<[object, string]>([
    [{ template_id: "none", params }, 'template_id: WhatsApp has no template "none" in your account'],
    [{ template_id: "__proto__" }, 'template_id: WhatsApp has no template "__proto__"'],
    [
      { template_id: "order", params, language_code: "es" },
      'language_code: WhatsApp has the template "order" in en, not in es',
    ],
    [{ template_id: "paused", params }, 'template_id: WhatsApp says that the template "paused" in en is PAUSED'],
    [{ template_id: "rejected", params }, "is REJECTED"],
    [{ template_id: "disabled", params }, "is DISABLED"],
    [
      { template_id: "order", params: ["Ada"] },
      'params: the body of the template "order" takes 2 values, and 1 are given',
    ],
    [{ template_id: "bare", params }, 'params: the body of the template "bare" takes 0 values, and 2 are given'],
    [{ template_id: "named", params }, 'params: the body of the template "named" takes 2 values by name: who, what'],
    [{ template_id: "named", params: { who: "Ada" } }, "and what is not given"],
    [{ template_id: "named", params: { who: "Ada", what: 1, when: 2 } }, "params.when: the body of"],
    [{ template_id: "photo" }, 'header: the header of the template "photo" takes a value of the type image'],
    [{ template_id: "photo", header }, "takes a value of the type image"],
    [{ template_id: "head" }, 'header: the header of the template "head" takes a text'],
    [{ template_id: "bare", header }, 'header: the template "bare" has none'],
    [{ template_id: "shop" }, 'buttons: the button 1 of the template "shop" takes a value'],
  ])("%j", async (body, sentence) => {
    listed = fitting;
    await sync();
    const fresh = await send(body);
    expect([fresh.status, fresh.body["error"]]).toEqual([400, expect.stringContaining(sentence)]);
    expect(provider.calls).toHaveLength(1);
    await old(fitting);
    const asked = await send(body);
    expect([asked.status, asked.body["error"]]).toEqual([400, fresh.body["error"]]);
    expect((await send(body)).status).toBe(400);
    expect(provider.calls).toHaveLength(2);
    expect(front.queue.queued).toBeEmpty();
  });

  test.each([
    { template_id: "order", params },
    { template_id: "named", params: { what: 1, who: "Ada" } },
    { template_id: "photo", header: { type: "image", id: "1" } },
    { template_id: "shop", buttons: [{ index: 1, sub_type: "url", value: "x" }] },
    { template_id: "none", components: [{ type: "order_status" }] },
  ])("but %j fits, or is none of our business, and nobody is asked", async (body) => {
    await old(fitting);
    expect((await send(body)).status).toBe(202);
    expect(provider.calls).toBeEmpty();
  });
});

describe("no message is refused by what is known no more:", () => {
  const params = ["Ada", 7];

  test("a template that is new, or approved again since the list was read, is sent, and the list learns of it", async () => {
    await old([template("again", { status: "PAUSED" })]);
    listed = [template("again"), template("new"), template("new_too")];
    for (const template_id of ["again", "new"]) expect((await send({ template_id, params })).status).toBe(202);
    await eventually("the list", async () => {
      const { value } = (await front.registry.chatTemplates.one(tenantId, ACCOUNT)) as { value: TemplateList };
      return value.templates.get("again")?.[0]?.status === "APPROVED" && value.templates.has("new");
    });
    expect(provider.calls).toHaveLength(2);
  });

  test.each<[string, () => Response]>([
    ["is away", () => new Response(null, { status: 503 })],
    ["refuses the token", () => Response.json({ error: { code: 190, message: "expired" } }, { status: 401 })],
    ["answers in another form", () => Response.json({ data: "none" })],
    ["has more pages than are read", () => Response.json({ data: [], paging: { next: "x", cursors: { after: "a" } } })],
  ])("where the provider %s, the message is taken", async (what, answer) => {
    await old([]);
    await provider.stop();
    let cursor = 0;
    provider = startProvider(async () => {
      const response = answer();
      if (!what.startsWith("has")) return response;
      cursor += 1;
      return Response.json({ data: [], paging: { next: "x", cursors: { after: String(cursor) } } });
    });
    front.graphUrl = provider.url;
    expect((await send({ template_id: "none", params })).status).toBe(202);
    expect(provider.calls.length).toBeGreaterThan(0);
  });

  test("without a list, or with another account's, nobody is asked", async () => {
    expect((await send({ template_id: "none" })).status).toBe(202);
    const other: TemplateList = { accountId: "9", readAtMs: Date.now(), isComplete: true, templates: new Map() };
    await must(front.registry.chatTemplates.put(tenantId, other));
    expect((await send({ template_id: "none" })).status).toBe(202);
    expect(provider.calls).toBeEmpty();
  });

  test("many wrong templates ask thirty questions a minute, and the others are taken", async () => {
    await old([]);
    listed = [];
    const messages = Array.from({ length: 40 }, (_, i) => ({ phone_number: "5491122334455", template_id: `t${i}` }));
    const body = JSON.stringify({ messages: [...messages, ...messages] });
    const headers = { "X-API-Key": key, "Content-Type": "application/json" };
    const answer = await front.fetch("/v1/send/whatsapp/batch", { method: "POST", headers, body });
    expect(answer.status).toBe(202);
    await eventually("the questions", () => provider.calls.length === 30);
    expect(front.queue.queued.length).toBeLessThanOrEqual(20);
  });
});

test("a call of the provider's about a template changes every list of its account", async () => {
  await old([template("order"), template("order", { language: "es" })]);
  const statuses = async () => {
    const { value } = (await front.registry.chatTemplates.one(tenantId, ACCOUNT)) as { value: TemplateList };
    return value.templates.get("order")?.map(({ status }: TemplateVersion) => status);
  };
  const parts = new CallbackParts({
    messages: { record: async (all) => all.length },
    accounts: { note: async () => undefined, findNumbers: async () => [] },
    owners: { of: async () => new Map() },
    news: { tell: async () => undefined },
    templates: front.registry.chatTemplates,
    platform: { whatsapp: null },
    clock: systemClock,
    telemetry: new QuietTelemetry(),
  });
  const hear = async (event: string) => {
    const value = { event, message_template_name: "order", message_template_language: "en", message_template_id: 7 };
    const changes = [{ field: "message_template_status_update", value }];
    await parts.take(readWhatsappWebhook({ entry: [{ id: ACCOUNT, time: 1, changes }] }));
  };
  await hear("PAUSED");
  expect(await statuses()).toEqual(["PAUSED", "APPROVED"]);
  await hear("REINSTATED");
  await hear("FLAGGED");
  expect(await statuses()).toEqual(["APPROVED", "APPROVED"]);
  await hear("A_WORD_OF_TOMORROW");
  expect(await statuses()).toEqual(["A_WORD_OF_TOMORROW", "APPROVED"]);
  expect((await send({ template_id: "order", params: ["Ada", 1] })).status).toBe(202);
  parts.stop();
});
