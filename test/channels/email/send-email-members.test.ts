import { describe, expect, test } from "bun:test";
import { acceptEmail } from "../../../src/channels/email/request.ts";
import { aTenant } from "../../support/tenants.ts";

/* The rarely used members of an e-mail, as the request parser reads them. */

const TENANT = aTenant({
  permissions: new Set(["allow_raw_html"]),
  emailTemplates: new Map([["welcome", { subject: "Hi", html: "<p>Hi</p>", text: null }]]),
});
const SEND = { to_address: "ada@example.com", template_id: "welcome" };
const FILE = { filename: "a.txt", content: "SGk=" };
const HI = { sha256: new Bun.CryptoHasher("sha256").update("Hi").digest("hex"), bytes: 2 };

function accepted(body: object) {
  const acceptance = acceptEmail(TENANT, body);
  if (!acceptance.ok) throw new Error(acceptance.refusal.message);
  const { job, contents } = acceptance;
  return { ...job, payload: JSON.parse(job.payload) as unknown, contents };
}

function refusal(body: object, tenant = TENANT): [number, string] {
  const acceptance = acceptEmail(tenant, body);
  return acceptance.ok ? [202, ""] : [acceptance.refusal.status, acceptance.refusal.message];
}

// biome-ignore format: a list
const STEERING = [
  "X-SMTPAPI", "x-smtpapi", "X-SendGrid-Foo", "X-MSYS-API", "X-SES-CONFIGURATION-SET", "X-SES-TENANT",
  "X-Mailgun-Tag", "X-MC-Subaccount", "X-Mandrill-X", "X-PM-Message-Stream", "X-Postmark-Server", "X-SparkPost-X",
  "X-MJ-CustomID", "X-Mailjet-Campaign", "X-Sib-Sandbox", "X-Mailin-Tag", "X-ElasticEmail-Pool", "X-MT-Category",
  "X-Virtual-MTA", "X-Job", "X-Envid", "X-KumoRef", "X-Kumomta-Pool", "X-GreenArrow-MailClass", "X-Haraka-X",
  "X-MS-Exchange-Organization-SCL",
];

test.each(STEERING)("a header by which a mail server takes orders is refused by its name: %s", (name) => {
  const message = `headers must not set "${name}": some mail servers take orders from it`;
  expect(refusal({ ...SEND, headers: { [name]: "1" } })).toEqual([400, message]);
});

test.each([
  "X-Entity-Ref-ID",
  "X-Campaign",
  "X-Report-Abuse",
  "X-Mailer",
  "X-Priority",
  "X-Jobs",
  "X-Session",
  "Feedback-ID",
])("a header that is its reader's is passed on: %s", (name) =>
  expect(accepted({ ...SEND, headers: { [name]: "1" } }).payload).toMatchObject({ headers: { [name]: "1" } }),
);

// biome-ignore format: a list
const ROUTED_ON = [
  "user%other.test@example.com", "other.test!user@example.com", "a!b%c.test@example.com", "100%@example.com",
  '"user%other.test"@example.com', '"other.test!user"@example.com', '"user@other.test"@example.com',
  '"us\\%er"@example.com', '"a b%other.test"@example.com', "üser%other.test@example.com",
];

test.each(ROUTED_ON)("an address that mail servers may route on is refused with the reason: %s", (to_address) => {
  const [status, message] = refusal({ ...SEND, to_address });
  expect([status, message]).toEqual([400, expect.stringMatching(/^to_address must not have % or ! before the @/)]);
  expect(refusal({ ...SEND, cc: [to_address] })[1]).toStartWith("cc[0] must not have % or ! before the @");
  expect(refusal({ ...SEND, bcc: [{ address: to_address }] })[1]).toStartWith(
    "bcc[0] must not have % or ! before the @",
  );
});

test.each(["@a.test,@b.test:user@example.com", "<@a.test:user@example.com>", '"@a.test:user@b.test"@example.com'])(
  "a source route is no address: %s",
  (to_address) => expect(refusal({ ...SEND, to_address })[0]).toBe(400),
);

test("a send without them is queued as it always was", () => {
  const acceptance = acceptEmail(TENANT, { ...SEND, cc: null, tags: null, text: null, data: { a: 1 } });
  expect(acceptance).toEqual({
    ok: true,
    job: {
      recipient: "ada@example.com",
      payload: '{"to":"ada@example.com","template":"welcome","data":{"a":1}}',
      template: "welcome",
    },
  });
});

test("copies, a place for answers, headers, tags and files become part of the job; files are named by their content", () => {
  const { payload, contents, tags } = accepted({
    ...SEND,
    cc: ["bob@example.com", { address: "cy@BÜCHER.example", name: "Cy" }],
    bcc: [{ address: "dan@example.com", name: null }],
    reply_to: "help@example.com",
    headers: { "X-Ref": " 1 ", "in-reply-to": "<a@b>", "X-None": null },
    attachments: [
      { ...FILE, content_type: "text/calendar; charset=utf-8; method=REQUEST", content_id: "a@b" },
      { ...FILE, filename: "b.txt" },
    ],
    tags: [{ name: "campaign", value: "spring_26" }],
    tracking: { opens: false, clicks: null },
  });
  expect(payload).toEqual({
    to: "ada@example.com",
    template: "welcome",
    cc: [{ address: "bob@example.com" }, { address: "cy@xn--bcher-kva.example", name: "Cy" }],
    bcc: [{ address: "dan@example.com" }],
    replyTo: [{ address: "help@example.com" }],
    headers: { "X-Ref": "1", "In-Reply-To": "<a@b>" },
    attachments: [
      { filename: "a.txt", contentType: "text/calendar; charset=utf-8; method=REQUEST", contentId: "a@b", ...HI },
      { filename: "b.txt", ...HI },
    ],
    tracking: { opens: false },
  });
  expect(contents).toEqual([{ sha256: HI.sha256, body: new Uint8Array([72, 105]) }]);
  expect(tags).toEqual([{ name: "campaign", value: "spring_26" }]);
});

test.each([
  ["an internationalised domain becomes its A-labels", "Ada@Bücher.Example", "Ada@xn--bcher-kva.example"],
  ["one in A-labels stays", "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example"],
  ["letters beyond ASCII before the @ stay, in their composed form", "jo\u0303@example.com", "j\u00f5@example.com"],
  ["wide letters are what they stand for", "ada@ｅｘａｍｐｌｅ.com", "ada@example.com"],
])("%s", (_what, to_address, to) => {
  expect(accepted({ ...SEND, to_address }).payload).toMatchObject({ to });
});

describe("inline text", () => {
  test("stands for HTML where there is none, and is judged by the spam filter", () => {
    const job = accepted({ to_address: "ada@example.com", subject: "s", text: "Hi {{.a}}", data: { a: "Ada" } });
    expect([job.needsScreening, job.template]).toEqual([true, undefined]);
    expect(job.payload).toEqual({ to: "ada@example.com", subject: "s", text: "Hi {{.a}}", data: { a: "Ada" } });
  });

  test("beside a template is judged, too", () => {
    expect(accepted({ ...SEND, text: "Hi" })).toMatchObject({ needsScreening: true, template: "welcome" });
  });

  test("needs the permission that inline HTML needs", () => {
    const without = aTenant({ permissions: new Set(), emailTemplates: TENANT.emailTemplates });
    expect(refusal({ to_address: "ada@example.com", text: "Hi" }, without)).toEqual([
      403,
      "inline text needs the permission allow_raw_html: use a template_id, or ask for it",
    ]);
  });

  test.each([
    ["blank once it is filled", { text: " {{.x}}\n" }, "empty"],
    ["too large once it is filled", { text: "{{.x}}".repeat(20), data: { x: "y".repeat(30_000) } }, "too_large"],
  ])("%s is refused", (_what, body, rule) => {
    const acceptance = acceptEmail(TENANT, { to_address: "ada@example.com", ...body });
    expect(acceptance).toMatchObject({ ok: false, refusal: { status: 422, violations: [{ rule }] } });
  });
});

const many = (count: number) => Array.from({ length: count }, (_, i) => `a${i}@example.com`);
const big = Buffer.alloc(6 * 1024 * 1024).toString("base64");

test.each<[what: string, members: object, error: string]>([
  ["cc as a text", { cc: "bob@example.com" }, "cc must be an array of addresses"],
  [
    "a broken copy",
    { bcc: ["bob@example.com", "b\r\nBcc: x@y.z"] },
    "bcc[1] must be one e-mail address of at most 254 bytes",
  ],
  [
    "a list in a copy",
    { cc: ["a@example.com,b@example.com"] },
    "cc[0] must be one e-mail address of at most 254 bytes",
  ],
  ["a machine's address", { cc: ["a@127.0.0.1", "a@[::1]"] }, "cc[0] must be one e-mail address of at most 254 bytes"],
  [
    "a name with a line break",
    { cc: [{ address: "b@example.com", name: "a\nb" }] },
    "the name in cc[0] must not contain control",
  ],
  [
    "a member of a copy that nobody knows",
    { cc: [{ address: "b@example.com", nme: "b" }] },
    "nme is not a member of cc[0]",
  ],
  [
    "too many recipients",
    { cc: many(25), bcc: many(25) },
    "to_address, cc and bcc must not name more than 50 recipients together",
  ],
  ["too many places for answers", { reply_to: many(11) }, "reply_to must not name more than 10 addresses"],
  ["headers as a list", { headers: [] }, "headers must be an object of names and values"],
  ["a header of ours", { headers: { From: "x@y.z" } }, 'headers must not set "From": allowed are'],
  ["a header with our name", { headers: { "X-Waybill-Job": "1" } }, 'headers must not set "X-Waybill-Job"'],
  ["a copy that other servers route on", { bcc: ["b%other.test@example.com"] }, "bcc[0] must not have % or ! before"],
  [
    "a header that ends early",
    { headers: { "X-A": "b\r\nBcc: x@y.z" } },
    "the header X-A must not contain control characters",
  ],
  ["a header's name that ends early", { headers: { "X-A: b\r\nBcc": "x" } }, "headers must not set"],
  [
    "a long header",
    { headers: { "X-A": "b".repeat(994) } },
    "the header X-A must not have more than 998 bytes with its name",
  ],
  ["a standard header beyond ASCII", { headers: { Precedence: "bülk" } }, "the header Precedence must be in ASCII"],
  ["a header twice", { headers: { "X-A": "1", "x-a": "2" } }, "headers must name x-a only once"],
  [
    "too many headers",
    { headers: Object.fromEntries(many(21).map((_, i) => [`X-${i}`, "1"])) },
    "headers must not have more than 20",
  ],
  [
    "a file that is no base64",
    { attachments: [{ ...FILE, content: "~" }] },
    "attachments[0].content must be a file in base64",
  ],
  ["a file without content", { attachments: [{ filename: "a" }] }, "attachments[0].content must be a file in base64"],
  [
    "a file by its address",
    { attachments: [{ filename: "a", url: "https://a.b/c" }] },
    "url is not a member of attachments[0]",
  ],
  [
    "a file's name with a folder",
    { attachments: [{ ...FILE, filename: "../a" }] },
    "attachments[0].filename must be 1 to 255",
  ],
  [
    "a disguised ending",
    { attachments: [{ ...FILE, filename: "a\u202excod.exe" }] },
    "attachments[0].filename must be 1 to 255",
  ],
  [
    "a part of a message as a file",
    { attachments: [{ ...FILE, content_type: "message/partial" }] },
    "attachments[0].content_type must be a media type",
  ],
  [
    "a content id twice",
    {
      attachments: [
        { ...FILE, content_id: "a" },
        { ...FILE, content_id: "a" },
      ],
    },
    "attachments[1].content_id is another",
  ],
  [
    "large files",
    {
      attachments: [
        { ...FILE, content: big },
        { ...FILE, content: big },
      ],
    },
    "attachments must not have more than 10 MiB together",
  ],
  ["too many files", { attachments: Array(21).fill(FILE) }, "attachments must not hold more than 20 files"],
  [
    "a tag with a blank",
    { tags: [{ name: "a b", value: "c" }] },
    "tags[0] must have a name and a value, each 1 to 256 of",
  ],
  [
    "a tag twice",
    {
      tags: [
        { name: "a", value: "b" },
        { name: "a", value: "c" },
      ],
    },
    "tags must name a only once",
  ],
  ["tracking that is no object", { tracking: false }, "tracking must be an object with opens and clicks"],
  ["a word for true", { tracking: { clicks: "no" } }, "tracking.clicks must be true or false"],
  ["another kind of tracking", { tracking: { reads: false } }, ""],
  ["too many tags", { tags: Array(11).fill({ name: "a", value: "b" }) }, "tags must not hold more than 10"],
])("%s is refused with 400 and a sentence that names the member", (_what, members, error) => {
  const [status, message] = refusal({ ...SEND, ...members });
  expect(status).toBe(400);
  expect(message).toStartWith(error);
});

test.each([
  ["news", "news"],
  ["  Product  News ", "product news"],
  ["OFERTAS DE OTOÑO", "ofertas de otoño"],
  ["receipts_2026.v1, A&B+c's-x", "receipts_2026.v1, a&b+c's-x"],
  ["e\u0301te\u0301", "été"],
])("a topic is taken in one spelling: %j", (topic, expected) => {
  expect(accepted({ ...SEND, topic }).topic).toBe(expected);
});

const NO_TOPICS = [
  "",
  " ",
  "-news",
  "a@b",
  'a"b',
  "a\\b",
  "a|b",
  "a\tb",
  "a\nb",
  "a\u200bb",
  "\u3164",
  "x".repeat(65),
  "文".repeat(43),
  7,
  ["news"],
  {},
];

test.each(NO_TOPICS.map((topic) => ({ topic })))("what is no topic is refused with the rule: %j", ({ topic }) => {
  const [status, message] = refusal({ ...SEND, topic });
  expect([status, message]).toEqual([400, expect.stringMatching(/^topic must be (a string|1 to 64 letters)/)]);
});

test("a message's own topic comes before its template's, which also goes with inline HTML", () => {
  const topical = { subject: "Hi", html: "<p>Hi</p>", text: null, topic: "news" };
  const tenant = { ...TENANT, emailTemplates: new Map([["welcome", topical]]) };
  const acceptTopic = (more: object) => {
    const acceptance = acceptEmail(tenant, { ...SEND, ...more });
    return acceptance.ok ? acceptance.job.topic : acceptance.refusal;
  };
  expect([acceptTopic({}), acceptTopic({ topic: null }), acceptTopic({ topic: "Offers" })]).toEqual([
    "news",
    "news",
    "offers",
  ]);
  expect(acceptTopic({ html: "<p>inline</p>", subject: "s" })).toBe("news");
  expect(accepted(SEND)).not.toHaveProperty("topic");
});
