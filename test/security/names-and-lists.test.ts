import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { recently } from "../support/recent-days.ts";
import { Attacks, shown } from "./support/attacks.ts";
import { equip, type Identifiers } from "./support/identifiers.ts";
import { json, type Seen, unclean } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/* Names that contain pieces of other languages, and list cursors that were never issued. */

setDefaultTimeout(90_000);
const attacks = new Attacks("names and lists");

let target: Target;
let victims: Identifiers;
let own: Identifiers;

beforeAll(async () => {
  target = await startTarget();
  [victims, own] = [await equip(target, target.victim), await equip(target, target.attacker)];
  await eventually("events are listed", async () => (await fetchEvents("")).length > 0);
});
afterAll(() => target?.stop());

const today = new Date().toISOString().slice(0, 10);

function get(path: string): Promise<Seen> {
  return target.probe({ method: "GET", path, headers: { "x-api-key": target.attacker.apiKey } });
}

async function fetchEvents(more: string): Promise<{ job_id: string; event_id: number }[]> {
  const seen = await get(`/v1/events?${recently()}${more}`);
  return json(seen).events;
}

/** Returns why the answer is neither a clean refusal nor a list of the attacker's own, or null. */
function foreignIn(seen: Seen): string | null {
  if (seen.status !== 200 && seen.status !== 204) return unclean(seen);
  return /victim/.test(seen.text) || seen.text.includes(victims.jobId) ? `it shows ${seen.text.slice(0, 300)}` : null;
}

const SQL = [
  "'",
  "' OR '1'='1",
  "' OR tenant_id != '' --",
  "'; DROP TABLE events; --",
  "1; SELECT pg_sleep(1)",
  "1 UNION SELECT * FROM keys",
  "\\' OR 1=1 --",
  "{x:String}",
  "{tenant:Identifier}",
  "') UNION ALL SELECT * FROM file('/etc/passwd') --",
  "email' SETTINGS max_execution_time=0 --",
  "$1",
  ":tenant",
  "%",
  "_",
  "*",
  "/*",
  "--",
  '"',
  "`",
];
const KEYS = [
  "{s00}",
  "}:P:tenants",
  "wb:{s00}:P:tenants",
  "*",
  "?",
  "[a-z]",
  "\r\nFLUSHALL\r\n",
  "$5\r\nhello\r\n",
  "\0",
  "a b",
];
const PATHS = [
  "..",
  "../..",
  "..%2f..%2fetc%2fpasswd",
  "%2e%2e%2f",
  "....//",
  "/etc/passwd",
  "C:\\",
  "%00",
  "%zz",
  "%",
  "%c0%af",
];
const SCRIPTS = [
  "<script>alert(1)</script>",
  "javascript:alert(1)",
  "\u202egpj.exe",
  "\ud800",
  "\u{1f600}".repeat(100),
];
const WORDS = ["__proto__", "constructor", "toString", "hasOwnProperty", "null", "undefined", "NaN", "true", "0", "-1"];
const SIZES = ["", " ", "x".repeat(10_000), "-".repeat(5_000), "(".repeat(5_000), "a@".repeat(3_000)];
const HOSTILE = [...SQL, ...KEYS, ...PATHS, ...SCRIPTS, ...WORDS, ...SIZES];

test("no name in an address is anything but a name", async () => {
  const places: readonly (readonly [string, (name: string) => string])[] = [
    ["a job", (name) => `/v1/jobs/${name}`],
    ["a job's events", (name) => `/v1/jobs/${name}/events`],
    ["a job behind a real one", (name) => `/v1/jobs/${own.jobId}${name}`],
    ["a pass", (name) => `/v1/passes/${name}/status`],
    ["a pass's file", (name) => `/v1/passes/${name}/download`],
    ["a class", (name) => `/v1/google/classes/${name}?class_type=eventTicket`],
    ["a class's name", (name) => `/v1/google/classes/${own.classId}${name}?class_type=eventTicket`],
    ["a class's type", (name) => `/v1/google/classes/${own.classId}?class_type=${name}`],
    ["a domain", (name) => `/v1/domains/${name}`],
    ["a device", (name) => `/wallet/v1/devices/${name}/registrations/${own.passType}`],
    ["a pass type", (name) => `/wallet/v1/devices/x/registrations/${name}`],
    ["a serial", (name) => `/wallet/v1/passes/${own.passType}/${name}`],
    ["a tag", (name) => `/wallet/v1/devices/x/registrations/${own.passType}?passesUpdatedSince=${name}`],
    ["a token of a click", (name) => `/t/c/${name}`],
    ["a token of a way out", (name) => `/u/${name}`],
    ["an address", (name) => `/${name}`],
  ];
  const table = places.flatMap(([place, path]) =>
    HOSTILE.flatMap((name) => [
      { name: `${place}, ${shown(name)}`, path: path(encodeName(name)) },
      // Spelt with the fewest escapes that a client can use.
      { name: `${place}, bare ${shown(name)}`, path: path(name.replace(/[\s?#\0\ud800]/g, "_")) },
    ]),
  );
  await attacks.run(
    table,
    ({ name }) => name,
    async ({ path }) => {
      return foreignIn(await get(path));
    },
  );
});

function encodeName(name: string): string {
  return encodeURIComponent(name.toWellFormed());
}

test("no parameter of a list shows more than the caller's own, or an engine's words", async () => {
  const numbers = [
    "0",
    "-1",
    "-0",
    "1.5",
    "501",
    "1e9",
    "1e3",
    "0x10",
    "+1",
    "٣",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
    "Infinity",
    "",
    " 1",
    "1,2",
    "1;2",
    "99999999999999999999999999999999999999",
  ];
  const dates = [
    "0000-00-00",
    "2024-02-30",
    "2026-13-01",
    "9999-12-31",
    "10000-01-01",
    "-0001-01-01",
    "2026-1-1",
    "20260101",
    "now",
    "2026-01-01T00:00:00Z",
    "1970-01-01",
    "2026-01-01' OR 1=1",
    "",
  ];
  const parameter = (name: string, value: string) => `${name}=${encodeURIComponent(value)}`;
  const range = `from=${today}&to=${today}`;
  const table = [
    ...[...numbers, ...SQL].flatMap((value) => [
      `${range}&${parameter("cursor", value)}`,
      `${range}&${parameter("limit", value)}`,
    ]),
    ...[...dates, ...SQL].flatMap((value) => [
      `to=${today}&${parameter("from", value)}`,
      `from=${today}&${parameter("to", value)}`,
    ]),
    ...[...SQL, ...WORDS].flatMap((value) => [
      `${range}&${parameter("channel", value)}`,
      `${range}&${parameter("event_type", value)}`,
    ]),
    `${range}&cursor=${victims.cursor}`,
    `${range}&tenant_id=victim`,
    `${range}&tenant=victim`,
    `${range}&job_id=${victims.jobId}`,
    `${range}&from=2020-01-01`,
    `${range}&channel[]=email`,
    `${range}&limit[$gt]=1`,
    `${range}&__proto__=1`,
    `${range}&${"x=1&".repeat(5_000)}`,
    "",
  ];
  await attacks.run(
    table,
    (query) => query.slice(0, 120),
    async (query) => foreignIn(await get(`/v1/events?${query}`)),
  );
});

test("a tenant's pages hold only its own events, wherever they begin", async () => {
  const first = await fetchEvents("");
  const ids = first.map(({ event_id }) => event_id);
  const spread = [...ids, Number(victims.cursor)].flatMap((id) => [id - 4096, id - 1, id, id + 1, id + 4096]);
  const table = spread.flatMap((cursor) => [1, 2, 500].map((limit) => `&cursor=${cursor}&limit=${limit}`));
  const known = new Set(first.map(({ job_id }) => job_id));
  await attacks.run(
    table,
    (query) => query,
    async (query) => {
      const stranger = (await fetchEvents(query)).find(({ job_id }) => !known.has(job_id));
      return stranger === undefined ? null : `it holds ${stranger.job_id}`;
    },
  );
});

test("operators' lists and names are no way into an engine, either", async () => {
  const bearer = { authorization: `Bearer ${target.operatorToken}` };
  const places: readonly ((name: string) => string)[] = [
    (name) => `/dash/api/tenants?cursor=${name}`,
    (name) => `/dash/api/tenants?limit=${name}`,
    (name) => `/dash/api/tenants/victim/suppressions?cursor=${name}`,
    (name) => `/dash/api/tenants/victim/tokens?cursor=${name}`,
    (name) => `/dash/api/whatsapp/messages?cursor=${name}`,
    (name) => `/dash/api/sandbox/messages?limit=${name}`,
    (name) => `/dash/api/tenants/${name}`,
    (name) => `/dash/api/tenants/victim/templates/${name}`,
    (name) => `/dash/api/tenants/victim/aliases/${name}`,
    (name) => `/dash/api/tenants/victim/domains/${name}`,
    (name) => `/dash/api/export?from=${today}&to=${today}&tenant=${name}`,
    (name) => `/dash/api/export?from=${today}&to=${today}&format=${name}`,
    (name) => `/dash/api/export?from=${name}&to=${today}`,
  ];
  const table = places.flatMap((path) => HOSTILE.map((name) => path(encodeName(name))));
  await attacks.run(
    table,
    (path) => path.slice(0, 160),
    async (path) => {
      const seen = await target.probe({ method: "GET", path, headers: bearer });
      return unclean(seen, (status) => status < 500);
    },
  );
});

test("names in bodies and headers are kept unchanged, or refused", async () => {
  const message = (template_id: string) => JSON.stringify({ to_address: "ann@example.com", template_id });
  const headers = { "x-api-key": target.attacker.apiKey, "content-type": "application/json" };
  const printable = HOSTILE.filter((name) => /^[\x20-\x7e]+$/.test(name) && name.trim() === name);
  const table = [
    ...HOSTILE.map((name) => ({
      name: `template ${shown(name)}`,
      path: "/v1/send/email",
      headers,
      body: message(name),
    })),
    ...HOSTILE.map((name) => ({
      name: `chat template ${shown(name)}`,
      path: "/v1/send/whatsapp",
      headers,
      body: JSON.stringify({ phone_number: "5491122334455", template_id: name, language_code: name }),
    })),
    ...HOSTILE.map((name) => ({
      name: `class ${shown(name)}`,
      path: "/v1/google/classes",
      headers,
      body: JSON.stringify({ class_type: "eventTicket", class_data: { id: `${own.classId}${name}`, issuerName: "x" } }),
    })),
    ...printable.map((name) => ({
      name: `idempotency key ${shown(name)}`,
      path: "/v1/send/email",
      headers: { ...headers, "idempotency-key": name },
      body: message("welcome"),
    })),
  ];
  await attacks.run(
    table,
    ({ name }) => name,
    async ({ path, headers: sent, body }) => {
      const seen = await target.probe({ method: "POST", path, headers: sent, body });
      return unclean(seen, (status) => status < 500);
    },
  );
});

test("a tenant's idempotency key answers nobody else", async () => {
  const keys = [victims.idempotencyKey, "order-1", "{victim}", "victim:order-1"];
  const body = JSON.stringify({ to_address: "reader-of-victim@example.com", template_id: "welcome" });
  await attacks.runEach(keys, async (key) => {
    const as = async (apiKey: string) =>
      target.probe({
        method: "POST",
        path: "/v1/send/email",
        headers: { "x-api-key": apiKey, "content-type": "application/json", "idempotency-key": key },
        body,
      });
    const theirs = await as(target.victim.apiKey);
    const mine = await as(target.attacker.apiKey);
    if (mine.headers.has("idempotency-replayed")) return "it was replayed";
    return json(mine).job_id !== undefined && json(mine).job_id === json(theirs).job_id ? "it is the same job" : null;
  });
});

test("no domain name makes the program look up an invalid one", async () => {
  const names = [
    "a..b",
    ".a.example",
    "a.example.",
    "-a.example",
    "a-.example",
    "_dmarc.example",
    "a b.example",
    "a\n.example",
    "a\0.example",
    `${"a".repeat(64)}.example`,
    `${"a.".repeat(150)}example`,
    "*.example",
    "localhost",
    "com",
    "127.0.0.1",
    "[::1]",
    "2130706433",
    "xn--",
    "xn--a.example",
    "пример.example",
    "exa\u0301mple.com",
    "a.example/b",
    "a.example:53",
    "a@b.example",
    "http://a.example",
    "'; DROP TABLE domains; --",
    "$(id).example",
    "\u3002",
    "a\u3002example",
    "a.example\u0000.evil",
  ];
  await attacks.runEach(names, async (domain) => {
    const { status, body } = await target.operator("POST", "/tenants/mallory/domains", { domain });
    if (status >= 400 && status < 500) return null;
    // Another spelling of a name may be accepted as that name.
    const isName = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(
      body.Domain,
    );
    return status === 201 && isName ? null : `answered ${status} ${JSON.stringify(body).slice(0, 200)}`;
  });
  expect((await target.probe({ method: "GET", path: "/ready" })).status).toBe(200);
});
