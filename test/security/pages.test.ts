import { afterEach, expect, test } from "bun:test";
import { BROWSER } from "../http/support/browser-headers.ts";
import { Front, linkTokens } from "../http/support/front.ts";

let front: Front;
afterEach(() => front.stop());

const JOB = "01a1fd15-0a3f-702b-89f2-ebefa432acf3";
const UNSUBSCRIBE = linkTokens.sign({
  purpose: "unsubscribe",
  tenantId: "acme",
  jobId: JOB,
  recipient: "ann@example.com",
});
/** The pages that a browser shows or runs. */
const PAGES = ["/", "/dash", "/docs", `/u/${UNSUBSCRIBE}`];
/** Pages with another status. */
const BROKEN = ["/nowhere", "/u/x", "/t/c/x"];
const AS_BROWSER = { headers: BROWSER };
const PARTS = ["/docs/start.js", "/docs/swagger-ui-bundle.js"];

/** The dashboard's files, named by their content. */
async function dashboardParts(): Promise<readonly string[]> {
  const { text } = await front.fetch("/dash", AS_BROWSER);
  const parts = text.match(/\/dash\/assets\/[^"]+/g) ?? [];
  expect(parts).toHaveLength(2);
  return parts;
}

test("every page says where its parts may come from, and that nobody may frame it", async () => {
  front = await Front.start();
  for (const path of [...PAGES, ...BROKEN]) {
    const { status, headers } = await front.fetch(path, AS_BROWSER);
    const expected = BROKEN.includes(path) ? 404 : 200;
    expect([path, status, headers.get("content-type")]).toEqual([path, expected, "text/html; charset=utf-8"]);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toStartWith("default-src 'none'; ");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).toMatch(/form-action '(none|self)'/);
    expect(policy).not.toMatch(/unsafe-|https?:|\*/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
});

test("behind TLS, pages and their parts demand TLS for a year", async () => {
  front = await Front.start({ publicUrl: "https://send.example.com" });
  for (const path of [...PAGES, ...PARTS, ...(await dashboardParts())]) {
    const { status, headers } = await front.fetch(path, AS_BROWSER);
    expect([path, status, headers.get("strict-transport-security")]).toEqual([path, 200, "max-age=31536000"]);
  }
  for (const path of BROKEN) {
    const { headers } = await front.fetch(path, AS_BROWSER);
    expect([path, headers.get("strict-transport-security")]).toEqual([path, "max-age=31536000"]);
  }
  const done = await front.fetch(`/u/${UNSUBSCRIBE}`, { method: "POST" });
  expect([done.status, done.headers.get("strict-transport-security")]).toEqual([200, "max-age=31536000"]);
});

test("without TLS no page demands it", async () => {
  front = await Front.start({ publicUrl: "http://127.0.0.1:3000" });
  for (const path of PAGES)
    expect((await front.fetch(path, AS_BROWSER)).headers.has("strict-transport-security")).toBe(false);
});

test("no route sets a cookie, or lets other origins read its answer", async () => {
  front = await Front.start({ publicUrl: "https://send.example.com" });
  for (const { method, path } of front.server.routes) {
    const asked = path.replace(/:\w+/g, "x");
    const headers = { "X-API-Key": front.apiKey, Origin: "https://evil.example", Cookie: "session=1" };
    const answer = await front.fetch(asked, { method, headers });
    const named = Array.from(answer.headers.keys()).filter((name) => /^(set-cookie|access-control-)/.test(name));
    expect([method, path, named]).toEqual([method, path, []]);
  }
});
