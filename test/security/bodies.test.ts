import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { recently } from "../support/recent-days.ts";
import { Attacks } from "./support/attacks.ts";
import { equip, type Identifiers } from "./support/identifiers.ts";
import { messageTo } from "./support/message-to.ts";
import { internals, json, type Seen } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/* Hostile JSON bodies: unexpected members, prototypes, bombs. */

setDefaultTimeout(90_000);
const attacks = new Attacks("bodies");

let target: Target;
let ids: Identifiers;
let made = 0;

beforeAll(async () => {
  target = await startTarget();
  ids = await equip(target, target.attacker);
  const template = { channel: "email", subject: "[{{.x}}]", html: '<p title="{{.x}}">[{{.x}}]</p>', text: "[{{.x}}]" };
  await target.operator("PUT", "/tenants/mallory/templates/of-x", template);
  const prototypes =
    "[{{.polluted}}{{.__proto__.polluted}}{{.constructor.name}}{{.toString}}{{.__defineGetter__}}{{.a.__proto__}}]";
  const probe = { channel: "email", subject: prototypes, html: `<p>${prototypes}</p>` };
  await target.operator("PUT", "/tenants/victim/templates/prototypes", probe);
});
afterAll(() => target?.stop());

/** A tenant's call whose body is sent exactly as written here. */
function post(path: string, body: string | Uint8Array<ArrayBuffer>, method = "POST"): Promise<Seen> {
  const headers = { "x-api-key": target.attacker.apiKey, "content-type": "application/json" };
  return target.probe({ method, path, headers, body });
}

const nextAddress = () => `reader-${(made += 1)}@example.com`;
const nextSerial = () => `serial-${(made += 1)}`;

function applePass(more: object = {}): object {
  return { serial_number: nextSerial(), organization_name: "Club", description: "Ticket", ...more };
}

test("members that a caller may not set change nothing", async () => {
  const extras: Readonly<Record<string, unknown>> = {
    tenant_id: "victim",
    tenantId: "victim",
    tenant: "victim",
    status: "success",
    plan: "unlimited",
    is_admin: true,
    balance: 1_000_000,
    tokens: 1_000_000,
    shard: 0,
    job_id: ids.jobId,
    jobId: ids.jobId,
    from: "ceo@victim.example",
    from_address: "ceo@victim.example",
    fromAddress: "ceo@victim.example",
    cc: "evil@example.com",
    bcc: ["evil@example.com, evil@example.com", { address: "evil@example.com", "X-Evil": "1" }],
    headers: { "X-Evil": "1", Bcc: "evil@example.com" },
    envelope: { to: ["evil@example.com"], size: "1\r\nRCPT TO:<evil@example.com>" },
    attachments: [{ path: "/etc/passwd" }, { href: "http://127.0.0.1:1/" }],
    raw: "Subject: raw\r\n\r\nraw",
    html_path: "/etc/passwd",
    smtp_url: "smtp://127.0.0.1:1",
    permissions: ["allow_raw_html"],
    needsScreening: false,
    access_token: "stolen",
    phone_number_id: "1",
    webServiceURL: "https://evil.example",
    authenticationToken: "0".repeat(32),
    passTypeIdentifier: "pass.evil",
    teamIdentifier: "EVIL000000",
  };
  const bodies: readonly (readonly [string, string, () => Record<string, unknown>])[] = [
    ["POST", "/v1/send/email", () => ({ to_address: nextAddress(), template_id: "welcome" })],
    ["POST", "/v1/send/whatsapp", () => ({ phone_number: "5491122334455", template_id: "order" })],
    ["POST", "/v1/send/wallet", () => ({ pass_type: "apple", pass_data: applePass() })],
    ["PUT", `/v1/passes/${ids.passId}`, () => ({ pass_data: { back_fields: [{ key: "k", value: "v" }] } })],
  ];
  const table = bodies.flatMap(([method, path, body]) =>
    Object.entries(extras).map(([name, value]) => ({ method, path, body, name, value })),
  );
  const victims = async () =>
    JSON.stringify([
      (await target.operator("GET", "/tenants/victim")).body,
      (await target.call(target.victim, "GET", `/v1/events?${recently()}`)).body,
    ]);
  const before = await victims();
  const own = (await target.operator("GET", "/tenants/mallory")).body;
  await attacks.run(
    table,
    ({ method, path, name }) => `${name} in ${method} ${path}`,
    async ({ method, path, body, name, value }) => {
      const sent = body();
      const accepted = await post(path, JSON.stringify({ ...sent, [name]: value }), method);
      if (accepted.status === 400) return internals(accepted.text);
      if (accepted.status !== 202) return `answered ${accepted.status}`;
      const jobId = json(accepted).job_id;
      if (jobId === ids.jobId) return "it names the job";
      const job = await target.ended(target.attacker, {
        status: 202,
        headers: accepted.headers,
        body: { job_id: jobId },
      });
      if (job.status !== "success") return `the job is ${job.status}: ${JSON.stringify(job.result)}`;
      if (typeof sent["to_address"] !== "string") return null;
      const { text, from } = await messageTo(target, sent["to_address"]);
      return /evil|X-Evil|root:|victim|^raw/im.test(`${from}\n${text}`) ? text.slice(0, 500) : null;
    },
  );
  expect(await victims()).toBe(before);
  const { tokens, ...now } = (await target.operator("GET", "/tenants/mallory")).body;
  expect(now).toEqual({ ...own, tokens: undefined });
  expect(tokens).toBeLessThanOrEqual(own.tokens);
  expect((await target.operator("GET", "/sandbox/messages?to=evil@example.com")).body.messages).toEqual([]);
});

const POLLUTED = '"polluted":"yes","allow_raw_html":true,"status":"success","html":"<p>polluted</p>"';
/** Members that reach the prototype of every object after a careless merge or assignment. */
const PROTOTYPES = [
  `"__proto__":{${POLLUTED}}`,
  `"constructor":{"prototype":{${POLLUTED}}}`,
  `"__proto__":{"__proto__":{${POLLUTED}}}`,
  '"__proto__":null',
  '"__proto__":[]',
  `"__proto__":{"toString":"yes","valueOf":"yes","hasOwnProperty":"yes","length":1e9}`,
  `"\\u005f_proto__":{${POLLUTED}}`,
  `"toString":"yes","hasOwnProperty":"yes","valueOf":1,"then":"yes"`,
  `"toJSON":"yes","constructor":null`,
];

test("no prototype is changed, wherever in a body it is named", async () => {
  const google = (object: string) =>
    `{"pass_type":"google","pass_data":{"class_id":"${ids.classId}","class_type":"eventTicket","object_id":"${ids.classId}${nextSerial()}","object_data":{${object}}}}`;
  const apple = (members: string) =>
    `{"pass_type":"apple","pass_data":{"serial_number":"${nextSerial()}","organization_name":"Club","description":"Ticket",${members}}}`;
  const places: readonly (readonly [name: string, method: string, path: string, body: (members: string) => string])[] =
    [
      ["the body", "POST", "/v1/send/email", (m) => `{${m},"to_address":"${nextAddress()}","template_id":"welcome"}`],
      ["data", "POST", "/v1/send/email", (m) => `{"to_address":"${nextAddress()}","template_id":"of-x","data":{${m}}}`],
      [
        "a value of data",
        "POST",
        "/v1/send/email",
        (m) => `{"to_address":"${nextAddress()}","template_id":"of-x","data":{"x":{${m}}}}`,
      ],
      [
        "a chat message",
        "POST",
        "/v1/send/whatsapp",
        (m) => `{${m},"phone_number":"5491122334455","template_id":"order","params":["a"]}`,
      ],
      ["pass_data", "POST", "/v1/passes/create", apple],
      ["a field of a pass", "POST", "/v1/passes/create", (m) => apple(`"back_fields":[{"key":"k","value":"v",${m}}]`)],
      ["object_data", "POST", "/v1/passes/create", google],
      ["a text module", "POST", "/v1/passes/create", (m) => google(`"textModulesData":[{"id":"a","header":"b",${m}}]`)],
      ["the change of a pass", "PUT", `/v1/passes/${ids.passId}`, (m) => `{"pass_data":{${m}}}`],
      [
        "a changed field of a pass",
        "PUT",
        `/v1/passes/${ids.passId}`,
        (m) => `{"pass_data":{"back_fields":[{"key":"k","value":"w",${m}},{"key":"__proto__","value":"x",${m}}]}}`,
      ],
      ["the change of an object", "PUT", `/v1/passes/${ids.googlePassId}`, (m) => `{"pass_data":{${m}}}`],
      [
        "a changed module",
        "PUT",
        `/v1/passes/${ids.googlePassId}`,
        (m) => `{"pass_data":{"textModulesData":[{"id":"__proto__",${m}},{"id":"constructor",${m}}]}}`,
      ],
      [
        "a class",
        "PUT",
        `/v1/google/classes/${ids.classId}`,
        (m) => `{"class_type":"eventTicket","class_data":{"issuerName":"x",${m}}}`,
      ],
    ];
  const table = places.flatMap(([place, method, path, body]) =>
    PROTOTYPES.map((members) => ({ name: `${members} in ${place}`, method, path, body, members })),
  );
  await attacks.run(
    table,
    ({ name }) => name,
    async ({ method, path, body, members }) => {
      const seen = await post(path, body(members), method);
      if (seen.status >= 500) return `answered ${seen.status} ${seen.text}`;
      const isAccepted = seen.status === 202;
      if (isAccepted) await target.ended(target.attacker, { status: 202, headers: seen.headers, body: json(seen) });
      return internals(seen.text);
    },
  );
  // Inherited members would show in a message of another tenant, which may not even send HTML of its own.
  const to_address = nextAddress();
  const sent = await target.call(target.victim, "POST", "/v1/send/email", {
    to_address,
    template_id: "prototypes",
    data: { a: {} },
  });
  expect((await target.ended(target.victim, sent)).status).toBe("success");
  const { subject, text } = await messageTo(target, to_address);
  expect([subject, text.includes("<p>[]</p>")]).toEqual(["[]", true]);
  await target.operator("PATCH", "/tenants/victim", { permissions: [] });
  const raw = { to_address, subject: "x", html: "<p>x</p>" };
  expect((await target.call(target.victim, "POST", "/v1/send/email", raw)).status).toBe(403);
  const { body: pass } = await target.call(target.attacker, "GET", `/v1/passes/${ids.passId}/status`);
  expect(Object.keys(pass).toSorted()).toEqual([
    "installed_devices",
    "is_installed",
    "pass_id",
    "pass_type",
    "status",
    "version",
  ]);
});

test("invalid JSON, or JSON that costs more than a message, is refused", async () => {
  const message = (more: string) => `{"to_address":"ann@example.com","template_id":"of-x"${more}}`;
  const bombs: readonly (readonly [name: string, body: string | Uint8Array<ArrayBuffer>])[] = [
    ["100,000 lists in each other", message(`,"data":{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)],
    ["100,000 objects in each other", message(`,"data":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)],
    ["a million lists that never end", "[".repeat(1_000_000)],
    ["a million members", message(`,"data":{${Array.from({ length: 1_000_000 }, (_, i) => `"${i}":1`).join(",")}}`)],
    ["a million items", message(`,"data":{"x":[${"0,".repeat(1_000_000)}0]}`)],
    ["nine million blanks and a bracket", `${" ".repeat(9_000_000)}{`],
    ["a comment", message(',/*"x":1*/"data":{}')],
    ["a comma too many", message(",")],
    ["single quotes", "{'to_address':'ann@example.com','template_id':'of-x'}"],
    ["UTF-16", new Uint8Array(Buffer.from(message(""), "utf16le"))],
    [
      "bytes that are no UTF-8",
      new Uint8Array(
        Buffer.concat([
          Buffer.from(message(',"data":{"x":"').slice(0, -1)),
          Buffer.of(0xc0, 0xaf, 0xff),
          Buffer.from('"}}'),
        ]),
      ),
    ],
    [
      "half of a pair of UTF-16 in UTF-8",
      new Uint8Array(
        Buffer.concat([Buffer.from('{"to_address":"'), Buffer.of(0xed, 0xa0, 0x80), Buffer.from('@example.com"}')]),
      ),
    ],
    ["a control character in a text", message(',"data":{"x":"a\nb"}')],
    ["a NUL behind it", `${message("")}\0`],
    ["two documents", `${message("")}${message("")}`],
    ["NaN", message(',"data":{"x":NaN}')],
    ["Infinity", message(',"data":{"x":Infinity}')],
    ["a number of 1 MB that is no text", `${"9".repeat(1_000_000)}`],
    ["a list", `[${message("")}]`],
    ["a text", JSON.stringify(message(""))],
    ["null", "null"],
    ["nothing", ""],
    ["another type of member", message(',"data":[]')],
  ];
  await attacks.run(
    bombs,
    ([name]) => name,
    async ([, body]) => {
      const seen = await post("/v1/send/email", body);
      if (seen.status !== 400 && seen.status !== 413) return `answered ${seen.status} ${seen.text}`;
      return internals(seen.text);
    },
  );
});

test("ambiguous JSON is read in one way only", async () => {
  const readings: readonly (readonly [name: string, body: string, to: string])[] = [
    [
      "a name twice",
      '{"to_address":"first@example.com","to_address":"last@example.com","template_id":"of-x"}',
      "last@example.com",
    ],
    [
      "a name twice, once escaped",
      '{"to_address":"first@example.com","\\u0074o_address":"second@example.com","template_id":"of-x"}',
      "second@example.com",
    ],
    [
      "a bad one and a good one",
      '{"to_address":"a@b\\r\\n.example","to_address":"good@example.com","template_id":"of-x"}',
      "good@example.com",
    ],
  ];
  await attacks.run(
    readings,
    ([name]) => name,
    async ([, body, to]) => {
      const seen = await post("/v1/send/email", body);
      if (seen.status === 400) return null;
      await target.ended(target.attacker, { status: seen.status, headers: seen.headers, body: json(seen) });
      return (await messageTo(target, to)).text.includes(to) ? null : "checked one, sent to another";
    },
  );
  const refused = await post(
    "/v1/send/email",
    '{"to_address":"ok@example.com","to_address":"a@b\\r\\n.example","template_id":"of-x"}',
  );
  expect(refused.status).toBe(400);
});
