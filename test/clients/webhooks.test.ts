import { expect, test } from "bun:test";
import { InvalidSecret, InvalidWebhook, verifyWebhook } from "../../clients/typescript/waybill.ts";

// The example of the specification of Standard Webhooks.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = '{"test": 2432232314}';
const SENT_MS = 1_614_265_330_000;
const SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const HEADERS = {
  "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": SIGNATURE,
};

test("a webhook call of the service is taken, also while one secret replaces another", async () => {
  const at = { nowMs: SENT_MS + 10_000 };
  expect(await verifyWebhook(BODY, HEADERS, SECRET, at)).toEqual({ test: 2_432_232_314 });
  expect(await verifyWebhook(BODY, new Headers(HEADERS), SECRET, at)).toEqual({ test: 2_432_232_314 });
  const rotated = { ...HEADERS, "webhook-signature": `v1,AAAA v1a,xyz ${SIGNATURE}` };
  const other = `whsec_${btoa("another secret of 24 bytes")}`;
  expect(await verifyWebhook(BODY, rotated, [other, SECRET], at)).toEqual({ test: 2_432_232_314 });
});

test.each([
  ["another body", `${BODY} `, {}, 0],
  ["another id", BODY, { "Webhook-Id": "msg_2" }, 0],
  ["too old", BODY, {}, 301_000],
  ["from the future", BODY, {}, -301_000],
  ["no time", BODY, { "webhook-timestamp": "soon" }, 0],
  ["another version", BODY, { "webhook-signature": SIGNATURE.replace("v1", "v2") }, 0],
  ["no base64", BODY, { "webhook-signature": "v1,äöü" }, 0],
  ["no signature", BODY, { "webhook-signature": undefined }, 0],
])("a call that is not the service's is refused: %s", async (_what, body, headers, lateMs) => {
  const call = verifyWebhook(body, { ...HEADERS, ...headers }, SECRET, { nowMs: SENT_MS + lateMs });
  await expect(call).rejects.toBeInstanceOf(InvalidWebhook);
});

test.each([
  ["none", undefined],
  ["an empty one", ""],
  ["a prefix", "whsec_"],
  ["no list", []],
  ["an empty one of two", ["", SECRET]],
  ["a short one", `whsec_${btoa("23 bytes are too few...")}`],
  ["no base64", "whsec_!"],
])("a call is not checked against %s: that is refused by name", async (_what, secret) => {
  // A program without types, whose environment lacks the secret, passes any value.
  const call = verifyWebhook(BODY, HEADERS, secret as string, { nowMs: SENT_MS });
  await expect(call).rejects.toBeInstanceOf(InvalidSecret);
});
