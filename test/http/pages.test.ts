import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chooseLanguage, html, wantsPage } from "../../src/http/page.ts";
import { BROWSER } from "./support/browser-headers.ts";
import { Front } from "./support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);

const asked = (headers: Readonly<Record<string, string>>) => new Request("http://waybill.test/", { headers });

describe("a caller wants a page", () => {
  test.each([
    ["a browser", BROWSER.accept, true],
    ["an old browser", "text/html, application/xhtml+xml, */*", true],
    ["a browser of text", "text/html, text/*;q=0.5, image/*", true],
    ["a program that names nothing", "*/*", false],
    ["a program that names JSON", "application/json", false],
    ["a program that names both, JSON first", "application/json, text/html", false],
    ["a program that prefers JSON", "text/html;q=0.5, application/json", false],
    ["a program that refuses pages", "text/html;q=0", false],
    ["a program that wants neither", "image/png", false],
    ["an empty header", "", false],
    ["a malformed header", ';;,="text/html;q=abc', false],
    ["names of members of objects", "__proto__/constructor;toString=1", false],
    ["a header longer than any browser's", `text/html,${"a/b,".repeat(1_000)}`, false],
  ])("%s", (_, accept, expected) => {
    expect(wantsPage(asked({ accept }))).toBe(expected);
  });

  test("only if it says so", () => {
    expect(wantsPage(asked({}))).toBe(false);
  });
});

describe("the reader's language", () => {
  test.each([
    ["es", "es"],
    ["es-MX,es;q=0.9,en;q=0.8", "es"],
    ["ES-419", "es"],
    ["en;q=0.3, es;q=0.8", "es"],
    ["fr, es;q=0.1", "es"],
    ["en-GB,en;q=0.9,es;q=0.8", "en"],
    ["fr, de;q=0.5", "en"],
    ["fr, *;q=0.1", "en"],
    ["es;q=0", "en"],
    ["", "en"],
    ["<script>", "en"],
    [`es,${"x,".repeat(2_000)}`, "en"],
  ] as const)("%p is %s", (given, expected) => {
    expect(chooseLanguage(asked({ "accept-language": given }))).toBe(expected);
  });

  test("is English where none is given", () => {
    expect(chooseLanguage(asked({}))).toBe("en");
  });
});

test("markup escapes every value that is no markup itself", () => {
  const inner = html`<b>${"<&>"}</b>`;
  expect(html`<p title="${`"'`}">${inner}${"&amp;"}</p>`.text).toBe(
    '<p title="&#34;&#39;"><b>&#60;&#38;&#62;</b>&#38;amp;</p>',
  );
});

describe("the start page", () => {
  test("says what this is, and links to what is served", async () => {
    const { status, headers, text } = await front.fetch("/", { headers: BROWSER });
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain("<h1>Waybill</h1>");
    const links = Array.from(text.matchAll(/href="([^"]*)"/g), ([, path = ""]) => path);
    expect(links).toEqual(["/docs", "/dash"]);
    for (const path of links) expect((await front.fetch(path)).status).toBe(200);
  });

  test("names neither version nor tenant, and loads nothing", async () => {
    const { text } = await front.fetch("/", { headers: BROWSER });
    expect(text).not.toMatch(/0\.0\.0|acme|<script|https?:|src=/i);
  });

  test("is in Spanish for those who read that", async () => {
    const spanish = await front.fetch("/", { headers: { ...BROWSER, "accept-language": "es-AR" } });
    expect(spanish.text).toContain('<html lang="es">');
    expect(spanish.text).toContain("servicio de mensajería");
    expect(spanish.headers.get("content-language")).toBe("es");
    const english = await front.fetch("/", { headers: BROWSER });
    expect(english.text).toContain('<html lang="en">');
    expect(english.headers.get("content-language")).toBe("en");
  });

  test("answers HEAD as GET, without a body", async () => {
    const { status, headers, text } = await front.fetch("/", { method: "HEAD", headers: BROWSER });
    expect([status, headers.get("content-type"), text]).toEqual([200, "text/html; charset=utf-8", ""]);
  });
});

describe("an unknown address", () => {
  const NOTHING = '{"error":"there is nothing at this address"}';

  test.each(["/nope", "/u", "/u/", "/u/a/b", "/t/c/", "/t", "/docs/", "/dash/nope", "/v2", "/%zz", "/<script>"])(
    "is a page for people, with the same status: %s",
    async (path) => {
      const { status, headers, text } = await front.fetch(path, { headers: BROWSER });
      expect([status, headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
      expect(text).toContain("<h1>There is nothing at this address</h1>");
      expect(text).not.toMatch(/<script|nope|%zz/);
    },
  );

  test.each(["/", "/nope", "/u/", "/t/c/"])("is JSON for programs, as ever: %s", async (path) => {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
      const answer = await front.fetch(path, { headers });
      expect([answer.status, answer.text]).toEqual([404, NOTHING]);
      const { "x-request-id": _, date: __, ...rest } = Object.fromEntries(answer.headers);
      expect(rest).toEqual({
        "content-type": "application/json",
        "content-length": String(NOTHING.length),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-error-code": "not_found",
      });
    }
  });

  test.each(["/v1", "/v1/nope", "/webhook/nope", "/wallet/v1/nope"])(
    "is JSON where only programs call, whatever they accept: %s",
    async (path) => {
      const answer = await front.fetch(path, { headers: BROWSER });
      expect([answer.status, answer.text]).toEqual([404, NOTHING]);
    },
  );

  test("is JSON for calls that only programs make", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      for (const path of ["/", "/nope"]) {
        const answer = await front.fetch(path, { method, headers: BROWSER });
        expect([method, path, answer.status, answer.text]).toEqual([method, path, 404, NOTHING]);
      }
    }
    expect((await front.fetch("/dash/api/nope", { headers: BROWSER })).status).toBe(401);
  });
});

test("every page is safe to show: nothing may be loaded, framed, kept, indexed or followed back", async () => {
  for (const path of ["/", "/nope", "/u/x", "/t/c/x"]) {
    const { headers } = await front.fetch(path, { headers: BROWSER });
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
    );
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-robots-tag")).toBe("noindex");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("vary")).toBe("Accept, Accept-Language");
    expect(headers.get("x-request-id")).not.toBeNull();
  }
});

test("the policy allows the style that the page carries, and no other", async () => {
  const { headers, text } = await front.fetch("/", { headers: BROWSER });
  const [, style = ""] = /<style>([^]*?)<\/style>/.exec(text) ?? [];
  const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
  expect(headers.get("content-security-policy")).toContain(`style-src 'sha256-${hash}'`);
  expect(text).not.toMatch(/ style=/);
});

test("the document says where an error is a page for people", async () => {
  const { body } = await front.fetch("/openapi.json");
  const document = JSON.parse(JSON.stringify(body));
  for (const [path, method] of [
    ["/t/c/{token}", "get"],
    ["/u/{token}", "get"],
    ["/u/{token}", "post"],
  ] as const) {
    const { responses, parameters } = document.paths[path][method];
    for (const status of ["404", "500"]) {
      const name = responses[status].$ref.split("/").at(-1);
      const types = Object.keys(document.components.responses[name].content);
      expect([path, method, status, types]).toEqual([
        path,
        method,
        status,
        ["application/json", "application/problem+json", "text/html"],
      ]);
    }
    expect(parameters.map(({ name }: { name: string }) => name)).toContain("Accept-Language");
  }
  expect(Object.keys(document.paths["/t/o/{token}.gif"].get.responses)).toEqual(["200", "500"]);
});
