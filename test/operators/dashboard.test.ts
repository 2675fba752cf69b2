import { afterAll, beforeAll, expect, test } from "bun:test";
import { Front } from "../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);

async function parts(): Promise<readonly string[]> {
  const { text } = await front.fetch("/dash");
  return text.match(/\/dash\/assets\/[^"]+/g) ?? [];
}

test("the page and its files are served to anybody, and load nothing from other hosts", async () => {
  const [style, script] = await parts();
  const types = [
    ["/dash", "text/html"],
    [String(style), "text/css"],
    [String(script), "text/javascript"],
  ] as const;
  for (const [path, type] of types) {
    const { status, headers, text } = await front.fetch(path);
    expect([path, status]).toEqual([path, 200]);
    expect(headers.get("content-type")).toStartWith(type);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("x-request-id")).toBeTruthy();
    // Names of namespaces and of documentation are not addresses of loaded resources.
    expect(text).not.toMatch(/(?:src|href|import|from|url)\s*[=(]?\s*["'`]?https?:\/\//);
  }
});

test("files are named by their content, so a browser keeps them, and asks for the page alone", async () => {
  for (const path of await parts()) {
    expect(path).toMatch(/\/app-[a-z0-9]{8,}\.(?:js|css)$/);
    const plain = await front.fetch(path, { headers: { "accept-encoding": "identity" } });
    expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(plain.headers.get("content-encoding")).toBeNull();
    const zipped = await front.fetch(path, { headers: { "accept-encoding": "gzip" } });
    expect([zipped.headers.get("content-encoding"), zipped.text === plain.text]).toEqual(["gzip", true]);
  }
  const { headers } = await front.fetch("/dash");
  expect(headers.get("cache-control")).toBe("no-cache");
  const again = await front.fetch("/dash", { headers: { "if-none-match": headers.get("etag") ?? "" } });
  expect([again.status, again.text]).toEqual([304, ""]);
});

test.each(["app.js", "app-00000000.js", "..%2F..%2Fpackage.json", "%ff"])("there is no file %s", async (file) => {
  const { status, body } = await front.fetch(`/dash/assets/${file}`);
  expect([status, body]).toEqual([404, { error: "there is no such file" }]);
});

test("the page's data needs the operator's token", async () => {
  expect((await fetch(`${front.url}/dash/api/tenants`)).status).toBe(401);
});
