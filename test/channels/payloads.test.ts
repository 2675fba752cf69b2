import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import * as email from "../../src/channels/email/payload.ts";
import { acceptEmail } from "../../src/channels/email/request.ts";
import * as wallet from "../../src/channels/wallet/payload.ts";
import * as whatsapp from "../../src/channels/whatsapp/payload.ts";
import { acceptWhatsapp } from "../../src/channels/whatsapp/request.ts";
import { BUTTON_TYPES } from "../../src/channels/whatsapp/templates/buttons.ts";
import type { PlatformCredentials } from "../../src/domain/channels/platform.ts";
import { HEADER_MEDIA_TYPES, type HeaderMedia, type WhatsappAlias } from "../../src/domain/channels/whatsapp.ts";
import type { Acceptance } from "../../src/http/sending/acceptance.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { aTenant } from "../support/tenants.ts";

const RUNS = { numRuns: 500 };
const anyText = fc.string({ unit: "binary" });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** The payload as it comes over the wire. */
const wired = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function payloadIn(acceptance: Acceptance): string {
  if (!acceptance.ok) throw new Error(acceptance.refusal.message);
  return acceptance.job.payload;
}

const aTemplate = { subject: "Hello", html: "<p>Hello</p>", text: null };
const sender = aTenant({
  permissions: new Set(["allow_raw_html"]),
  emailTemplates: new Map([["welcome", aTemplate]]),
});
const content = fc.oneof(
  fc.record({ template_id: fc.constant("welcome") }),
  fc.record({ html: fc.string().map((text) => `<p>Hello ${text.replaceAll("<", "")}</p>`) }),
  fc.constant({ template_id: "welcome", html: "<p>Hello</p>" }),
);
const emails = fc
  .tuple(
    content,
    fc.record({
      to_address: fc.constantFrom("ada@example.com", "Ada@Example.com", '"a b"@example.com'),
      to_name: maybe(fc.string()),
      subject: maybe(fc.string()),
      data: maybe(fc.dictionary(fc.oneof(fc.constant("__proto__"), anyText), fc.jsonValue({ maxDepth: 3 }))),
    }),
  )
  .map(([body, others]) => payloadIn(acceptEmail(sender, wired({ ...others, ...body }))));

const platform: PlatformCredentials = {
  whatsapp: { phoneNumberId: "1", accessToken: "token" },
  apple: null,
  google: null,
};
const chatPorts = {
  platform,
  windows: { lastWrittenMs: async () => null },
  templates: { doubt: () => null },
  clock: systemClock,
};
const media: fc.Arbitrary<HeaderMedia> = fc.record(
  { type: fc.constantFrom(...HEADER_MEDIA_TYPES), link: fc.webUrl(), id: fc.string(), filename: anyText },
  { requiredKeys: ["type"] },
);
const alias: fc.Arbitrary<WhatsappAlias> = fc.record({
  metaName: anyText,
  languageCode: fc.option(fc.constant("pt_BR")),
  params: fc.constant([]),
  header: fc.option(media),
});
const filled = fc.stringMatching(/^[a-z{}"\\é漢]{1,9}$/u);
const chatValue = fc.oneof(
  filled,
  fc.integer(),
  fc.boolean(),
  fc.record({ type: fc.constant("date_time"), fallback_value: filled }),
  fc.record({
    type: fc.constant("currency"),
    fallback_value: filled,
    code: fc.constant("EUR"),
    amount_1000: fc.maxSafeInteger(),
  }),
);
const raw = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 2 }));
const section = { title: "Bundles", product_retailer_ids: ["sku-1"] };
const pressable = (maxLength: number) =>
  fc.uniqueArray(
    fc
      .record({
        index: fc.integer({ min: 0, max: 9 }),
        sub_type: fc.constantFrom(...BUTTON_TYPES),
        value: fc.oneof(filled, fc.integer()),
        data: raw,
      })
      .map(({ data, ...button }) => {
        if (button.sub_type === "mpm") return { ...button, sections: [section] };
        return button.sub_type === "flow" ? { ...button, data } : button;
      }),
    { selector: ({ index }) => index, maxLength },
  );
const freeTexts = fc
  .oneof(filled, fc.record({ body: filled, preview_url: maybe(fc.boolean()) }))
  .map((text) => payloadIn(acceptWhatsapp(aTenant(), wired({ phone_number: "5491122334455", text }), chatPorts)));
const chats = fc
  .tuple(
    alias,
    fc.record({
      phone_number: fc.constant("5491122334455"),
      template_id: fc.constantFrom("shipped", "hello_world"),
      language_code: maybe(fc.constant("en_US")),
      params: maybe(
        fc.oneof(fc.array(chatValue), fc.dictionary(fc.stringMatching(/^[a-z_][a-z0-9_]{0,20}$/), chatValue)),
      ),
      header: maybe(
        fc.oneof(
          fc.record({ type: fc.constant("text"), text: filled, parameter_name: maybe(fc.constant("__proto__")) }),
          fc.record({ type: fc.constant("video"), id: fc.constant("77") }),
          fc.record({
            type: fc.constant("location"),
            latitude: fc.double({ min: -90, max: 90, noNaN: true }),
            longitude: fc.integer({ min: -180, max: 180 }),
            name: maybe(filled),
          }),
        ),
      ),
      buttons: maybe(pressable(10)),
      cards: maybe(
        fc.array(
          fc.record({
            header: fc.record({ type: fc.constant("product"), product_retailer_id: filled }),
            params: maybe(fc.array(chatValue)),
            buttons: maybe(pressable(2)),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      ),
      components: maybe(
        fc.array(
          raw.map((others) => ({ ...others, type: "order_status" })),
          { minLength: 1, maxLength: 3 },
        ),
      ),
    }),
  )
  .map(([shipped, body]) => {
    const tenant = aTenant({ whatsapp: { sender: null, aliases: new Map([["shipped", shipped]]), templates: null } });
    return payloadIn(acceptWhatsapp(tenant, wired(body), chatPorts));
  });

const passes = fc
  .record(
    {
      action: fc.constantFrom<"create" | "update">("create", "update"),
      passId: fc.uuid(),
      version: fc.nat(),
      notifyMessage: anyText,
    },
    { requiredKeys: ["action", "passId", "version"] },
  )
  .map(wallet.encodePayload);

/** The text that a payload is serialized to again; null: it could not be parsed. */
function again<T>(parse: (text: string) => T | null, encode: (payload: T) => string): (text: string) => string | null {
  return (text) => {
    const payload = parse(text);
    return payload === null ? null : encode(payload);
  };
}

const CHANNELS = [
  {
    channel: "email",
    queued: emails,
    reread: again(email.parsePayload, email.encodePayload),
    stored: '{"to":"ada@example.com","toName":"Ada","subject":"Hi","html":"<p>Hi</p>","data":{"a":[1,null]}}',
    broken: ['{"toName":"Ada"}', '{"to":7}'],
  },
  {
    channel: "whatsapp",
    queued: fc.oneof({ weight: 4, arbitrary: chats }, freeTexts),
    reread: again(whatsapp.parsePayload, whatsapp.encodePayload),
    stored:
      '{"to":"5491122334455","template":"hx1","language":"es","params":["1"],"header":{"type":"image","id":"media-1"}}',
    broken: ['{"to":"549"}', '{"to":"1","template":"t","language":"es","params":[1]}'],
  },
  {
    channel: "wallet",
    queued: passes,
    reread: again(wallet.parsePayload, wallet.encodePayload),
    stored: '{"action":"update","passId":"01936f2e-7c1a-7c44-8b1e-6d0f2a9be310","version":2,"notifyMessage":"Gate B"}',
    broken: ['{"action":"delete","passId":"p","version":1}', '{"action":"create","passId":"p","version":"1"}'],
  },
];

describe.each(CHANNELS)("the payload of $channel", ({ queued, reread, stored, broken }) => {
  test("says the same, byte by byte, whatever request it was queued for", () => {
    fc.assert(
      fc.property(queued, (text) => {
        expect(reread(text)).toBe(text);
      }),
      RUNS,
    );
  });

  test("that an earlier release queued is read as it was meant", () => {
    expect(reread(stored)).toBe(stored);
  });

  test("that no release queued is nothing, and no error", () => {
    for (const text of ["", "null", "[]", "{", "{}", '"to"', ...broken])
      expect([text, reread(text)]).toEqual([text, null]);
    fc.assert(
      fc.property(fc.oneof(anyText, fc.json()), (text) => {
        expect(reread(text)).toBeNull();
      }),
      RUNS,
    );
  });
});
