import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { Front, OPERATOR_TOKEN } from "./support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
});
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.queue.counted = 0;
});

const EVERYWHERE: readonly (readonly [string, string])[] = [
  ["GET", "/health"],
  ["GET", "/ready"],
  ["GET", "/metrics"],
  ["GET", "/openapi.json"],
  ["GET", "/docs"],
  ["GET", "/docs/swagger-ui.css"],
  ["GET", "/no/such/route"],
  ["DELETE", "/health"],
  ["HEAD", "/health"],
  ["OPTIONS", "/v1/events"],
  ["GET", "/v1/send/email"],
  ["POST", "/v1/send/email"],
  ["GET", "/v1/jobs/x"],
  ["GET", "/v1/events"],
  ["GET", "/dash/api/tenants"],
  ["GET", "/dash/api/no-such"],
];

describe("a tenant's key", () => {
  test.each([
    ["as a Bearer token", (key: string) => ({ Authorization: `Bearer ${key}` }), 404],
    ["in both", (key: string) => ({ "X-API-Key": key, Authorization: `Bearer ${key}` }), 404],
    ["wrong beside the right one", (key: string) => ({ "X-API-Key": `${key}x`, Authorization: `Bearer ${key}` }), 401],
    ["of another scheme", (key: string) => ({ Authorization: `Basic ${key}` }), 401],
    ["that is an operator's token", () => ({ Authorization: `Bearer ${OPERATOR_TOKEN}` }), 401],
  ])("%s", async (_case, headersOf, status) => {
    const path = "/v1/jobs/01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
    expect((await front.fetch(path, { headers: headersOf(front.apiKey) })).status).toBe(status);
  });
});

describe("every answer", () => {
  test.each(EVERYWHERE)("carries X-Request-Id and nosniff: %s %s", async (method, path) => {
    for (const headers of [{}, { "X-API-Key": front.apiKey }]) {
      const given = await front.fetch(path, { method, headers: { ...headers, "X-Request-Id": "Trace_1.2-3" } });
      expect(given.headers.get("x-request-id")).toBe("Trace_1.2-3");
      expect(given.headers.get("x-content-type-options")).toBe("nosniff");
      const fresh = await front.fetch(path, { method, headers });
      expect(fresh.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test.each(["", "a b", "a".repeat(129), "a;b", "\u00e9"])("replaces an unusable X-Request-Id: %p", async (id) => {
    const answer = await front.fetch("/health", { headers: { "X-Request-Id": id } });
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("has an id of its own", async () => {
    const ids = await Promise.all([1, 2].map(async () => (await front.fetch("/health")).headers.get("x-request-id")));
    expect(ids[0]).not.toBe(ids[1]);
  });
});

describe("an unknown address", () => {
  test.each([
    "/",
    "/nope",
    "/health/",
    "/v1",
    "/v1/jobs/",
    "/v1/send/email/x",
    "/docs/../etc/passwd",
    "/HEALTH",
    "/v1/send/%65mail",
  ])("is 404 with an error body: %s", async (path) => {
    const answer = await front.fetch(path);
    expect([answer.status, answer.body]).toEqual([404, { error: "there is nothing at this address" }]);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });
});

describe("a method that an address does not take", () => {
  test.each([
    ["GET", "/v1/send/email", "POST, OPTIONS"],
    ["DELETE", "/v1/jobs/x", "PATCH, GET, HEAD, OPTIONS"],
    ["POST", "/v1/jobs/x/events", "GET, HEAD, OPTIONS"],
    ["PATCH", "/v1/events", "GET, HEAD, OPTIONS"],
    ["POST", "/health", "GET, HEAD, OPTIONS"],
    ["PUT", "/openapi.json", "GET, HEAD, OPTIONS"],
    ["HEAD", "/v1/send/email", "POST, OPTIONS"],
  ])("is 405 with Allow: %s %s", async (method, path, allow) => {
    const answer = await front.fetch(path, { method });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, allow]);
    if (method !== "HEAD") expect(answer.body["error"]).toBeString();
  });

  test("lists all methods of the address", async () => {
    const answer = await front.operate("POST", "/tenants/acme/templates/welcome", {});
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "PUT, GET, DELETE, HEAD, OPTIONS"]);
  });
});

describe("HEAD and OPTIONS", () => {
  test("HEAD answers and counts like GET, without the body", async () => {
    const head = await front.request("HEAD", "/v1/jobs/x");
    expect([head.status, head.text]).toEqual([404, ""]);
    expect(head.headers.has("ratelimit-limit")).toBe(true);
    expect(front.queue.counted).toBe(1);
    expect((await front.fetch("/v1/jobs/x", { method: "HEAD" })).status).toBe(401);
    expect((await front.fetch("/health", { method: "HEAD" })).status).toBe(200);
  });

  test("OPTIONS lists the methods of an address", async () => {
    const answer = await front.fetch("/v1/send/email", { method: "OPTIONS" });
    expect([answer.status, answer.headers.get("allow"), answer.text]).toEqual([204, "POST, OPTIONS", ""]);
    expect((await front.fetch("/nope", { method: "OPTIONS" })).status).toBe(404);
  });
});

describe("the rate window", () => {
  test("counts every authenticated /v1 request once, whatever its answer, and every answer shows the count", async () => {
    const before = (await front.request("GET", "/v1/jobs/x")).headers.get("ratelimit-remaining");
    const requests: readonly (readonly [string, string])[] = [
      ["GET", "/v1/jobs/x"],
      ["GET", "/v1/jobs/x/events"],
      ["GET", "/v1/events"],
      ["GET", "/v1/no-such"],
      ["GET", "/v1/send/email"],
      ["POST", "/v1/send/email"],
      ["HEAD", "/v1/events"],
    ];
    for (const [index, [method, path]] of requests.entries()) {
      const { headers } = await front.request(method, path);
      expect(headers.get("ratelimit-remaining")).toBe(String(Number(before) - index - 1));
      expect(headers.get("ratelimit-limit")).toBe("100000");
      expect(headers.get("ratelimit-reset")).toBe("60");
    }
    expect(front.queue.counted).toBe(requests.length + 1);
  });

  test("does not count other requests", async () => {
    for (const path of ["/health", "/metrics", "/nope", "/dash/api/tenants"]) {
      expect((await front.request("GET", path)).headers.has("ratelimit-limit")).toBe(false);
    }
    expect(front.queue.counted).toBe(0);
  });

  test("belongs to one tenant alone", async () => {
    await front.registry.putPlan({ name: "one", requestsPerMinute: 1, deliveriesPerSecond: null, ...QUEUE_SHARE });
    const [one, other] = [await front.addTenant("one", "one"), await front.addTenant("other", "one")];
    const read = async (key: string) => (await front.request("GET", "/v1/jobs/x", { "X-API-Key": key })).status;
    expect([await read(one), await read(one), await read(other)]).toEqual([404, 429, 404]);
    expect((await front.request("GET", "/v1/no-such", { "X-API-Key": one })).status).toBe(429);
  });
});

describe("the operator API", () => {
  test.each([
    ["no token", null],
    ["a wrong one", "Bearer wrong"],
    ["an empty one", "Bearer "],
    ["another scheme", `Basic ${OPERATOR_TOKEN}`],
    ["no scheme", OPERATOR_TOKEN],
    ["a longer one", `Bearer ${OPERATOR_TOKEN}x`],
    ["a tenant's key", null],
  ])("is 401 at every address, existing or not: %s", async (_case, authorization) => {
    // Its own front, because wrong tokens are counted.
    const front = await Front.start();
    const headers = authorization === null ? { "X-API-Key": front.apiKey } : { Authorization: authorization };
    const calls = [
      ["GET", "/tenants"],
      ["POST", "/tenants"],
      ["DELETE", "/tenants"],
      ["GET", "/tenants/acme"],
      ["GET", "/no-such"],
      ["OPTIONS", "/plans"],
      ["GET", ""],
      ["GET", "/"],
      ["GET", "/sandbox/messages"],
    ] as const;
    for (const [method, path] of calls) {
      const answer = await front.fetch(`/dash/api${path}`, { method, headers });
      expect([method, path, answer.status]).toEqual([method, path, 401]);
      expect(answer.headers.get("www-authenticate")).toStartWith("Bearer");
      expect(answer.body["error"]).toBeString();
    }
    await front.stop();
  });

  test("answers the token's holder, and is 404 at an unknown address", async () => {
    expect((await front.operate("GET", "/tenants")).status).toBe(200);
    expect((await front.operate("GET", "/no-such")).status).toBe(404);
    const lower = await front.fetch("/dash/api/tenants", { headers: { Authorization: `bearer ${OPERATOR_TOKEN}` } });
    expect(lower.status).toBe(200);
  });
});
