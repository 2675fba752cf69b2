import { expect, test } from "bun:test";
import { unzipSync } from "fflate";
import { useWaybill } from "../support/use-waybill.ts";
import { finalJob, type Waybill } from "../support/waybill.ts";

const SLOW_MS = 60_000;
let waybill: Waybill;
let key = "";

useWaybill(async (started) => {
  waybill = started;
  const tenant = {
    id: "acme",
    name: "Acme",
    channels: ["email", "whatsapp", "wallet"],
    permissions: ["allow_raw_html"],
  };
  await waybill.operator("POST", "/tenants", { ...tenant, tokens: 10 });
  key = (await waybill.operator("POST", "/tenants/acme/keys")).body.api_key;
});

/** A number as other programs write it; JSON.stringify writes its digits. */
const n = (digits: string): unknown => Reflect.apply(Reflect.get(JSON, "rawJSON"), JSON, [digits]);
const ID = "1193287364518273124";
const call = async (method: string, path: string, body?: unknown) => {
  const response = await fetch(`${waybill.url}${path}`, {
    method,
    headers: { "X-API-Key": key, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, bytes: await response.clone().bytes(), text: await response.text() };
};
const queued = async (path: string, body: unknown, method = "POST") => {
  const answer = await call(method, path, body);
  expect([answer.status, answer.text]).toEqual([202, expect.any(String)]);
  const { job_id } = JSON.parse(answer.text);
  const ended = await finalJob(waybill, key, job_id);
  expect(ended).toMatchObject({ status: "success" });
  return ended.result;
};
const sources = async (to: string): Promise<string> =>
  (await waybill.operator("GET", `/sandbox/messages?to=${to}`)).body.messages
    .map(({ source }: { source: string }) => source)
    .join("\n");

test(
  "numbers in an e-mail's data arrive digit by digit, wherever they stand",
  async () => {
    const text = "{{.id}} {{.price}} {{.order}} {{.list.1}} {{.small}} {{.big}} {{.plain}} {{.id.rawJSON}}.";
    const data = {
      id: n(ID),
      price: n("10.50"),
      order: { sum: n("0.10"), of: [n("-0"), 7] },
      list: [1, n("2.00")],
      small: n("0.0000001"),
      big: n("1e3"),
      plain: 42.5,
    };
    const filled = `${ID} 10.50 {"sum":0.10,"of":[-0,7]} 2.00 0.0000001 1e3 42.5 .`;
    await queued("/v1/send/email", { to_address: "one@example.com", subject: "{{.id}}", text, data });
    const single = await sources("one@example.com");
    expect(single).toContain(filled);
    expect(single).toContain(`Subject: ${ID}`);
    const batch = { defaults: { subject: "s", text, data }, messages: [{ to_address: "two@example.com" }] };
    expect((await call("POST", "/v1/send/email/batch", batch)).status).toBe(202);
    await queued("/v1/send/email", {
      to_address: "three@example.com",
      subject: "s",
      text: "{{.n}}",
      data: { n: n("5.0") },
    });
    expect(await sources("two@example.com")).toContain(filled);
    // A number where a text belongs is refused as ever.
    const wrong = await call("POST", "/v1/send/email", { to_address: "x@example.com", subject: "s", text: n("1.50") });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("text must be a string")]);
  },
  SLOW_MS,
);

test(
  "numbers of a chat message's params keep their digits, or are refused by name",
  async () => {
    const message = { phone_number: "491701234567", template_id: "t", language_code: "en" };
    await queued("/v1/send/whatsapp", { ...message, params: [n("10.50"), 3] });
    expect(await sources("491701234567")).toContain('"10.50"');
    const refused = await call("POST", "/v1/send/whatsapp", { ...message, params: [n(ID)] });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining("params[0] is too large for a number: send it as a string"),
    ]);
  },
  SLOW_MS,
);

test(
  "numbers of a pass and of its template keep their digits through the registry and an update",
  async () => {
    const template = { channel: "wallet", pass_type: "apple", pass_data: { user_info: { account: n(ID) } } };
    expect((await call("PUT", "/v1/templates/card", template)).status).toBe(200);
    expect((await call("GET", "/v1/templates/card")).text).toContain(`{"account":${ID}}`);
    const fields = [{ key: "sum", label: "Sum", value: n("10.50"), currency_code: "EUR" }];
    const pass = {
      serial_number: "n-1",
      organization_name: "Acme",
      description: "A pass",
      primary_fields: fields,
      back_fields: [{ key: "no", value: n(ID), semantics: { balance: { amount: n("7.10") } } }],
      locations: [{ latitude: n("47.60"), longitude: n("1e-7") }],
    };
    const made = await queued("/v1/passes/create", { pass_type: "apple", template_id: "card", pass_data: pass });
    const passId = JSON.stringify(made).match(/"pass_id":"([^"]+)"/)?.[1] ?? "";
    const json = async () => {
      const file = await call("GET", `/v1/passes/${passId}/download`);
      return Buffer.from(unzipSync(file.bytes)["pass.json"] ?? []).toString();
    };
    const first = await json();
    for (const part of [`"value":10.50`, `"value":${ID}`, `"amount":7.10`, `"account":${ID}`, `"latitude":47.60`])
      expect(first).toContain(part);
    await queued(`/v1/passes/${passId}`, { pass_data: { primary_fields: [{ key: "sum", value: n("11.00") }] } }, "PUT");
    const second = await json();
    for (const part of [`"value":11.00`, `"value":${ID}`, `"account":${ID}`]) expect(second).toContain(part);
    const long = { ...pass, serial_number: "n-2", back_fields: [{ key: "no", value: n("1".repeat(200)) }] };
    const refused = await call("POST", "/v1/passes/create", { pass_type: "apple", pass_data: long });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining("pass_data.back_fields[0].value has too many digits for a number: send it as a string"),
    ]);
  },
  SLOW_MS,
);

test(
  "numbers of Google's members reach Google digit by digit",
  async () => {
    const issuer = "3388000000012345678";
    const pass = {
      class_id: `${issuer}.numbers`,
      class_type: "generic",
      object_id: `${issuer}.number-1`,
      object_data: { linksModuleData: { uris: [{ id: n(ID), weight: n("1.50") }] } },
    };
    await queued("/v1/passes/create", { pass_type: "google", pass_data: pass });
    expect(await sources(pass.object_id)).toContain(`{"id":${ID},"weight":1.50}`);
    const cards = {
      id: `${issuer}.cards`,
      issuerName: "Acme",
      merchantLocations: [{ latitude: n("47.60"), longitude: 8 }],
    };
    const made = await call("POST", "/v1/google/classes", { class_type: "giftCard", class_data: cards });
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    expect(await sources(cards.id)).toContain(`"latitude":47.60`);
    const card = {
      class_id: cards.id,
      class_type: "giftCard",
      object_id: `${issuer}.card-1`,
      object_data: { cardNumber: "4711", balance: { micros: n(ID), currencyCode: "EUR" } },
    };
    await queued("/v1/passes/create", { pass_type: "google", pass_data: card });
    expect(await sources(card.object_id)).toContain(`"micros":${ID}`);
  },
  SLOW_MS,
);
