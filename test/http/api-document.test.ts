import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { Front } from "./support/front.ts";

/** No document shows a whole private key. */
const KEY_IN_EXAMPLE = /"-----BEGIN PRIVATE KEY-----[^"]*"/;

const RATE_HEADERS = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

function rsaKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

type Node = Readonly<Record<string, unknown>>;

let front: Front;
let document: Node;
beforeAll(async () => {
  front = await Front.start({ publicUrl: "https://api.example.com" });
  document = (await front.fetch("/openapi.json")).body;
});
afterAll(() => front.stop(), 90_000);

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null;
}

function nodeAt(root: Node, ...path: readonly string[]): Node {
  let node = root;
  for (const name of path) {
    const next = node[name];
    if (!isNode(next)) throw new Error(`the document has no ${path.join(" / ")}`);
    node = next;
  }
  return node;
}

/** Every object in the document, with where it is. */
function* walk(node: unknown, at = "#"): Generator<[string, Node]> {
  if (!isNode(node)) return;
  yield [at, node];
  for (const [name, child] of Object.entries(node)) yield* walk(child, `${at}/${name}`);
}

function operations(): [string, Node][] {
  return Object.entries(nodeAt(document, "paths")).flatMap(([path, item]) =>
    Object.entries(isNode(item) ? item : {}).map(([method, call]): [string, Node] => [
      `${method.toUpperCase()} ${path}`,
      isNode(call) ? call : {},
    ]),
  );
}

describe("the API document", () => {
  test("can be of tenants' calls alone, or of operators'", async () => {
    const paths = async (query: string) => {
      const { status, body } = await front.fetch(`/openapi.json${query}`);
      expect(status).toBe(200);
      return { all: Object.keys(nodeAt(body, "paths")), tags: JSON.stringify(body["tags"]) };
    };
    const [whole, tenant, operator] = [await paths(""), await paths("?for=tenant"), await paths("?for=operator")];
    expect(await paths("?for=all")).toEqual(whole);
    expect(tenant.all).toContain("/v1/send/email");
    expect(tenant.all.filter((path) => !path.startsWith("/v1/"))).toEqual([]);
    expect(tenant.tags).not.toContain('"Operators"');
    expect(operator.all).toContain("/dash/api/tenants");
    expect(operator.all).not.toContain("/v1/send/email");
    expect(whole.all).toEqual(expect.arrayContaining([...tenant.all, ...operator.all]));
    for (const path of ["/openapi.json", "/docs"]) {
      const refused = await front.fetch(`${path}?for=nobody`);
      expect([refused.status, refused.body]).toEqual([400, { error: "for must be one of all, tenant, operator" }]);
    }
    expect((await front.fetch("/docs?for=tenant")).status).toBe(200);
  });

  test("lists exactly the routes that are served", () => {
    const served = front.server.routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    expect(
      operations()
        .map(([name]) => name)
        .toSorted(),
    ).toEqual(served.toSorted());
  });

  test("is OpenAPI 3.1 and names its server and version", () => {
    expect(document["openapi"]).toBe("3.1.0");
    expect(document["servers"]).toEqual([{ url: "https://api.example.com" }]);
    expect(nodeAt(document, "info")["version"]).toBe("0.0.0-test");
  });

  test("refers only to components that it defines, and defines none that are not used", () => {
    const referred = new Set<string>();
    for (const [, node] of walk(document)) {
      const reference = node["$ref"];
      if (typeof reference !== "string") continue;
      nodeAt(document, ...reference.replace(/^#\//, "").split("/"));
      referred.add(reference);
    }
    for (const kind of ["schemas", "responses", "headers"]) {
      for (const name of Object.keys(nodeAt(document, "components", kind))) {
        expect(referred).toContain(`#/components/${kind}/${name}`);
      }
    }
  });

  test("gives every operation its own id, a summary, its security, its parameters and a described answer", () => {
    const ids = new Set<unknown>();
    for (const [name, call] of operations()) {
      ids.add(call["operationId"]);
      expect([name, typeof call["summary"], Array.isArray(call["security"])]).toEqual([name, "string", true]);
      const parameters = Array.isArray(call["parameters"]) ? call["parameters"] : [];
      const inPath = parameters.filter((parameter) => isNode(parameter) && parameter["in"] === "path");
      expect([name, inPath.length]).toEqual([name, name.split("{").length - 1]);
      const answers = Object.entries(nodeAt(call, "responses"));
      expect(answers.some(([status]) => /^[23]/.test(status))).toBe(true);
    }
    expect(ids.size).toBe(operations().length);
  });

  test("describes 401 and 500 for every authenticated call, and 429 for every /v1 call", () => {
    const authenticated = operations().filter(([, call]) => JSON.stringify(call["security"]) !== "[]");
    expect(authenticated.length).toBeGreaterThan(40);
    for (const [name, call] of authenticated) {
      const statuses = Object.keys(nodeAt(call, "responses"));
      expect([name, statuses]).toEqual([name, expect.arrayContaining(["401", "500"])]);
      if (name.includes(" /v1/")) expect([name, statuses]).toEqual([name, expect.arrayContaining(["429"])]);
    }
  });

  test("describes the rate limit headers of every answer to a known tenant, files included", () => {
    for (const [name, call] of operations()) {
      if (JSON.stringify(call["security"]) !== '[{"apiKey":[]}]') continue;
      for (const [status, answer] of Object.entries(nodeAt(call, "responses"))) {
        if (status === "401") continue;
        const said = isNode(answer) && "$ref" in answer ? String(answer["$ref"]) : null;
        const response = said === null ? answer : nodeAt(document, ...said.slice("#/".length).split("/"));
        const headers = isNode(response) ? Object.keys(nodeAt(response, "headers")) : [];
        expect([name, status, headers]).toEqual([name, status, expect.arrayContaining(RATE_HEADERS)]);
      }
    }
  });

  test("allows no member of a message that it does not name", () => {
    const bodies = operations().filter(([name]) => /^POST \/v1\/send\/(email|whatsapp)/.test(name));
    expect(bodies).toHaveLength(4);
    for (const [name, call] of bodies) {
      const { $ref } = nodeAt(call, "requestBody", "content", "application/json", "schema");
      const schema = nodeAt(document, ...String($ref).split("/").slice(1));
      expect([name, schema["additionalProperties"]]).toEqual([name, false]);
    }
  });

  test("shows examples of sends that the service accepts", async () => {
    front.lastWritten = () => Date.now();
    const sends = [
      ["/v1/send/email", front.send.bind(front)],
      ["/v1/send/whatsapp", front.sendChat.bind(front)],
    ] as const;
    for (const [path, send] of sends) {
      const body = nodeAt(document, "paths", path, "post", "requestBody", "content", "application/json");
      for (const name of Object.keys(nodeAt(body, "examples"))) {
        const answer = await send(nodeAt(body, "examples", name, "value"));
        // Tokens, which this tenant lacks, are checked once a message and its pass are valid.
        expect([path, name, answer.status]).toEqual([path, name, name === "pass" ? 402 : 202]);
      }
    }
  });

  test("shows examples of operators' bodies that the service accepts", async () => {
    for (const [name, call] of operations()) {
      // The example's token belongs to no operator.
      if (call["requestBody"] === undefined || !name.includes("/dash/api/") || name.endsWith("/session")) continue;
      const content = nodeAt(call, "requestBody", "content");
      if (!isNode(content["application/json"])) continue;
      const schema = nodeAt(content, "application/json", "schema");
      const [example] = Array.isArray(schema["examples"]) ? schema["examples"] : [];
      const [method = "", path = ""] = name.split(" ");
      // No tenant here has a webhook.
      if (path.includes("{webhook_id}")) continue;
      const body = JSON.parse(JSON.stringify(example).replace(KEY_IN_EXAMPLE, JSON.stringify(rsaKey())));
      const address = path
        .replace("/dash/api", "")
        .replace("{id}", "acme")
        .replace("{slug}", "x")
        .replace("{name}", "x")
        .replace("{alias}", "x")
        .replace("{address}", "ann@example.com");
      const { status } = await front.operate(method, address, body);
      const successes = Object.keys(nodeAt(call, "responses")).filter((code) => code < "300");
      expect([name, successes]).toEqual([name, expect.arrayContaining([String(status)])]);
    }
  });

  test("is served without a key, and names no host but its own", async () => {
    const { text } = await front.fetch("/openapi.json");
    const hosts = [...text.matchAll(/https?:\/\/([a-z0-9.-]+)/g)].map(([, host]) => host);
    expect(new Set(hosts)).toEqual(new Set(["api.example.com"]));
  });
});

describe("the rendered document", () => {
  test("loads nothing from other hosts, and everything that it loads is served", async () => {
    const page = await front.fetch("/docs");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(page.text).not.toMatch(/https?:\/\//);
    expect(page.text).not.toMatch(/<script>|<style>| on\w+=/);
    const loaded = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? "");
    expect(loaded).toHaveLength(4);
    for (const path of loaded) {
      const asset = await front.fetch(path);
      expect([path, asset.status]).toEqual([path, 200]);
      expect(asset.text.length).toBeGreaterThan(50);
    }
    expect((await front.fetch("/docs/start.js")).text).toContain('"/openapi.json"');
  });
});
