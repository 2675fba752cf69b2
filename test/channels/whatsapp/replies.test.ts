import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { graphMessage } from "../../../src/channels/whatsapp/graph-message.ts";
import { parsePayload } from "../../../src/channels/whatsapp/payload.ts";
import { readMessageRequest } from "../../../src/channels/whatsapp/sandbox/graph-request.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import { Front } from "../../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.queue.queued.length = 0;
  front.lastWritten = () => Date.now();
});

const phone_number = "5491122334455";

/** Returns the content that the provider receives of the last message. */
function sent() {
  const payload = parsePayload(front.queue.queued.at(-1)?.job.payload ?? "");
  if (payload === null) throw new Error("the queued message cannot be read");
  const body = JSON.stringify(graphMessage(payload, "v1.x"));
  expect(readMessageRequest(body)).not.toHaveProperty("code");
  const { messaging_product, recipient_type, to, biz_opaque_callback_data, ...content } = JSON.parse(body);
  expect([messaging_product, recipient_type, to, biz_opaque_callback_data]).toEqual([
    "whatsapp",
    "individual",
    phone_number,
    "v1.x",
  ]);
  return content;
}

const BODY = { body: { text: "Hello" } };
const SECTIONS = [{ title: "Bundles", product_retailer_ids: ["a", "b"] }];
const GRAPH_SECTIONS = [
  { title: "Bundles", product_items: [{ product_retailer_id: "a" }, { product_retailer_id: "b" }] },
];

describe("within 24 hours of the recipient's message, the provider gets", () => {
  test.each([
    [
      "image",
      { link: "https://a.example/ñ.png", caption: "Two\nlines" },
      { link: "https://a.example/%C3%B1.png", caption: "Two\nlines" },
    ],
    ["video", { id: "77", link: null }, { id: "77" }],
    ["audio", { id: "77", voice: true }, { id: "77", voice: true }],
    ["document", { id: "77", filename: "a.pdf", caption: "Bill" }, { id: "77", filename: "a.pdf", caption: "Bill" }],
    ["sticker", { id: "77" }, { id: "77" }],
  ])("media of the type %s", async (type, media, content) => {
    expect((await front.sendChat({ phone_number, media: { type, ...media } })).status).toBe(202);
    expect(sent()).toEqual({ type, [type]: content });
  });

  test("a place, people, a reaction, and what quotes another message", async () => {
    await front.sendChat({
      phone_number,
      location: { latitude: -34.6, longitude: -58, name: "Obelisco", address: null },
    });
    expect(sent()).toEqual({ type: "location", location: { latitude: "-34.6", longitude: "-58", name: "Obelisco" } });
    const contacts = [{ name: { formatted_name: "Ann B." }, phones: [{ phone: "+1 555", type: "WORK" }] }];
    await front.sendChat({ phone_number, contacts });
    expect(sent()).toEqual({ type: "contacts", contacts });
    const reaction = { message_id: "wamid.1", emoji: "👍🏽" };
    await front.sendChat({ phone_number, reaction });
    expect(sent()).toEqual({ type: "reaction", reaction });
    await front.sendChat({ phone_number, text: "Yes", reply_to: "wamid.1" });
    expect(sent()).toEqual({
      type: "text",
      text: { body: "Yes", preview_url: false },
      context: { message_id: "wamid.1" },
    });
  });

  test.each<[object, object]>([
    [
      { type: "button", header: { type: "image", id: "7" }, footer: "Bye", buttons: [{ id: "y", title: "Yes" }] },
      {
        type: "button",
        header: { type: "image", image: { id: "7" } },
        footer: { text: "Bye" },
        action: { buttons: [{ type: "reply", reply: { id: "y", title: "Yes" } }] },
      },
    ],
    [
      {
        type: "list",
        header: { type: "text", text: "Times" },
        button: "Choose",
        sections: [
          { title: "Mon", rows: [{ id: "1", title: "9:00", description: null }] },
          { title: "Tue", rows: [{ id: "2", title: "9:00", description: "Early" }] },
        ],
      },
      {
        type: "list",
        header: { type: "text", text: "Times" },
        action: {
          button: "Choose",
          sections: [
            { title: "Mon", rows: [{ id: "1", title: "9:00" }] },
            { title: "Tue", rows: [{ id: "2", title: "9:00", description: "Early" }] },
          ],
        },
      },
    ],
    [
      { type: "cta_url", display_text: "Open", url: "https://a.example/ñ" },
      {
        type: "cta_url",
        action: { name: "cta_url", parameters: { display_text: "Open", url: "https://a.example/%C3%B1" } },
      },
    ],
    [
      {
        type: "flow",
        flow_id: "12",
        flow_cta: "Book",
        flow_token: "t",
        flow_action: "navigate",
        screen: "S",
        data: { a: 1 },
      },
      {
        type: "flow",
        action: {
          name: "flow",
          parameters: {
            flow_message_version: "3",
            flow_id: "12",
            flow_cta: "Book",
            flow_token: "t",
            flow_action: "navigate",
            flow_action_payload: { screen: "S", data: { a: 1 } },
          },
        },
      },
    ],
    [{ type: "location_request_message" }, { type: "location_request_message", action: { name: "send_location" } }],
    [
      { type: "product", catalog_id: "1", product_retailer_id: "a" },
      { type: "product", action: { catalog_id: "1", product_retailer_id: "a" } },
    ],
    [
      { type: "product_list", header: { type: "text", text: "All" }, catalog_id: "1", sections: SECTIONS },
      {
        type: "product_list",
        header: { type: "text", text: "All" },
        action: { catalog_id: "1", sections: GRAPH_SECTIONS },
      },
    ],
    [
      { type: "catalog_message", product_retailer_id: "a" },
      {
        type: "catalog_message",
        action: { name: "catalog_message", parameters: { thumbnail_product_retailer_id: "a" } },
      },
    ],
    // A kind that Waybill does not know, and one that the caller words as the provider does.
    [
      { type: "call_permission_request", action: { name: "call_permission_request" } },
      { type: "call_permission_request", action: { name: "call_permission_request" } },
    ],
    [
      { type: "button", action: { buttons: [{ type: "reply", reply: { id: "y", title: "Yes" } }] } },
      { type: "button", action: { buttons: [{ type: "reply", reply: { id: "y", title: "Yes" } }] } },
    ],
  ])("the interactive message %j", async (interactive, content) => {
    expect((await front.sendChat({ phone_number, interactive: { body: "Hello", ...interactive } })).status).toBe(202);
    expect(sent()).toEqual({ type: "interactive", interactive: { ...BODY, ...content } });
  });
});

test("afterwards every kind is 422, which names it", async () => {
  front.lastWritten = () => null;
  for (const [name, value] of Object.entries({
    media: { type: "image", id: "7" },
    location: { latitude: 0, longitude: 0 },
    interactive: { type: "location_request_message", body: "Where?" },
  })) {
    const answer = await front.sendChat({ phone_number, [name]: value });
    expect([answer.status, answer.body["error"]]).toEqual([
      422,
      expect.stringMatching(
        new RegExp(`^${name} is only taken within 24 hours .* send a template \\(template_id\\) instead$`),
      ),
    ]);
  }
});

test("an earlier release finds neither text nor template in what it cannot know", async () => {
  await front.sendChat({ phone_number, text: "Yes", reply_to: "wamid.1" });
  const payload = JSON.parse(front.queue.queued.at(-1)?.job.payload ?? "{}");
  expect(Object.keys(payload)).toEqual(["to", "message"]);
});

describe("what does not fit is 400 and names the member:", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, i) => ({ id: String(i), title: "x" }));
  const buttons = [{ id: "a", title: "A" }];
  const body = "Hello";
  test.each<[object, string]>([
    [{ text: "x", media: { type: "image", id: "1" } }, "send either text or media, not both"],
    [
      { media: { type: "image", id: "1" }, template_id: "a" },
      "template_id is for messages from a template: send either template_id or media",
    ],
    [{ template_id: "a", reply_to: "wamid.1" }, "reply_to is for messages without a template"],
    [{ text: "x", reply_to: "" }, "reply_to must be a text of 1 to 512"],
    [{ media: "x" }, "media must be an object with a type: one of image, video, audio, document, sticker"],
    [{ media: { type: "gif", id: "1" } }, "media.type must be one of"],
    [{ media: { type: "__proto__", id: "1" } }, "media.type must be one of"],
    [{ media: { type: "image" } }, "media must have either a link or an id"],
    [{ media: { type: "image", link: "http://a.example/b" } }, "media.link must be an https address"],
    [
      { media: { type: "sticker", id: "1", caption: "x" } },
      "media.caption is not a member of media of the type sticker",
    ],
    [{ media: { type: "image", id: "1", caption: "x".repeat(1_025) } }, "media.caption must not be longer than 1024"],
    [{ media: { type: "audio", id: "1", voice: "yes" } }, "media.voice must be true or false"],
    [{ media: { type: "document", id: "1", filename: "" } }, "media.filename must be a text of 1 to 240"],
    [{ location: { latitude: 91, longitude: 0 } }, "location.latitude must be a number from -90 to 90"],
    [{ location: { latitude: 1, longitude: 0, type: "x" } }, "location.type is not a member of location"],
    [{ contacts: [] }, "contacts must be an array of 1 to 20"],
    [{ contacts: [{ name: {} }] }, "contacts[0].name.formatted_name is required"],
    [
      { contacts: [{ name: { formatted_name: "x" }, a: "x".repeat(16_384) }] },
      "contacts must not be larger than 16384",
    ],
    [{ reaction: { emoji: "x" } }, "reaction.message_id is required"],
    [{ reaction: { message_id: "w", emoji: 7 } }, "reaction.emoji must be an emoji"],
    [{ interactive: "x" }, "interactive must be an object with a type"],
    [{ interactive: { type: "poll", body } }, "interactive.type must be one of button, list, cta_url"],
    [{ interactive: { type: "toString", body } }, "interactive.type must be one of"],
    [{ interactive: { type: "poll", action: "x" } }, "interactive.action must be an object"],
    [{ interactive: { type: "poll", action: { a: "x".repeat(16_384) } } }, "interactive.action must not be larger"],
    [{ interactive: { type: "button", body } }, "interactive.buttons must be an array of 1 to 3 objects"],
    [{ interactive: { type: "button", buttons } }, "interactive.body is required"],
    [
      { interactive: { type: "button", body: "x".repeat(1_025), buttons } },
      "interactive.body must not be longer than 1024",
    ],
    [
      { interactive: { type: "button", body, footer: "x".repeat(61), buttons } },
      "interactive.footer must be a text of 1 to 60",
    ],
    [
      { interactive: { type: "button", body, buttons, url: "x" } },
      "interactive.url is not a member of an interactive message of",
    ],
    [
      { interactive: { type: "button", body, buttons: [...buttons, ...buttons] } },
      "interactive.buttons[1].id is another one's",
    ],
    [{ interactive: { type: "button", body, buttons: [{ id: "a" }] } }, "interactive.buttons[0].title is required"],
    [
      { interactive: { type: "button", body, buttons: [{ id: "a", title: "x".repeat(21) }] } },
      "interactive.buttons[0].title must be a text of 1 to 20",
    ],
    [
      { interactive: { type: "button", body, buttons, header: { type: "location", latitude: 0, longitude: 0 } } },
      "interactive.header.type must be one of text, image, video, document",
    ],
    [
      { interactive: { type: "button", body, buttons, header: { type: "text", text: "x", parameter_name: "a" } } },
      "interactive.header.parameter_name is for templates",
    ],
    [
      { interactive: { type: "list", body, button: "x", sections: [] } },
      "interactive.sections must be an array of 1 to 10",
    ],
    [
      {
        interactive: { type: "list", body, button: "x", sections: [{ rows: rows(1) }, { title: "x", rows: rows(1) }] },
      },
      "interactive.sections[0].title is required",
    ],
    [
      {
        interactive: {
          type: "list",
          body,
          button: "x",
          sections: ["a", "b"].map((title) => ({ title, rows: rows(1) })),
        },
      },
      "interactive.sections has two rows with the same id",
    ],
    [
      {
        interactive: {
          type: "list",
          body,
          button: "x",
          sections: ["a", "b"].map((title) => ({ title, rows: rows(6) })),
        },
      },
      "interactive.sections must not hold more than 10 rows in all",
    ],
    [{ interactive: { type: "cta_url", body, url: "https://a.example" } }, "interactive.display_text is required"],
    [{ interactive: { type: "cta_url", body, display_text: "x", url: "ftp://a" } }, "interactive.url must be an https"],
    [{ interactive: { type: "flow", body, flow_cta: "x" } }, "interactive.flow_id is required"],
    [
      { interactive: { type: "flow", body, flow_id: "1", flow_cta: "x", mode: "live" } },
      "interactive.mode must be one of",
    ],
    [{ interactive: { type: "product", catalog_id: "a" } }, "interactive.catalog_id must be the provider's id"],
    [
      { interactive: { type: "product_list", body, catalog_id: "1", sections: SECTIONS } },
      "interactive.header is required",
    ],
  ])("%j", async (members, error) => {
    const answer = await front.sendChat({ phone_number, ...members });
    expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(error)]);
    expect(front.queue.queued).toBeEmpty();
  });
});

test("whatever is taken is read again from the queue, and anything else is a sentence", async () => {
  const anything = fc.jsonValue({ maxDepth: 3 });
  const interactive = fc.record(
    {
      type: fc.constantFrom("button", "list", "cta_url", "flow", "product", "poll"),
      body: fc.oneof(fc.constant("Hello"), anything),
      header: fc.oneof(fc.constant({ type: "text", text: "x" }), anything),
      footer: anything,
      buttons: fc.oneof(fc.array(fc.record({ id: fc.string(), title: fc.string() })), anything),
      sections: anything,
      action: fc.oneof(fc.dictionary(fc.string(), anything), anything),
      data: anything,
    },
    { requiredKeys: ["type"] },
  );
  const given = fc.oneof(
    fc.record({ interactive }),
    fc.record({
      media: fc.record({ type: fc.constantFrom("image", "audio"), id: fc.constant("7"), caption: anything }),
    }),
    fc.record({ location: fc.record({ latitude: fc.double(), longitude: fc.nat(180), name: anything }) }),
    fc.record({
      contacts: fc.oneof(
        fc.array(fc.record({ name: fc.record({ formatted_name: fc.string() }), org: anything })),
        anything,
      ),
    }),
    fc.record({ reaction: fc.oneof(fc.record({ message_id: fc.string(), emoji: fc.string() }), anything) }),
  );
  await fc.assert(
    fc.asyncProperty(given, async (members) => {
      const answer = await front.sendChat(JSON.stringify({ phone_number, ...members }));
      expect(answer.status).toBeOneOf([202, 400]);
      if (answer.status === 400) return expect(answer.body["error"]).toBeString();
      expect(parsePayload(front.queue.queued.at(-1)?.job.payload ?? "")).toMatchObject({ to: phone_number });
    }),
    { numRuns: 300 },
  );
}, 90_000);
