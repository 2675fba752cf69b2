import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ApiError } from "../../src/http/api-error.ts";
import { ERROR_CODES, toTold } from "../../src/http/error-codes.ts";
import { wantsProblem } from "../../src/http/problem.ts";
import { Front } from "./support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);

const MAIL = { to_address: "ann@example.com", template_id: "welcome" };
const PROBLEM = { accept: "application/problem+json" };

describe("a refusal", () => {
  test.each([
    ["of a member", { ...MAIL, to_address: "nobody" }, "invalid_member"],
    ["of a member that nobody knows", { ...MAIL, colour: "red" }, "unknown_member"],
    ["of a template that is not there", { ...MAIL, template_id: "nope" }, "unknown_template"],
    ["of no object", [], "bad_request"],
  ])("%s has a code, and a body with its sentence alone", async (_, body, code) => {
    const { status, headers, body: answered } = await front.post("/v1/send/email", body);
    expect([status, headers.get("x-error-code"), Object.keys(answered)]).toEqual([400, code, ["error"]]);
    expect(headers.get("content-type")).toBe("application/json");
  });

  test.each([
    ["GET", "/nowhere", 404, "not_found"],
    ["GET", "/v1/nowhere", 404, "not_found"],
    ["GET", "/v1/jobs/nope", 404, "no_such_job"],
    ["PUT", "/v1/send/email", 405, "method_not_allowed"],
    ["GET", "/v1/jobs?limit=x", 400, "invalid_member"],
    ["GET", "/v1/jobs?colour=red", 400, "unknown_member"],
  ] as const)("%s %s is %p %s", async (method, path, status, code) => {
    const answer = await front.fetch(path, { method, headers: { "X-API-Key": front.apiKey } });
    expect([answer.status, answer.headers.get("x-error-code")]).toEqual([status, code]);
  });

  test("is a problem where Accept asks for one", async () => {
    const fallback = [{ after: "1h", unless: "delivered", send: { channel: "email", ...MAIL, subject: 1 } }];
    const { headers, body } = await front.post("/v1/send/email", { ...MAIL, fallback }, PROBLEM);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(body).toEqual({
      type: "/docs#error-invalid_member",
      title: ERROR_CODES.invalid_member.title,
      status: 400,
      detail: "fallback[0].send.subject must be a string",
      code: "invalid_member",
      param: "fallback[0].send.subject",
    });
    const nowhere = await front.fetch("/v1/nowhere", { headers: PROBLEM });
    expect(nowhere.body).toMatchObject({ status: 404, code: "not_found", detail: "there is nothing at this address" });
    const put = await front.fetch("/v1/send/email", { method: "PUT", headers: PROBLEM });
    expect([put.body["code"], put.headers.get("allow")]).toEqual(["method_not_allowed", "POST, OPTIONS"]);
  });
});

test.each([
  ["application/problem+json", true],
  ["Application/Problem+JSON; charset=utf-8", true],
  ["application/json, application/problem+json", true],
  ["application/json;q=0.8, application/problem+json;q=0.9, */*", true],
  ["application/problem+json;q=0.5, application/json", false],
  ["application/problem+json;q=0.5, */*", false],
  ["application/problem+json;q=0", false],
  ["application/problem+json;q=2", false],
  ["application/json", false],
  ["*/*", false],
  ["", false],
])("Accept: %s asks for a problem: %p", (accept, isAsked) => {
  expect(wantsProblem(new Request("http://a.test", { headers: { accept } }))).toBe(isAsked);
});

test("a refusal names the member that its sentence begins with, if the call has such a one", () => {
  const members = new Set(["tags", "pass_data"]);
  const told = (message: string) => toTold(new ApiError(400, message), members);
  expect(told("pass_data.fields[0].key must be a string")).toEqual({
    code: "invalid_member",
    param: "pass_data.fields[0].key",
  });
  expect(told("the body must be an object")).toEqual({ code: "bad_request", param: null });
  expect(toTold(new ApiError(404, "tags are not here"), members)).toEqual({ code: "not_found", param: null });
});

test("answers tell the rate window in the fields of the draft, too", async () => {
  const { headers } = await front.post("/v1/send/email", MAIL);
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) => headers.get(`ratelimit-${name}`));
  expect(headers.get("ratelimit-policy")).toBe(`"plan";q=${limit};w=60`);
  expect(headers.get("ratelimit")).toBe(`"plan";r=${remaining};t=${reset}`);
});
