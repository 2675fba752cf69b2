import { afterAll, describe, expect, test } from "bun:test";
import { SETTINGS } from "../../src/config/settings.ts";
import { deprecationHeaders } from "../../src/http/deprecation.ts";
import { endpoint, reply } from "../../src/http/endpoint.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { createServer } from "../../src/http/server.ts";
import { Front } from "./support/front.ts";

const PATH = "/.well-known/security.txt";
const fronts: Front[] = [];
afterAll(async () => void (await Promise.all(fronts.map((front) => front.stop()))), 90_000);

async function open(changes: Parameters<typeof Front.start>[0] = {}): Promise<Front> {
  const front = await Front.start(changes);
  fronts.push(front);
  return front;
}

describe("security.txt", () => {
  test("names its contacts in their order, its address, and a day to come, to everybody", async () => {
    const securityContacts = ["mailto:security@example.com", "https://example.com/report"];
    const front = await open({ securityContacts, publicUrl: "https://send.example.com" });
    const answer = await front.fetch(PATH);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/plain; charset=utf-8"]);
    const [first, second, expires = "", canonical, ...rest] = answer.text.split("\n");
    expect([first, second]).toEqual(["Contact: mailto:security@example.com", "Contact: https://example.com/report"]);
    expect(canonical).toBe(`Canonical: https://send.example.com${PATH}`);
    expect(rest).toEqual([""]);
    const [, until = ""] = /^Expires: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$/.exec(expires) ?? [];
    const days = (Date.parse(until) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(29);
    expect(days).toBeLessThan(365);
  }, 90_000);

  test("is 404 without a contact", async () => {
    const answer = await (await open()).fetch(PATH);
    expect([answer.status, answer.body]).toEqual([404, { error: "no contact for reports of vulnerabilities is set" }]);
  }, 90_000);

  test.each([
    ["security@example.com", ["mailto:security@example.com"]],
    ["https://example.com/report, tel:+1-201-555-0123", ["https://example.com/report", "tel:+1-201-555-0123"]],
    ["http://example.com/report", undefined],
    ["Ann <security@example.com>", undefined],
    ["https://example.com/a b", undefined],
    ["mailto:a@example.com\nExpires: 2020-01-01T00:00:00Z", undefined],
    ["", undefined],
  ])("SECURITY_CONTACT may be %j or not", (text, contacts) => {
    expect<unknown>(SETTINGS.securityContacts.parse(text)).toEqual(contacts);
  });
});

describe("a deprecated operation", () => {
  const deprecated = { since: "2027-01-31", sunset: "2027-12-01", link: "https://example.com/upgrades" };
  const old = endpoint({
    method: "GET",
    path: "/old",
    name: "old",
    operation: "old",
    tag: "Service",
    summary: "A former call",
    deprecated,
    answers: { 200: { description: "As ever.", schema: null } },
    handle: (_, { request }) => {
      if (request.headers.has("x-fail")) throw new Error("as ever");
      return reply(200, null);
    },
  });

  test("says so in each answer (RFC 9745, RFC 8594), a failure too", async () => {
    const { ports } = await open();
    const server = createServer(ports, [old]);
    for (const [headers, status] of [
      [{}, 200],
      [{ "x-fail": "yes" }, 500],
    ] as const) {
      const answer = await server.handle(new Request("http://localhost/old", { headers }));
      expect(answer.status).toBe(status);
      expect(answer.headers.get("deprecation")).toBe("@1801353600");
      expect(answer.headers.get("sunset")).toBe("Wed, 01 Dec 2027 00:00:00 GMT");
      expect(answer.headers.get("link")).toBe('<https://example.com/upgrades>; rel="deprecation"; type="text/html"');
    }
    const other = await server.handle(new Request("http://localhost/health"));
    expect(other.headers.has("deprecation")).toBe(false);
  }, 90_000);

  test("is marked in the document", () => {
    const document = openApiDocument([old], { version: "1.0.0", publicUrl: "/" });
    expect(document).toHaveProperty(["paths", "/old", "get", "deprecated"], true);
    expect(document).toHaveProperty(["paths", "/old", "get", "externalDocs", "url"], deprecated.link);
  });

  test("needs days that there are", () => {
    expect(() => deprecationHeaders({ ...deprecated, since: "2027-02-31x" })).toThrow(TypeError);
    expect(() => deprecationHeaders({ ...deprecated, sunset: "soon" })).toThrow(TypeError);
    expect(deprecationHeaders({ since: deprecated.since, link: deprecated.link })).not.toHaveProperty("sunset");
  });
});
