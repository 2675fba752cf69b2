import { expect, test } from "bun:test";
import { parseRefusal, retryAfterMs } from "../../../src/channels/wallet/google/google-replies.ts";
import { isSameObject } from "../../../src/channels/wallet/google/same-object.ts";

const error = (reason: string, message = "") => JSON.stringify({ error: { message, errors: [{ reason }] } });

test("what follows from an answer is decided by status and reason, never by the text beside them", () => {
  const cases = [
    [400, "invalidResource", "invalid"],
    [400, "classNotFound", "missing"],
    [400, "existingResource", "exists"],
    [401, "authError", "credentials"],
    [403, "permissionDenied", "forbidden"],
    [403, "userRateLimitExceeded", "busy"],
    [403, "quotaExceeded", "quota"],
    [404, "resourceNotFound", "missing"],
    [408, "", "busy"],
    [409, "existingResource", "exists"],
    [409, "aborted", "busy"],
    [499, "", "unanswered"],
    [425, "", "busy"],
    [429, "rateLimitExceeded", "busy"],
    [429, "somethingNew", "quota"],
    [418, "somethingNew", "invalid"],
    [500, "backendError", "away"],
    [503, "quotaExceeded", "away"],
    [302, "", "busy"],
  ] as const;
  for (const [status, reason, cause] of cases) {
    const misleading = "quotaExceeded classNotFound existingResource";
    expect([status, reason, parseRefusal(status, error(reason, misleading)).cause]).toEqual([status, reason, cause]);
  }
  // As Google's newer services word it.
  expect(parseRefusal(409, '{"error":{"code":409,"message":"x","status":"ABORTED"}}').cause).toBe("busy");
  expect(parseRefusal(409, '{"error":{"code":409,"message":"x","status":"ALREADY_EXISTS"}}').cause).toBe("exists");
  for (const text of [
    "",
    "<html>",
    "[]",
    '{"error":"invalid"}',
    '{"error":{"errors":"x"}}',
    '{"error":{"errors":[7]}}',
  ]) {
    expect(parseRefusal(400, text)).toEqual({ cause: "invalid", said: "" });
  }
});

test("Google's words reach a tenant on one line, bounded, and without what cannot be shown", () => {
  expect(parseRefusal(400, error("x", "Invalid\r\n\u0000 \u202eid")).said).toBe("Invalid id");
  const { said } = parseRefusal(400, error("x", "é".repeat(100_000)));
  expect(said.length).toBe(300);
});

test("a wait that Google asks for is kept, in seconds or until a date, within an hour", () => {
  const nowMs = Date.UTC(2026, 10, 21, 12);
  expect(retryAfterMs("7", nowMs)).toBe(7_000);
  expect(retryAfterMs("Sat, 21 Nov 2026 12:00:30 GMT", nowMs)).toBe(30_000);
  expect(retryAfterMs("999999", nowMs)).toBe(3_600_000);
  for (const header of [null, "", "soon", "-1", "0", "Sat, 21 Nov 2026 11:00:00 GMT"]) {
    expect(retryAfterMs(header, nowMs)).toBeNull();
  }
});

test("an object is the same beside what Google adds to it, and no other", () => {
  const sent = { id: "1.a", state: "ACTIVE", barcode: { type: "QR_CODE", value: "7" }, list: [{ id: "x" }], count: 7 };
  const added = { kind: "walletobjects#genericObject", hasUsers: false, version: "1", messages: [], extra: "" };
  expect(isSameObject(sent, { ...sent, ...added })).toBe(true);
  const former = { ...sent, state: "active", barcode: { type: "qrCode", value: "7", kind: "x" }, count: "7" };
  expect(isSameObject(sent, former)).toBe(true);
  for (const other of [
    { ...sent, state: "EXPIRED" },
    { ...sent, subheader: "more" },
    { ...sent, barcode: { type: "QR_CODE", value: "8" } },
    { ...sent, list: [{ id: "x" }, { id: "y" }] },
    { ...sent, list: [{ id: "x", body: "more" }] },
    { id: "1.a" },
    {},
  ]) {
    expect([other, isSameObject(sent, other)]).toEqual([other, false]);
  }
});
