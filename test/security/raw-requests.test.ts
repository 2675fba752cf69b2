import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { eventually } from "../support/eventually.ts";
import { Attacks } from "./support/attacks.ts";
import { fetchOperations, type Operation } from "./support/operations.ts";
import { internals, json } from "./support/probe.ts";
import { exchange, head, holdOpen, parsePort, statusesIn } from "./support/raw.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * Requests that no friendly client sends: other spellings of addresses, ambiguous lengths, compressed bodies, half
 * requests.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("raw requests");

let target: Target;
let port = 0;
let operations: readonly Operation[] = [];

beforeAll(async () => {
  target = await startTarget();
  port = parsePort(target.url);
  operations = await fetchOperations(target.url);
});
afterAll(() => target?.stop());

const CLOSE = "Connection: close";
const JSON_TYPE = "Content-Type: application/json";
const getName = ({ name }: { readonly name: string }) => name;

async function hasMailTo(address: string): Promise<boolean> {
  return (await target.operator("GET", `/sandbox/messages?to=${address}`)).body.messages.length > 0;
}

test("no other spelling of an operators' address opens it to a tenant", async () => {
  const key = `X-API-Key: ${target.attacker.apiKey}`;
  const spellings: readonly ((path: string) => string)[] = [
    (path) => `${path}/`,
    (path) => `/${path}`,
    (path) => `///${path}`,
    (path) => path.replace("/dash/api", "/dash//api"),
    (path) => path.replace("/dash/api", "/dash/./api"),
    (path) => `/.${path}`,
    (path) => `/v1/..${path}`,
    (path) => `/v1/%2e%2e${path}`,
    (path) => `/v1/jobs/..%2f..${path}`,
    (path) => path.replace("/dash", "/%64ash"),
    (path) => path.replaceAll("/", "%2f").replace("%2f", "/"),
    (path) => path.replaceAll("/", "\\"),
    (path) => path.replace("/api", "/%61pi"),
    (path) => path.toUpperCase(),
    (path) => path.replace("/dash", "/Dash"),
    (path) => `${path};x=1`,
    (path) => `${path}%00`,
    (path) => `${path}.json`,
    (path) => `${path}%20`,
    (path) => `${path}?operator=1`,
    (path) => `${path}#/health`,
    (path) => `http://127.0.0.1${path}`,
    (path) => `http://evil.example${path}`,
  ];
  const addresses = operations.filter(({ security, method }) => security === "operator" && method === "GET");
  const table = addresses.flatMap(({ path }) =>
    spellings.map((spell) => ({ name: spell(path.replace(/\{\w+\}/g, "victim")) })),
  );
  await attacks.run(table, getName, async ({ name: path }) => {
    const text = await exchange(port, head(`GET ${path} HTTP/1.1`, "Host: api", key, CLOSE));
    const [status = 0] = statusesIn(text);
    return status < 400 && text !== "" ? `answered ${text.slice(0, 300)}` : null;
  });
});

test("no method and no header turns a tenant's call into an operators' call", async () => {
  const verbs = ["HEAD", "OPTIONS", "TRACE", "PATCH", "PUT", "POST", "DELETE", "get", "PROPFIND", "DEBUG", "X"];
  const headers = [
    "X-HTTP-Method-Override: DELETE",
    "X-HTTP-Method: PATCH",
    "X-Method-Override: PUT",
    "X-Original-URL: /dash/api/tenants",
    "X-Rewrite-URL: /dash/api/tenants",
    "X-Forwarded-For: 127.0.0.1",
    "X-Real-IP: 127.0.0.1",
    "X-Forwarded-Prefix: /dash/api",
    "Forwarded: for=127.0.0.1;proto=https",
    "X-Forwarded-User: operator",
    "Host: localhost",
  ];
  const key = `X-API-Key: ${target.attacker.apiKey}`;
  const before = (await target.operator("GET", "/tenants")).body;
  const table = [
    ...verbs.map((verb) => ({ name: verb, lines: [`${verb} /dash/api/tenants/victim HTTP/1.1`, "Host: api"] })),
    ...headers.flatMap((header) =>
      ["GET /dash/api/tenants", "POST /dash/api/tenants/victim/keys", "GET /v1/domains", "GET /health"].map((line) => ({
        name: `${line} with ${header}`,
        lines: [`${line} HTTP/1.1`, ...(header.startsWith("Host") ? [] : ["Host: api"]), header],
      })),
    ),
  ];
  await attacks.run(table, getName, async ({ lines }) => {
    const text = await exchange(port, head(...lines, key, "Content-Length: 0", CLOSE));
    return /victim|wb_\w{8}/.test(text.replace(/"error":"[^"]*"/, "")) ? text.slice(0, 300) : null;
  });
  expect((await target.operator("GET", "/tenants")).body).toEqual(before);
});

test("a Host that names no host is no internal error, and opens no operators' address", async () => {
  const hosts = ["[::1", "localhost@example.com", "a b", "x/y?z", "x:99999", "%zz", "x\\y", ""];
  const paths = [
    "/health",
    "/metrics",
    "/webhook/whatsapp?hub.mode=subscribe",
    "/dash/api/tenants",
    "/v1/events?from=1",
  ];
  const key = `X-API-Key: ${target.attacker.apiKey}`;
  const table = hosts.flatMap((host) => paths.map((path) => ({ name: `${path} at "${host}"`, host, path })));
  await attacks.run(table, getName, async ({ host, path }) => {
    const text = await exchange(port, head(`GET ${path} HTTP/1.1`, `Host: ${host}`, key, CLOSE));
    const [status = 0] = statusesIn(text);
    const isOpen = path !== "/health" && status < 400;
    return status === 0 || status >= 500 || isOpen ? text.slice(0, 300) : null;
  });
});

/** Heads that let two readers see different ends of the same body; `LEN` is its length. */
const AMBIGUOUS: readonly (readonly [name: string, ...lines: string[]])[] = [
  ["both a length and chunks", "Content-Length: LEN", "Transfer-Encoding: chunked"],
  ["chunks and then a length", "Transfer-Encoding: chunked", "Content-Length: LEN"],
  ["two lengths", "Content-Length: LEN", "Content-Length: 0"],
  ["two lengths the other way", "Content-Length: 0", "Content-Length: LEN"],
  ["a list of lengths", "Content-Length: LEN, 0"],
  ["a length with a sign", "Content-Length: +LEN"],
  ["a length with a blank in it", "Content-Length: 0 LEN"],
  ["a length with an exponent", "Content-Length: LENe0"],
  ["a length with a fraction", "Content-Length: LEN.0"],
  ["an unknown coding", "Transfer-Encoding: xchunked", "Content-Length: LEN"],
  ["a coding behind chunked", "Transfer-Encoding: chunked, identity", "Content-Length: LEN"],
  ["two codings", "Transfer-Encoding: identity", "Transfer-Encoding: chunked", "Content-Length: LEN"],
  ["a blank before the colon", "Transfer-Encoding : chunked", "Content-Length: LEN"],
  ["a tab before the value", "Transfer-Encoding:\tchunked", "Content-Length: LEN"],
  ["a folded line", "Transfer-Encoding:\r\n chunked", "Content-Length: LEN"],
  ["a bare line feed", "X: y\nTransfer-Encoding: chunked", "Content-Length: LEN"],
  ["a vertical tab", "Transfer-Encoding:\x0bchunked", "Content-Length: LEN"],
  ["a NUL in a value", "X: y\0", "Transfer-Encoding: chunked", "Content-Length: LEN"],
  ["capital letters", "TRANSFER-ENCODING: CHUNKED", "Content-Length: LEN"],
  ["a capital letter", "Transfer-Encoding: Chunked", "Content-Length: LEN"],
];
/** Invalid sizes of a chunk; `LEN` is the valid one. */
const SIZES = ["-LEN", "+LEN", "0xLEN", " LEN", "LEN\n", "LEN LEN", "LEN\0", "10000000000000000LEN", "g"];

test("a message whose end is ambiguous is refused", async () => {
  const opening = ["POST /v1/send/email HTTP/1.1", "Host: api", `X-API-Key: ${target.attacker.apiKey}`, JSON_TYPE];
  const message = (to: string) => JSON.stringify({ to_address: to, template_id: "welcome" });
  const chunked = (body: string, size = "LEN") => {
    const digits = body.length.toString(16);
    return `${size.replaceAll("LEN", digits)}\r\n${body}\r\n0\r\n\r\n`;
  };
  const table = [
    ...AMBIGUOUS.flatMap(([name, ...lines]) => [
      { name, lines, encode: (body: string) => body },
      { name: `${name}, in chunks`, lines, encode: (body: string) => chunked(body) },
    ]),
    ...SIZES.map((size) => ({
      name: `a chunk of ${JSON.stringify(size)}`,
      lines: ["Transfer-Encoding: chunked"],
      encode: (body: string) => chunked(body, size),
    })),
  ].map((attack, at) => ({ ...attack, to: `ambiguous-${at}@example.com` }));
  const send = ({ to, lines, encode }: Omit<(typeof table)[number], "name">) => {
    const body = message(to);
    const filled = lines.map((line) => line.replace("LEN", String(body.length)));
    return holdOpen(port, head(...opening, ...filled) + encode(body));
  };
  const held = await Promise.all(table.map(send));
  // A message with an unambiguous end is accepted, in either form.
  held.push(await send({ to: "whole@example.com", lines: ["Content-Length: LEN"], encode: (body) => body }));
  held.push(await send({ to: "chunks@example.com", lines: ["Transfer-Encoding: chunked"], encode: chunked }));
  await eventually("the first clear one has come", () => hasMailTo("whole@example.com"));
  await eventually("the second clear one has come", () => hasMailTo("chunks@example.com"));
  for (const socket of held) socket.destroy();
  await attacks.run(table, getName, async ({ to }) => ((await hasMailTo(to)) ? "the message was sent" : null));
});

test("bodies are expanded from gzip alone, and never beyond the bound", async () => {
  const body = (name: string) =>
    Buffer.from(JSON.stringify({ to_address: `${name}@example.com`, template_id: "welcome" }));
  const bomb = Buffer.alloc(256 * 1024 * 1024, 0x20);
  const packers = [
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
    ["gzip, gzip", (bytes: Buffer) => gzipSync(gzipSync(bytes))],
    ["identity, gzip", gzipSync],
  ] as const;
  const table = packers.flatMap(([coding, pack]) => [
    { name: `a message in ${coding}`, coding, isBomb: false, bytes: pack(body("packed")) },
    ...(coding === "br" || coding === "zstd"
      ? []
      : [{ name: `a bomb in ${coding}`, coding, isBomb: true, bytes: pack(bomb) }]),
  ]);
  const residentMb = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${target.waybill.pid}/status`, "utf8"))?.[1]) / 1024;
  const beforeMb = residentMb();
  await attacks.run(table, getName, async ({ coding, isBomb, bytes }) => {
    const headers = {
      "x-api-key": target.attacker.apiKey,
      "content-type": "application/json",
      "content-encoding": coding,
    };
    const seen = await target.probe({ method: "POST", path: "/v1/send/email", headers, body: new Uint8Array(bytes) });
    const isGzip = coding === "gzip" || coding === "x-gzip";
    const expected = isGzip ? [isBomb ? 413 : 202] : [400, 415];
    if (!expected.includes(seen.status)) return `answered ${seen.status} ${seen.text}`;
    return internals(seen.text);
  });
  expect(residentMb() - beforeMb).toBeLessThan(200);
});

test("endless heads are cut off, and the server goes on", async () => {
  const line = (bytes: number) => `X-Padding: ${"x".repeat(bytes)}`;
  const table = [
    { name: "100 headers of 8 kB", bytes: head("GET /health HTTP/1.1", "Host: api", ...Array(100).fill(line(8_192))) },
    { name: "a header of 4 MB", bytes: head("GET /health HTTP/1.1", "Host: api", line(4_000_000)) },
    { name: "20,000 headers", bytes: head("GET /health HTTP/1.1", "Host: api", ...Array(20_000).fill("A: b")) },
    { name: "an address of 1 MB", bytes: head(`GET /${"x".repeat(1_000_000)} HTTP/1.1`, "Host: api", CLOSE) },
    { name: "a verb of 1 MB", bytes: head(`${"X".repeat(1_000_000)} / HTTP/1.1`, "Host: api", CLOSE) },
    { name: "no HTTP at all", bytes: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n" },
    { name: "another version", bytes: head("GET /health HTTP/9.9", "Host: api", CLOSE) },
    { name: "HTTP/2 without asking", bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
    { name: "no Host", bytes: head("GET /dash/api/tenants HTTP/1.1", CLOSE) },
    {
      name: "an upgrade",
      bytes: head("GET /dash/api/tenants HTTP/1.1", "Host: a", "Upgrade: h2c", "Connection: Upgrade, close"),
    },
    { name: "a tunnel", bytes: head("CONNECT 127.0.0.1:22 HTTP/1.1", "Host: 127.0.0.1:22", CLOSE) },
  ];
  await attacks.run(table, getName, async ({ bytes }) => {
    const text = await exchange(port, bytes);
    const [status = 400] = statusesIn(text);
    if (status < 400) return text.slice(0, 200);
    return (await target.probe({ method: "GET", path: "/health" })).status === 200 ? null : "the server is gone";
  });
});

test("hundreds of clients that stop sending or reading keep nobody out", async () => {
  const send = ["POST /v1/send/email HTTP/1.1", "Host: api", "Content-Type: application/json"];
  const unread = head("GET /docs/swagger-ui-bundle.js HTTP/1.1", "Host: api").repeat(20);
  const kinds = [
    { name: "half a head", bytes: "POST /v1/send/email HTTP/1.1\r\nHost: a" },
    { name: "no byte", bytes: "" },
    {
      name: "a body that never comes",
      bytes: head(...send, `X-API-Key: ${target.attacker.apiKey}`, "Content-Length: 900"),
    },
    { name: "a stranger's endless body", bytes: head(...send, "Content-Length: 9000000") },
    {
      name: "half a chunk",
      bytes: `${head(...send, `X-API-Key: ${target.attacker.apiKey}`, "Transfer-Encoding: chunked")}ff\r\n{`,
    },
    { name: "answers that nobody reads", bytes: unread },
  ];
  await attacks.run(kinds, getName, async ({ bytes }) => {
    const held = await Promise.all(Array.from({ length: 100 }, () => holdOpen(port, bytes)));
    try {
      const health = await target.probe({ method: "GET", path: "/health" });
      const message = { to_address: "ann@example.com", template_id: "welcome" };
      const { status } = await target.call(target.victim, "POST", "/v1/send/email", message);
      return health.status === 200 && status === 202 ? null : `others are answered ${health.status} and ${status}`;
    } finally {
      for (const socket of held) socket.destroy();
    }
  });
});

test("every answer states its type, and cannot be used as another", async () => {
  const everything = operations.map(({ method, path, id }) => ({
    name: `${method} ${path}`,
    isPage: ["docs", "dashboard", "askUnsubscribe"].includes(id),
    method,
    path: path.replace(/\{\w+\}/g, "x"),
  }));
  const origin = { origin: "https://evil.example", "access-control-request-method": "POST", "x-request-id": "a\tb" };
  await attacks.run(everything, getName, async ({ method, path, isPage }) => {
    const seen = await target.probe({ method, path, headers: origin });
    const { headers, status } = seen;
    if (headers.get("x-content-type-options") !== "nosniff") return "its type may be guessed";
    for (const name of ["access-control-allow-origin", "x-powered-by", "server", "set-cookie"]) {
      if (headers.has(name)) return `it has ${name}: ${headers.get(name)}`;
    }
    if (headers.get("x-request-id") === "a\tb") return "it repeats a header that cannot be one";
    const policy = headers.get("content-security-policy") ?? "";
    if (isPage && status === 200 && (!policy.startsWith("default-src 'none'") || /unsafe|\*/.test(policy))) {
      return `its policy is ${policy}`;
    }
    if (status >= 400 && typeof json(seen).error !== "string") return `its error is ${seen.text}`;
    return internals(status >= 400 ? seen.text : "");
  });
  await eventually(
    "nothing is left in flight",
    async () => (await target.probe({ method: "GET", path: "/ready" })).status === 200,
  );
});
