import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import { formatMessageId, recipientMark } from "../../../../src/channels/email/message-id.ts";
import { parseMailReport } from "../../../../src/channels/email/reports/mail-report.ts";
import { Front, linkTokens, OPERATOR_TOKEN } from "../../../http/support/front.ts";
import { buildFeedback, buildNotification } from "./returned-mail.ts";

const JOB = "0199a000-0000-7000-8000-00000000abcd";
const RECIPIENT = "ann@far.test";
const TOKEN = linkTokens.sign({ purpose: "unsubscribe", tenantId: "acme", jobId: JOB, recipient: RECIPIENT });
const HEAD = [
  `From: shop@example.com`,
  `To: Ann <${RECIPIENT}>`,
  `Message-ID: ${formatMessageId(JOB, "acme", "example.com")}`,
];
const UNSIGNED = `${HEAD.join("\r\n")}\r\n\r\nHello\r\n`;
const SIGNED = [...HEAD, `List-Unsubscribe: <https://send.example.com/u/${TOKEN}>`, "", "Hello", ""].join("\r\n");
const GONE = { recipient: "Ann@Far.test", status: "5.1.1", diagnostic: "550 5.1.1 <ann@far.test>: User unknown" };

let front: Front;

beforeAll(async () => {
  front = await Front.start();
});

beforeEach(() => {
  front.reports.length = 0;
});

afterAll(() => front.stop());

async function post(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}, query = "") {
  const all = { Authorization: `Bearer ${OPERATOR_TOKEN}`, "Content-Type": "message/rfc822", ...headers };
  const { status, body: answer } = await front.fetch(`/dash/api/mail-reports${query}`, {
    method: "POST",
    headers: all,
    body,
  });
  return { status, body: answer };
}

test("a late bounce is one, and its recipient is suppressed", async () => {
  expect(await post(buildNotification(SIGNED, GONE))).toEqual({ status: 202, body: { reports: 1 } });
  expect(front.reports).toEqual([
    {
      tenantId: "acme",
      jobId: JOB,
      type: "bounced",
      result: { code: 550, enhanced_code: "5.1.1", diagnostic: "550 5.1.1 <ann@far.test>: User unknown" },
      suppressRecipient: RECIPIENT,
    },
  ]);
});

test("a bounce is one in whatever case its action is written", async () => {
  for (const action of ["Failed", "FAILED"]) await post(buildNotification(SIGNED, { ...GONE, action }));
  const bounce = { type: "bounced", suppressRecipient: RECIPIENT };
  expect(front.reports).toMatchObject([bounce, bounce]);
});

test("a bounce suppresses the recipient whose alias led to the address that failed", async () => {
  await post(
    buildNotification(SIGNED, { ...GONE, recipient: "a.lee@inner.far.test", originalRecipient: GONE.recipient }),
  );
  expect(front.reports).toMatchObject([{ type: "bounced", suppressRecipient: RECIPIENT }]);
});

test("a complaint is one, and its recipient is suppressed", async () => {
  for (const type of ["abuse", "Fraud"]) expect((await post(buildFeedback(SIGNED, type))).body).toEqual({ reports: 1 });
  const complaint = { tenantId: "acme", jobId: JOB, type: "complained", result: {}, suppressRecipient: RECIPIENT };
  expect(front.reports).toEqual([complaint, complaint] as typeof front.reports);
});

test.each(["not-spam", "auth-failure", "virus", ""])("feedback of the type %j is no complaint", async (type) => {
  expect((await post(buildFeedback(SIGNED, type))).body).toEqual({ reports: 0 });
});

test.each(["delayed", "delivered", "relayed", "expanded"])(
  "a notification that it was %s reports nothing",
  async (action) => {
    expect((await post(buildNotification(SIGNED, { ...GONE, action }))).body).toEqual({ reports: 0 });
  },
);

test.each([
  ["4.2.2", "452 4.2.2 over quota"],
  ["5.2.2", "552 5.2.2 over quota"],
  ["5.7.1", "550 5.7.1 rejected due to policy"],
])("a failure with status %s suppresses nobody", async (status, diagnostic) => {
  await post(buildNotification(SIGNED, { recipient: RECIPIENT, status, diagnostic }));
  expect(front.reports).toMatchObject([{ type: "failed", result: { error: diagnostic }, suppressRecipient: null }]);
});

test("a status that says nothing is made up for by the one in the diagnostic", async () => {
  await post(buildNotification(SIGNED, { ...GONE, status: "5.0.0" }));
  expect(front.reports).toMatchObject([{ type: "bounced", result: { enhanced_code: "5.1.1" } }]);
});

test("nobody but the recipient that the link was signed for is ever suppressed", async () => {
  await post(buildNotification(SIGNED, { ...GONE, recipient: "boss@far.test" }));
  await post(buildNotification(UNSIGNED, GONE));
  await post(buildNotification(SIGNED.replace(TOKEN, `${TOKEN.slice(0, -8)}AAAAAAAA`), GONE));
  await post(buildFeedback(UNSIGNED));
  expect(front.reports).toMatchObject([
    { jobId: JOB, type: "failed", suppressRecipient: null },
    { jobId: JOB, type: "failed", suppressRecipient: null },
    { jobId: JOB, type: "failed", suppressRecipient: null },
    { jobId: JOB, type: "complained", suppressRecipient: null },
  ]);
});

test("of a message with copies, a bounce of a copy is named and suppresses nobody", async () => {
  const id = formatMessageId(JOB, "acme", "example.com");
  const copied = SIGNED.replace(id, formatMessageId(JOB, "acme", "example.com", recipientMark(RECIPIENT)));
  await post(buildNotification(copied, { ...GONE, recipient: "Boss@far.test" }));
  await post(buildNotification(copied, GONE));
  expect(
    front.reports.map(({ type, result, suppressRecipient }) => [type, result["recipient"], suppressRecipient]),
  ).toEqual([
    ["bounced", "boss@far.test", null],
    ["bounced", undefined, RECIPIENT],
  ]);
});

test("a link names its job, whatever Message-ID stands beside it", async () => {
  await post(buildFeedback(SIGNED.replace(JOB, "0199a000-0000-7000-8000-00000000ffff")));
  expect(front.reports).toMatchObject([{ jobId: JOB }]);
});

test.each([
  ["somebody's letter", SIGNED],
  [
    "a report within a letter",
    `Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n${buildFeedback(SIGNED)}\r\n--x--\r\n`,
  ],
  ["a report about a message of others", buildFeedback("Message-ID: <1@example.com>\r\n\r\nHello")],
  ["nothing", ""],
])("%s reports nothing", async (_what, text) => {
  expect(await post(text)).toEqual({ status: 202, body: { reports: 0 } });
});

test("encoded parts are read", async () => {
  const encoded = Buffer.from("Feedback-Type: abuse\r\nVersion: 1\r\n").toString("base64");
  const text = buildFeedback(SIGNED).replace(
    /Content-Type: message\/feedback-report[^]*?\r\n--part1/,
    `Content-Type: message/feedback-report\r\nContent-Transfer-Encoding: base64\r\n\r\n${encoded}\r\n--part1`,
  );
  expect((await post(text)).body).toEqual({ reports: 1 });
});

test("it asks for the operator's token, the right type, and no more than 10 MiB", async () => {
  expect((await post(SIGNED, { Authorization: "Bearer wrong" })).status).toBe(401);
  expect((await post(SIGNED, { "Content-Type": "text/plain" })).status).toBe(400);
  expect((await post(SIGNED, {}, "?more=1")).status).toBe(400);
  expect((await post(new Uint8Array(10 * 1024 * 1024 + 1))).status).toBe(413);
});

test("no message makes the reader throw or hang", () => {
  const pieces = [
    "Content-Type: multipart/report; boundary=x\r\n",
    "Content-Type: message/rfc822\r\n",
    "Content-Type: message/delivery-status\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: quoted-printable\r\n",
    "Action: failed\r\n",
    "\r\n",
    "\n",
    "\n--x",
    "--x\r\n",
    "--x--",
    " ",
    "=",
    ":",
    ";",
    '"',
    "\u0000",
  ];
  const read = (text: string) => parseMailReport(Buffer.from(text, "latin1"));
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 100 }), (parts) => {
      read(parts.join(""));
      read(pieces[0] + parts.join(""));
    }),
    { numRuns: 2_000 },
  );
  // Quadratic work on this much would outlast the test.
  const head = 'Content-Type: multipart/report; boundary="x"\r\n\r\n';
  for (const piece of pieces) {
    const much = piece.repeat(5_000_000 / piece.length);
    for (const text of [
      much,
      head + much,
      `From: MAILER-DAEMON@mail.far.test\r\n\r\n${much}`,
      `${head}--x\r\nContent-Type: message/delivery-status\r\n\r\n${much}\r\n--x\r\nContent-Type: message/rfc822\r\n\r\n${much}`,
    ])
      read(text);
  }
}, 300_000);

test("rows of empty lines are passed over in time, however many there are", () => {
  const status = [
    "Reporting-MTA: dns; mx.test",
    "Action: delayed",
    ...Array(17).fill("Action: relayed"),
    "Action: failed",
  ];
  const lines = [
    "Content-Type: multipart/report; boundary=x",
    "",
    "--x",
    "Content-Type: message/delivery-status",
    "",
    status.join("\n".repeat(200_000)),
    "--x",
    "Content-Type: text/rfc822-headers",
    "",
    "Message-ID: <1@x>",
    "--x--",
  ];
  expect(parseMailReport(Buffer.from(lines.join("\n"))).findings).toHaveLength(1);
}, 5_000);
