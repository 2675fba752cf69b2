import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { emailContentKind } from "../../../../src/channels/email/content-kind.ts";
import { EmailChannel } from "../../../../src/channels/email/email-channel.ts";
import { keptMail } from "../../../../src/channels/email/mime/kept-mail.ts";
import { startSmtpSandbox } from "../../../../src/channels/email/sandbox/smtp-sandbox.ts";
import type { DeliveryReport } from "../../../../src/domain/jobs/report.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { eventually } from "../../../support/eventually.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";
import { TEST_SELECTOR, verified } from "../../../support/sending-domain.ts";
import { aTenant } from "../../../support/tenants.ts";
import { emailJob, LINKS } from "../email-world.ts";
import { FROM, inBase64, kept, members, mixed } from "./messages.ts";
import { RelayedMail } from "./relayed-mail.ts";

/* Mail by SMTP with content that the API has no members for: it is sent as it came. */

let relayed: RelayedMail;
beforeAll(async () => {
  relayed = await RelayedMail.start();
}, 90_000);
afterAll(() => relayed.stop(), 90_000);

const bytes = (text: string) => Buffer.from(text, "latin1");
const passed = async (text: string) => (await relayed.pass(bytes(text))).toString("latin1");
const TYPED = `${FROM}MIME-Version: 1.0\r\n`;
const SIGNED_PART =
  "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGr\xc3\xbc\xc3\x9fe  \r\n.dot {{name}}\r\n";
const SIGNED = `${TYPED}Message-ID: <s@shop.test>\r\nContent-Type: multipart/signed; boundary=s\r\n\r\nIn MIME.\r\n--s\r\n${SIGNED_PART}\r\n--s\r\nContent-Type: application/pgp-signature\r\n\r\nmade up\r\n--s--\r\n`;
const PDF = `${TYPED}Message-ID: <pdf@shop.test>\r\nSubject: Fax\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n`;

describe("what is sent on", () => {
  test("is a signed part byte for byte, in 8 bits where the mail server takes them", async () => {
    expect(await relayed.submit(bytes(SIGNED))).toStartWith("250");
    const [arrived] = await relayed.deliverAll();
    expect(arrived?.source.toString("latin1")).toContain(SIGNED.slice(SIGNED.indexOf("In MIME.")));
    expect(arrived?.args).toMatchObject({ BODY: "8BITMIME" });
  });

  test("is not sent to a mail server that takes no 8 bits, and the job's error says what to change", async () => {
    const sevenBits = await RelayedMail.start({ hides: ["8BITMIME"] });
    await sevenBits.submit(bytes(SIGNED));
    expect(await sevenBits.deliverAll()).toEqual([]);
    const error =
      "the mail server takes no bytes beyond ASCII (8BITMIME): encode the signed parts of the message before they are signed";
    expect(sevenBits.latest).toMatchObject({ kind: "failed", error });
    // An unsigned part was encoded, with the same content.
    await sevenBits.pass(
      bytes(
        `${TYPED}Content-Type: text/x-own; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\nZ\xfcrich\r\n`,
      ),
    );
    await sevenBits.stop();
  });

  test("keeps its Message-ID, date, recipients and unknown fields, in its own order", async () => {
    const head = `To: Ada <ada@example.com>,\r\n Bob <bob@example.com>\r\nDate: Fri, 27 Nov 2026 10:00:00 +0100\r\nComments: hello\r\nX-A: 1\r\nX-A: 2\r\n`;
    const source = await passed(PDF.replace("Subject:", `${head}Subject:`));
    expect(source).toContain(`${head}Subject: Fax\r\nContent-Type: application/pdf`);
    expect(source).toContain("\r\nMessage-ID: <pdf@shop.test>\r\n");
    expect(source.match(/^(?:message-id|date|mime-version):/gim)).toHaveLength(3);
  });

  test("has our sender and unsubscribe link, and nothing of its way here, of hidden recipients or for mail servers", async () => {
    const hidden =
      "Bcc: eve@example.com\r\nReceived: from x\r\nReturn-Path: <a@b.test>\r\nX-MS-Exchange-A: 1\r\nX-SMTPAPI: {}\r\nX-Waybill-Tag: a=b\r\nList-Unsubscribe: <https://a.test>\r\nSender: eve@bank.test\r\nDKIM-Signature: v=1; b=x\r\n";
    const source = await passed(
      PDF.replace("From: no-reply", `${hidden}From: "Your bank" <no-reply`).replace(
        "platform.test\r\n",
        "platform.test>\r\n",
      ),
    );
    const head = source.slice(0, source.indexOf("\r\n\r\n"));
    expect(head).toContain("From: Shop <no-reply@platform.test>");
    expect(head).toMatch(/^List-Unsubscribe: <https:\/\/send\.test\/u\/.*>\r\nList-Unsubscribe-Post: /);
    expect(head).not.toMatch(/^(?:bcc|received|return-path|x-ms-|x-smtpapi|x-waybill-tag|sender)|bank|a\.test/im);
    // RFC 6376, 4.2: other signers' signatures stay.
    expect(head).toContain("DKIM-Signature: v=1; b=x");
  });

  test("has a date, a Message-ID and a recipient in its head where it came without them", async () => {
    const source = await passed(`${FROM}\r\n`);
    expect(source).toMatch(
      /\r\nTo: ada@example\.com\r\nMessage-ID: <[0-9a-f-]{36}\.acme@platform\.test>\r\nDate: .*\r\n\r\n\r?\n?$/,
    );
  });

  test("has no byte beyond ASCII in its head, and no line over 998 bytes", async () => {
    const long = `X-Long: ${"x".repeat(1_500)}\r\nX-Words: ${"word ".repeat(400)}\r\nTo: J\xf6rg <ada@example.com>, j\xc3\xb6rg@example.com\r\nSubject: Gr\xfc\xdfe\r\nX-B: \xfc\r\n`;
    const source = await passed(
      PDF.replace("Subject: Fax\r\n", long).replace("application/pdf", 'application/pdf; name="Z\xfcrich.pdf"'),
    );
    expect(source).toMatch(/^[\x01-\x7f]*$/);
    expect(Math.max(...source.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
    expect(source).toContain("=?UTF-8?Q?J=C3=B6rg?= <ada@example.com>");
    expect(source).toContain("x".repeat(600));
  });

  test("is a part with NUL, stray line ends or long lines in base64, byte for byte", async () => {
    const odd = `a\0b\rc\nd${"\xff".repeat(1_200)}`;
    const source = await kept(mixed("Content-Type: a/b\r\nContent-Transfer-Encoding: binary\r\n\r\n" + odd));
    const encoded = /base64\r\n\r\n([\s\S]*?)\r\n--b--/.exec(source)?.[1] ?? "";
    expect(Buffer.from(encoded, "base64").toString("latin1")).toBe(odd);
  });

  test("is a message in base64 as a message again, which readers can open", async () => {
    const inner = "From: x@y.test\r\nSubject: inner\r\n\r\nHi\r\n";
    expect(await kept(mixed(inBase64("message/rfc822", inner)))).toContain(
      `Content-Type: message/rfc822\r\n\r\n${inner}`,
    );
  });

  test("is a multipart without a boundary, or with an empty one, as it came", async () => {
    for (const type of ["multipart/mixed", 'multipart/mixed; boundary=""']) {
      const body = "--\r\nContent-Type: text/plain\r\n\r\nHi\r\n----\r\n";
      expect(await kept(`${TYPED}Content-Type: ${type}\r\n\r\n${body}`)).toEndWith(`\r\n\r\n${body}`);
    }
  });

  test("carries a signature that covers all of its body", async () => {
    const domain = "shop.example.test";
    const key = verified(domain).get(domain)?.relay;
    if (!key) throw new Error("no key");
    const from = { address: `a@${domain}`, value: `a@${domain}` };
    const common = {
      from,
      to: from,
      envelopeFrom: from.address,
      dateMs: 0,
      headers: [],
      messageId: "<x@y>",
      isEightBit: true,
    };
    const signed = async (body: string) =>
      (await keptMail({ ...common, bytes: bytes(`Subject: s\r\n\r\n${body}`), signer: { domain, key } })).text;
    const extractBodyHash = (text: string) => /bh=([^;]+);/.exec(text.replace(/\r\n\s+/g, ""))?.[1];
    const relaxed = (body: string) => new Bun.CryptoHasher("sha256").update(bytes(body)).digest("base64");
    expect(extractBodyHash(await signed("Z\xfcrich  \t x \r\n.dot\r\n\r\n \r\n"))).toBe(
      relaxed("Z\xfcrich x\r\n.dot\r\n"),
    );
    expect(extractBodyHash(await signed(""))).toBe(relaxed(""));
    const long = `${"y".repeat(900)} \r\n`.repeat(400);
    expect(extractBodyHash(await signed(long))).toBe(relaxed(long.replaceAll(" \r\n", "\r\n")));
    expect(await signed("Hi\r\n")).toContain(`s=${TEST_SELECTOR}`);
  });
});

describe("a job of such a message", () => {
  test("is screened by what people see of it, and shows that and its size", async () => {
    await relayed.submit(
      bytes(mixed("Content-Type: text/plain\r\n\r\nOne {{.x}}", "Content-Type: text/html\r\n\r\n<b>Two</b>")),
    );
    const [queued] = relayed.front.queue.queued.splice(0);
    const payload = Buffer.from(relayed.front.payloads.stored.get(`acme ${queued?.job.jobId}`) ?? []).toString();
    expect(queued?.job.needsScreening).toBe(true);
    const attachments = [{ filename: "message.eml", content_type: "message/rfc822", content_id: null }];
    expect(await emailContentKind.show(aTenant(), payload)).toMatchObject({
      text: "One {{.x}}",
      html: "<b>Two</b>",
      attachments,
    });
  });

  test("needs the permission for content of one's own, and may have no script", async () => {
    const script = mixed("Content-Type: text/plain\r\n\r\nHi", "Content-Type: text/html\r\n\r\n<script>1</script>");
    expect(await relayed.submit(bytes(script))).toStartWith("554 5.6.0 the inline HTML cannot be sent");
    expect(relayed.front.queue.queued).toHaveLength(0);
  });

  test("is the same job when the message is sent again", async () => {
    const first = await relayed.submit(bytes(PDF));
    expect(await relayed.submit(bytes(PDF))).toBe(first);
    await relayed.deliverAll();
  });

  test("ends as failed, and is not sent without it, if the message is gone", async () => {
    const channel = new EmailChannel({
      ...LINKS,
      smtpUrl: "smtp://127.0.0.1:1",
      defaultFrom: { address: "a@b.test", name: null },
    });
    const job = emailJob({
      to: "ada@example.com",
      text: "",
      kept: { sha256: "0".repeat(64), bytes: 1, isEightBit: false },
    });
    const error = "the message could not be sent: its content is gone";
    expect(await channel.deliver(job, aTenant(), new AbortController().signal)).toEqual({ kind: "failed", error });
    channel.close();
  });

  test("is known to the sandbox, although the Message-ID is another's", async () => {
    const reports: DeliveryReport[] = [];
    const onReport = (report: DeliveryReport) => void reports.push(report);
    const sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport });
    const body = bytes("Message-ID: <own@shop.test>\r\nTo: x@example.com\r\n\r\nHi\r\n");
    const sha256 = new Bun.CryptoHasher("sha256").update(body).digest("hex");
    const contents = { get: async () => body };
    const channel = new EmailChannel({
      ...LINKS,
      smtpUrl: sandbox.url,
      defaultFrom: { address: "a@b.test", name: null },
      contents,
    });
    const job = emailJob({
      to: "ada@bounce.test",
      text: "Hi",
      kept: { sha256, bytes: body.length, isEightBit: false },
    });
    await channel.deliver(job, aTenant(), new AbortController().signal);
    await eventually("the sandbox reports", () => reports.length === 1);
    expect(reports[0]).toMatchObject({ jobId: job.jobId, tenantId: "acme", type: "bounced" });
    channel.close();
    await sandbox.stop();
  });
});

describe("placeholders in mail by SMTP", () => {
  const both = (head: string) =>
    `${FROM}${head}Subject: {{.name}} {{x}}\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\n{{ .name }} {{{.name}}\r\n--b\r\nContent-Type: text/html\r\n\r\n<p title="{{.name}}">{{nom}}</p>\r\n--b--\r\n`;

  test("are text, unless X-Waybill-Data is there", async () => {
    const source = await passed(both(""));
    for (const text of ["Subject: {{.name}} {{x}}", "{{ .name }} {{{.name}}", '<p title=3D"{{.name}}">{{nom}}</p>'])
      expect(source).toContain(text);
    const filled = await passed(both('X-Waybill-Data: {"name":"Ada"}\r\n'));
    for (const text of ["Subject: Ada {{x}}", "Ada {Ada", '<p title=3D"Ada">']) expect(filled).toContain(text);
  });

  test("cannot be filled where the message is sent as it came: the reply says which header to leave out", async () => {
    const calendar = mixed(
      "Content-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\n\r\nHi\r\n--c\r\nContent-Type: text/calendar\r\n\r\nX\r\n--c--",
    );
    const reply = await relayed.submit(bytes(`X-Waybill-Data: {}\r\n${calendar}`));
    expect(reply).toStartWith(
      "554 5.6.0 a message with x-waybill-template and x-waybill-data can have a text, HTML and files",
    );
  });

  test("cost no more than the text has braces, and many are carried as they came", async () => {
    expect(await kept(`${FROM}\r\n${"{{.a}}\r\n".repeat(2_000)}`)).toContain("{{.a}}\r\n{{.a}}");
    expect(Object.keys(await members(`${FROM}\r\n{{.a}}\r\n`))).toEqual(["to_address", "text", "data"]);
  });
});

test("files keep their bytes and parameters, whatever they are encoded in", async () => {
  const file = (encoding: string, body: string) =>
    mixed(
      "Content-Type: text/plain\r\n\r\nHi",
      `Content-Type: text/csv; charset=utf-8; header=present\r\nContent-Disposition: attachment; filename=a.csv\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}`,
    );
  for (const [encoding, body, content] of [
    ["7bit", "a,b\r\nc", "a,b\r\nc"],
    ["quoted-printable", "a=3Db=\r\n\r\nc=0A", "a=b\r\nc\n"],
    ["base64", "YQ\r\n0K", "a\r\n"],
  ] as const) {
    const attachments = [
      { filename: "a.csv", content: btoa(content), content_type: "text/csv; charset=utf-8; header=present" },
    ];
    expect(await members(file(encoding, body))).toMatchObject({ attachments });
  }
});
