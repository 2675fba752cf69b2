import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { type Canary, startCanary } from "../support/canary.ts";
import { Attacks } from "./support/attacks.ts";
import { ISSUER } from "./support/identifiers.ts";
import { internals } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * Addresses that must not be connected to, and third parties that give huge or wrong answers. A canary listens on this
 * machine: no request may ever reach it.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("the outside world");

let target: Target;
let google: Bun.Server<undefined>;
let canary: Canary;
/** The answer of the wallet's API, and of its token endpoint, from now on. */
let answer: () => Response = () => Response.json({});
let tokens: (() => Response) | null = null;

const CLASS = `${ISSUER}.the-class`;
const HELD = { id: CLASS, issuerName: "Club", reviewStatus: "UNDER_REVIEW" };

beforeAll(async () => {
  canary = await startCanary();
  google = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      if (!url.endsWith("/token")) return answer();
      return tokens?.() ?? Response.json({ access_token: "a-token", expires_in: 1, token_type: "Bearer" });
    },
  });
  target = await startTarget({
    // Not this machine, which the sandbox would otherwise allow.
    OUTBOUND_ALLOW: "203.0.113.0/24",
    GOOGLE_WALLET_API_URL: `${google.url.origin}/walletobjects/v1`,
    GOOGLE_TOKEN_URL: `${google.url.origin}/token`,
  });
  answer = () => Response.json(HELD);
  const body = { class_type: "eventTicket", class_data: { id: CLASS, issuerName: "Club", eventName: EVENT } };
  expect((await target.call(target.victim, "POST", "/v1/google/classes", body)).status).toBe(201);
});
afterAll(async () => {
  await target?.stop();
  await google?.stop(true);
  await canary?.stop();
});

const EVENT = { defaultValue: { language: "en", value: "The final" } };

test("a tenant's webhook leads to no machine of ours, however its address is written", async () => {
  const hosts = [
    "127.0.0.1",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "sub.localhost",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "127.000.000.001",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001::1]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fc00::1]",
    "[fd00::1]",
    "[ff02::1]",
    "[100::1]",
    "[2001:db8::1]",
    "[::ffff:169.254.169.254]",
    "169.254.169.254",
    "metadata.google.internal",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "１２７.0.0.1",
    "127.0.0.1.nip.invalid",
    "user@127.0.0.1",
    "203.0.113.1@127.0.0.1",
    "127.0.0.1#@203.0.113.1",
    "127.0.0.1\\@203.0.113.1",
    "203.0.113.1\\@127.0.0.1",
    "%31%32%37.0.0.1",
    "127.0.0.1%00.example.com",
    " 127.0.0.1",
  ];
  const at = (host: string) => (host.includes("#") || host.includes("\\") ? host : `${host}:${canary.port}`);
  const schemes = ["http", "https"].flatMap((scheme) => hosts.map((host) => `${scheme}://${at(host)}/hook`));
  const others = [
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "ftp://127.0.0.1/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "dict://127.0.0.1:6379/",
    "ws://127.0.0.1/",
    "//127.0.0.1/",
    "http:127.0.0.1",
    "http:/127.0.0.1",
    "http:\\\\127.0.0.1",
    "HTTP://127.0.0.1",
    "ht\ntp://127.0.0.1",
    "http://",
    "https://",
    "unix:/run/redis.sock",
    "http://unix:/run/redis.sock:/",
    "https://8.8.8.8:22/",
    "https://8.8.8.8:25/",
    "https://8.8.8.8:6379/",
    "http://example.com/",
  ];
  await attacks.runEach([...schemes, ...others], async (wallet_webhook_url) => {
    const { status, body } = await target.operator("PUT", "/tenants/mallory/wallet-webhook", { wallet_webhook_url });
    if (canary.connections > 0) return "it was connected to";
    if (status !== 400) return `answered ${status} ${JSON.stringify(body)}`;
    return internals(String(body.error));
  });
});

test("pictures that a class or a message names are fetched by nobody here", async () => {
  const uri = `http://127.0.0.1:${canary.port}/picture.png`;
  const image = { sourceUri: { uri }, contentDescription: EVENT };
  const calls: readonly (readonly [string, string, unknown])[] = [
    [
      "PUT",
      `/v1/google/classes/${CLASS}`,
      { class_type: "eventTicket", class_data: { logo: image, heroImage: image } },
    ],
    ["POST", "/v1/send/email", { to_address: "a@example.com", subject: "x", html: `<p>Hello</p><img src="${uri}">` }],
    ["POST", "/v1/send/email", { to_address: "a@example.com", subject: "x", html: `<p>Hello</p><link href="${uri}">` }],
    [
      "POST",
      "/v1/send/email",
      { to_address: "a@example.com", subject: "x", html: `<p style="background:url(${uri})">Hello</p>` },
    ],
    ["POST", "/v1/send/wallet", { pass_type: "apple", pass_data: { ...APPLE, serial_number: "1", icon_base64: uri } }],
    [
      "POST",
      "/v1/send/wallet",
      {
        pass_type: "apple",
        pass_data: {
          ...APPLE,
          serial_number: "2",
          back_fields: [{ key: "k", value: uri, attributedValue: `<img src='${uri}'>` }],
        },
      },
    ],
  ];
  answer = () => Response.json(HELD);
  await attacks.run(
    calls,
    ([method, path, body]) => `${method} ${path} ${JSON.stringify(body).slice(0, 100)}`,
    async ([method, path, body]) => {
      const seen = await target.call(target.victim, method, path, body);
      if (seen.status === 202) await target.ended(target.victim, seen);
      return canary.connections === 0 ? null : "it was fetched";
    },
  );
});

const APPLE = { organization_name: "Club", description: "Ticket" };

test("whatever the wallet's provider answers, the caller gets a class or a plain error", async () => {
  const text = (body: string | Uint8Array<ArrayBuffer>, status = 200, headers: Record<string, string> = {}) =>
    new Response(body, { status, headers: { "content-type": "application/json", ...headers } });
  const failure = (message: unknown, status: number) =>
    text(JSON.stringify({ error: { code: status, message } }), status);
  const elsewhere = `http://127.0.0.1:${canary.port}/`;
  const replies: readonly (readonly [name: string, reply: () => Response])[] = [
    ["20 MB of JSON", () => text(JSON.stringify({ ...HELD, more: "x".repeat(20_000_000) }))],
    ["20 MB of nothing", () => text(new Uint8Array(20_000_000))],
    [
      "200 MB in 200 kB",
      () => text(new Uint8Array(gzipSync(Buffer.alloc(200_000_000, 0x20))), 200, { "content-encoding": "gzip" }),
    ],
    ["an error of 5 MB", () => failure("x".repeat(5_000_000), 400)],
    ["a page", () => text("<html><script>alert(1)</script>", 200, { "content-type": "text/html" })],
    ["a page as an error", () => text("<html><h1>502 nginx/1.2.3</h1>", 502, { "content-type": "text/html" })],
    ["nothing", () => text("")],
    ["null", () => text("null")],
    ["a list", () => text("[]")],
    ["a number", () => text("7")],
    ["a text", () => text('"x"')],
    ["half of it", () => text('{"id":')],
    ["100,000 lists in each other", () => text("[".repeat(100_000) + "]".repeat(100_000))],
    ["100,000 objects in each other", () => text(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)],
    ["bytes that are no text", () => text(Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d))],
    ["a prototype", () => text('{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}}}')],
    ["members of other types", () => text('{"id":7,"issuerName":[],"reviewStatus":{}}')],
    ...[301, 302, 303, 307, 308].map((status): [string, () => Response] => [
      `a redirect ${status}`,
      () => new Response(null, { status, headers: { location: elsewhere } }),
    ]),
    ["a redirect to a file", () => new Response(null, { status: 302, headers: { location: "file:///etc/passwd" } })],
    ["an odd status", () => text("{}", 599)],
    ["an error without a text", () => failure(null, 400)],
    ["an error that is a text", () => text('{"error":"x"}', 400)],
    ["an error of other types", () => text('{"error":{"message":{"a":1},"errors":"x","details":7,"status":[]}}', 403)],
    ["an error with lines and markup", () => failure("a\r\nSet-Cookie: a=b\n<script>alert(1)</script>\u001b[2J", 400)],
    ["an error with the token in it", () => failure("Invalid Credentials: Bearer a-token", 401)],
    ["a wait until the end of time", () => text("{}", 429, { "retry-after": "9".repeat(50) })],
    ["a negative wait", () => text("{}", 429, { "retry-after": "-1" })],
    ["a cookie", () => text(JSON.stringify(HELD), 200, { "set-cookie": "a=b" })],
  ];
  const table = replies.flatMap(([name, reply]) => [
    { name: `${name} for a class`, reply, forToken: false },
    { name: `${name} for a token`, reply, forToken: true },
  ]);
  await attacks.run(
    table,
    ({ name }) => name,
    async ({ reply, forToken }) => {
      answer = forToken ? () => Response.json(HELD) : reply;
      tokens = forToken ? reply : null;
      const seen = await target.probe({
        method: "GET",
        path: `/v1/google/classes/${CLASS}?class_type=eventTicket`,
        headers: { "x-api-key": target.victim.apiKey },
      });
      tokens = null;
      if (canary.connections > 0) return "it was followed";
      if (seen.headers.has("set-cookie")) return "its cookie is handed on";
      if (seen.text.length > 2_000_000) return `${seen.text.length} bytes are handed on`;
      if (seen.status === 200) return seen.text.startsWith("{") ? null : `handed on ${seen.text.slice(0, 100)}`;
      const { error } = JSON.parse(seen.text);
      if (typeof error !== "string" || error.length > 2_000 || /\p{Cc}|a-token/u.test(error))
        return `the error is ${error.slice(0, 300)}`;
      return internals(error);
    },
  );
  expect((await target.probe({ method: "GET", path: "/ready" })).status).toBe(200);
});
