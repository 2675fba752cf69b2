import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { graphMessage } from "../../../src/channels/whatsapp/graph-message.ts";
import { parsePayload } from "../../../src/channels/whatsapp/payload.ts";
import { readMessageRequest } from "../../../src/channels/whatsapp/sandbox/graph-request.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import { isJsonObject } from "../../../src/domain/texts/json.ts";
import { Front } from "../../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.queue.queued.length = 0;
});

const SEND = { phone_number: "5491122334455", template_id: "offer", language_code: "en" } as const;

/** Returns the last message that the provider received, and checks it against the provider's rules. */
function sent() {
  const payload = parsePayload(front.queue.queued.at(-1)?.job.payload ?? "");
  if (payload === null) throw new Error("the queued message cannot be read");
  const body = JSON.stringify(graphMessage(payload, "v1.x"));
  expect(readMessageRequest(body)).not.toHaveProperty("code");
  return { body, template: JSON.parse(body).template };
}

const card = (id: string) => ({
  header: { type: "image", link: `https://a.example/${id}.png` },
  params: ["Ada", 7],
  buttons: [
    { index: 0, sub_type: "quick_reply", value: `more-${id}` },
    { index: 1, sub_type: "url", value: id },
  ],
});

describe("a template send reaches the provider as it documents", () => {
  test("a carousel of media cards, its cards in their order", async () => {
    expect((await front.sendChat({ ...SEND, params: ["Ada"], cards: [card("a"), card("b")] })).status).toBe(202);
    const { components } = sent().template;
    expect(components[0]).toEqual({ type: "body", parameters: [{ type: "text", text: "Ada" }] });
    expect(components[1]).toEqual({
      type: "carousel",
      cards: ["a", "b"].map((id, card_index) => ({
        card_index,
        components: [
          { type: "header", parameters: [{ type: "image", image: { link: `https://a.example/${id}.png` } }] },
          {
            type: "body",
            parameters: [
              { type: "text", text: "Ada" },
              { type: "text", text: "7" },
            ],
          },
          {
            type: "button",
            sub_type: "quick_reply",
            index: "0",
            parameters: [{ type: "payload", payload: `more-${id}` }],
          },
          { type: "button", sub_type: "url", index: "1", parameters: [{ type: "text", text: id }] },
        ],
      })),
    });
  });

  test("a carousel of products", async () => {
    const header = { type: "product", product_retailer_id: "sku-1", catalog_id: "1948" };
    expect((await front.sendChat({ ...SEND, cards: [{ header, params: null }] })).status).toBe(202);
    const product = { product_retailer_id: "sku-1", catalog_id: "1948" };
    expect(sent().template.components).toEqual([
      {
        type: "carousel",
        cards: [{ card_index: 0, components: [{ type: "header", parameters: [{ type: "product", product }] }] }],
      },
    ]);
  });

  test.each([
    [
      { index: 0, sub_type: "catalog" },
      { type: "button", sub_type: "catalog", index: "0" },
    ],
    [
      { index: 0, sub_type: "catalog", value: "sku-1" },
      {
        type: "button",
        sub_type: "catalog",
        index: "0",
        parameters: [{ type: "action", action: { thumbnail_product_retailer_id: "sku-1" } }],
      },
    ],
    [
      {
        index: 1,
        sub_type: "mpm",
        value: "sku-1",
        sections: [{ title: "Bundles", product_retailer_ids: ["sku-1", "sku-2"] }],
      },
      {
        type: "button",
        sub_type: "mpm",
        index: "1",
        parameters: [
          {
            type: "action",
            action: {
              thumbnail_product_retailer_id: "sku-1",
              sections: [
                {
                  title: "Bundles",
                  product_items: [{ product_retailer_id: "sku-1" }, { product_retailer_id: "sku-2" }],
                },
              ],
            },
          },
        ],
      },
    ],
    [
      { index: 0, sub_type: "flow", value: "token", data: { seats: [1, { row: "A" }] } },
      {
        type: "button",
        sub_type: "flow",
        index: "0",
        parameters: [
          { type: "action", action: { flow_token: "token", flow_action_data: { seats: [1, { row: "A" }] } } },
        ],
      },
    ],
    [
      { index: 0, sub_type: "flow", value: null },
      {
        type: "button",
        sub_type: "flow",
        index: "0",
        parameters: [{ type: "action", action: { flow_token: "unused" } }],
      },
    ],
    [
      { index: 0, sub_type: "voice_call", parameters: [{ type: "ttl_minutes", ttl_minutes: 100 }] },
      {
        type: "button",
        sub_type: "voice_call",
        index: "0",
        parameters: [{ type: "ttl_minutes", ttl_minutes: 100 }],
      },
    ],
  ])("the button %j", async (button, component) => {
    expect((await front.sendChat({ ...SEND, buttons: [button] })).status).toBe(202);
    expect(sent().template.components).toEqual([component]);
  });

  test("amounts of money and times, in order and by name", async () => {
    const price = { type: "currency", fallback_value: "$100.99", code: "USD", amount_1000: 100_990 };
    const day = { type: "date_time", fallback_value: "February 25" };
    const [currency, date_time] = [
      { fallback_value: "$100.99", code: "USD", amount_1000: 100_990 },
      { fallback_value: "February 25" },
    ];
    await front.sendChat({ ...SEND, params: [price, "Ada", day] });
    expect(sent().template.components[0].parameters).toEqual([
      { type: "currency", currency },
      { type: "text", text: "Ada" },
      { type: "date_time", date_time },
    ]);
    await front.sendChat({ ...SEND, params: { price, day } });
    expect(sent().template.components[0].parameters).toEqual([
      { type: "currency", parameter_name: "price", currency },
      { type: "date_time", parameter_name: "day", date_time },
    ]);
  });

  test("an offer that ends", async () => {
    const limited_time_offer = { expires_at: "2026-12-24T18:00:00+01:00" };
    expect((await front.sendChat({ ...SEND, limited_time_offer })).status).toBe(202);
    expect(sent().template.components).toEqual([
      {
        type: "limited_time_offer",
        parameters: [
          { type: "limited_time_offer", limited_time_offer: { expiration_time_ms: Date.UTC(2026, 11, 24, 17) } },
        ],
      },
    ]);
  });

  test("a component of a kind that nobody here knows, digit by digit", async () => {
    const component = `{"type":"order_status","parameters":[{"type":"order_status","order_status":{"id":1193287364518273124,"sum":10.50}}]}`;
    const body = `{"phone_number":"5491122334455","template_id":"offer","components":[${component}]}`;
    expect((await front.sendChat(body)).status).toBe(202);
    expect(sent().body).toContain(`"components":[${component}]`);
  });
});

test("what an earlier release cannot know is queued in no form that it reads", async () => {
  const button = { index: 0, sub_type: "flow", value: "token", data: {} };
  for (const members of [
    { cards: [card("a")] },
    { buttons: [button] },
    { params: [{ type: "date_time", fallback_value: "x" }] },
  ]) {
    await front.sendChat({ ...SEND, ...members });
    const { template, buttons, params } = JSON.parse(front.queue.queued.at(-1)?.job.payload ?? "{}");
    // It reads a name by itself or under `name`, buttons with a value, and values of text.
    const isRead =
      (typeof template === "string" || typeof template.name === "string") &&
      (buttons ?? []).every((one: object) => "value" in one) &&
      params.every((one: unknown) => typeof one === "string");
    expect([members, isRead]).toEqual([members, false]);
  }
});

describe("what does not fit is 400 and names the member:", () => {
  const header = { type: "image", id: "1" };
  const money = { type: "currency", fallback_value: "1 €", code: "EUR", amount_1000: 1_000 };
  test.each<[object, string]>([
    [{ cards: {} }, "cards must be an array of 1 to 10 objects"],
    [{ cards: [] }, "cards must be an array of 1 to 10 objects"],
    [{ cards: Array.from({ length: 11 }, () => ({ header })) }, "cards must be an array of 1 to 10 objects"],
    [{ cards: [7] }, "cards[0] must be an object with a header"],
    [{ cards: [{}] }, "cards[0].header is required"],
    [{ cards: [{ header: { type: "text", text: "x" } }] }, "cards[0].header.type must be one of image, video, product"],
    [{ cards: [{ header: { type: "image" } }] }, "cards[0].header must have either a link or an id"],
    [{ cards: [{ header }, { header, params: [""] }] }, "cards[1].params[0] must not be empty"],
    [{ cards: [{ header, buttons: [{ index: 0 }] }] }, "cards[0].buttons[0].sub_type must be one of quick_reply"],
    [{ cards: [{ header, text: "x" }] }, "cards[0].text is not a member of a card"],
    [{ header: { type: "product" } }, "header.product_retailer_id is required"],
    [{ header: { type: "product", product_retailer_id: "a", catalog_id: "b" } }, "header.catalog_id must be"],
    [{ buttons: [{ index: 0, sub_type: "mpm", value: "a" }] }, "buttons[0].sections must be an array of 1 to 10"],
    [
      { buttons: [{ index: 0, sub_type: "mpm", value: "a", sections: [{ title: "x", product_retailer_ids: [] }] }] },
      "buttons[0].sections[0].product_retailer_ids must be an array of one id at least",
    ],
    [
      {
        buttons: [
          {
            index: 0,
            sub_type: "mpm",
            value: "a",
            sections: [{ title: "x", product_retailer_ids: Array.from({ length: 31 }, String) }],
          },
        ],
      },
      "buttons[0].sections must not hold more than 30 products in all",
    ],
    [
      {
        buttons: [
          { index: 0, sub_type: "mpm", value: "a", sections: [{ title: "x".repeat(25), product_retailer_ids: ["a"] }] },
        ],
      },
      "buttons[0].sections[0].title must be a text of 1 to 24 characters",
    ],
    [{ buttons: [{ index: 0, sub_type: "flow", value: "t", data: [] }] }, "buttons[0].data must be an object"],
    [
      { buttons: [{ index: 0, sub_type: "flow", data: { a: "x".repeat(16_384) } }] },
      "buttons[0].data must not be larger than 16384 bytes",
    ],
    [
      { buttons: [{ index: 0, sub_type: "url", value: "a", data: {} }] },
      "buttons[0].data is not a member of a button of",
    ],
    [{ buttons: [{ index: 0, sub_type: "voice_call", value: "a" }] }, "buttons[0].sub_type must be one of"],
    [
      { buttons: [{ index: 0, sub_type: "voice_call", parameters: [] }] },
      "buttons[0].parameters must be an array of 1",
    ],
    [{ buttons: [{ index: 0, sub_type: "V-C", parameters: [{}] }] }, "buttons[0].sub_type must be one of"],
    [
      { buttons: [{ index: 0, sub_type: "voice_call", parameters: [{ a: "\ud800" }] }] },
      "buttons[0].parameters must not contain half of a character",
    ],
    [{ params: [{ type: "money" }] }, "params[0].type must be one of currency, date_time"],
    [{ params: [{ ...money, fallback_value: null }] }, "params[0].fallback_value is required"],
    [{ params: { a: { ...money, code: "eur" } } }, "params.a.code must be a currency's code"],
    [{ params: [{ ...money, amount_1000: 1.5 }] }, "params[0].amount_1000 must be a whole number"],
    [{ params: [{ ...money, day: 1 }] }, "params[0].day is not a member of a value of the type currency"],
    [
      { params: [{ type: "date_time", fallback_value: "a\nb" }] },
      "params[0].fallback_value must not contain line breaks",
    ],
    [{ limited_time_offer: "2026-12-24" }, "limited_time_offer must be an object with expires_at"],
    [
      { limited_time_offer: { expires_at: "2026-12-24" } },
      "limited_time_offer.expires_at must be a time with its zone",
    ],
    [{ components: [{}] }, "components[0] must be an object with a type"],
    [{ components: [{ type: "BODY", parameters: [] }] }, "components[0].type is BODY, which other members"],
    [{ components: [{ type: "x", a: "x".repeat(16_384) }] }, "components must not be larger than 16384 bytes"],
  ])("%j", async (members, error) => {
    const answer = await front.sendChat({ ...SEND, ...members });
    expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(error)]);
    expect(front.queue.queued).toBeEmpty();
  });
});

test("whatever is taken is read again from the queue, and anything else is a sentence", async () => {
  const anything = fc.jsonValue({ maxDepth: 3 });
  const header = fc.oneof(fc.constant({ type: "video", id: "7" }), anything);
  const button = fc.record({
    index: fc.nat(3),
    sub_type: fc.constantFrom("url", "flow", "catalog", "mpm", "voice_call", "__proto__"),
    value: fc.oneof(fc.constant("a"), anything),
    data: fc.option(fc.dictionary(fc.string(), anything)),
    parameters: fc.option(fc.array(fc.dictionary(fc.string(), anything), { maxLength: 2 })),
  });
  const members = fc.record(
    {
      cards: fc.array(fc.record({ header, buttons: fc.array(button, { maxLength: 2 }) }), { maxLength: 3 }),
      buttons: fc.array(button, { maxLength: 2 }),
      limited_time_offer: fc.oneof(fc.constant({ expires_at: "2026-12-24T18:00:00Z" }), anything),
      components: fc.array(fc.oneof(fc.record({ type: fc.string(), a: anything }), anything), { maxLength: 2 }),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(members, async (given) => {
      const answer = await front.sendChat(JSON.stringify({ ...SEND, ...given }));
      expect(answer.status).toBeOneOf([202, 400]);
      if (answer.status === 400) return expect(answer.body["error"]).toBeString();
      const payload = parsePayload(front.queue.queued.at(-1)?.job.payload ?? "");
      expect(isJsonObject(payload)).toBe(true);
    }),
    { numRuns: 300 },
  );
}, 90_000);
