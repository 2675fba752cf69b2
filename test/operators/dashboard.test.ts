import { afterAll, beforeAll, expect, test } from "bun:test";
import { Front } from "../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 15_000);

test.each([
  ["/dash", "text/html"],
  ["/dash/dashboard.js", "text/javascript"],
  ["/dash/dashboard.css", "text/css"],
])("%s is served to anybody, and may load nothing from other hosts", async (path, type) => {
  const response = await fetch(front.url + path);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toStartWith(type);
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(response.headers.get("x-request-id")).toBeTruthy();
  expect(await response.text()).not.toMatch(/https?:\/\//);
});

test("the page's data needs the operator's token", async () => {
  expect((await fetch(`${front.url}/dash/api/tenants`)).status).toBe(401);
});
