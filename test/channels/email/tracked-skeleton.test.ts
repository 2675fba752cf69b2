import { expect, test } from "bun:test";
import fc from "fast-check";
import * as nodemailers from "nodemailer/lib/qp";
import { Template } from "../../../src/channels/email/content/template.ts";
import { trackedHtml } from "../../../src/channels/email/content/tracked-html.ts";
import { trackedSkeleton } from "../../../src/channels/email/content/tracked-skeleton.ts";
import { encodedText, withCrlf } from "../../../src/channels/email/mime/body-encoding.ts";
import { quotedPrintable } from "../../../src/channels/email/mime/quoted-printable.ts";

// biome-ignore format: a list of pieces
const PIECE = fc.constantFrom(
  ..."<>\"'&= /!-aé😀\n\t.{}", '<a href="', "<a href='", "<a ", "href=", "https://x.test/?a=1&amp;b=", "</a>", "<p>", "</p>",
  "<script>", "</script", "<style>", "</style>", "<!--", "-->", "{{.a}}", "{{.b}}", "{{.c}}", "</body>", "data-no-track",
  "Hello ", "x".repeat(70), "word ".repeat(60), "\r\n", "\n", "<title>", "</title>", "<![CDATA[", "&am", "https://",
);
// biome-ignore format: a list of values
const VALUE = fc.oneof(
  fc.constantFrom(
    "", " ", "a", "br", "script", "/script ", "!--", "--", "x=y", "https://v.test/?q=1&r='", "\n", "a\nb ", " end", "é", "日本",
    "😀", "\ud83d", "p;", "</p>", "\r", "a href=https://evil.test ", ".", "=", "lt",
  ),
  fc.string(),
);
const TRACKING = {
  pixel: "https://send.test/o.gif",
  trackedUrl: (url: string) => `https://send.test/c/${Buffer.from(url).toString("base64url")}`,
};
const RUNS = { numRuns: 5_000 };
const TIMEOUT_MS = 60_000;

function decoded(body: string): string {
  const bytes = body
    .replaceAll("=\r\n", "")
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number(`0x${hex}`)));
  return Buffer.from(bytes, "latin1").toString();
}

test(
  "a template that was made ready once says what the filled template says, tracked, whatever it and its values are",
  () => {
    let ready = 0;
    fc.assert(
      fc.property(fc.array(PIECE, { maxLength: 30 }), fc.record({ a: VALUE, b: VALUE, c: VALUE }), (pieces, data) => {
        const template = Template.parse(pieces.join(""));
        const values = template.values(data, "html", 1e6);
        const skeleton = trackedSkeleton(template);
        if (skeleton === null) return;
        ready += 1;
        const expected = trackedHtml(template.filled(values), TRACKING);
        const { encoding, body } = skeleton.body.encode(skeleton.fill(values, TRACKING));
        const whole = encodedText(expected);
        expect(encoding).toBe(whole.encoding);
        if (encoding !== "quoted-printable") return expect(body).toBe(whole.body);
        expect(decoded(body)).toBe(withCrlf(expected).toWellFormed());
        // RFC 2045, 6.7, (3) and (5).
        for (const line of body.split("\r\n")) expect(line).toMatch(/^(?:.{0,75}[^ \t]|)$/);
      }),
      RUNS,
    );
    // Most templates can be; the others are parsed anew for each message.
    expect(ready).toBeGreaterThan(RUNS.numRuns / 2);
  },
  TIMEOUT_MS,
);

test("a template in which a value could be an attribute is not made ready, also if its last tag has no end", () => {
  for (const html of ["<a {{.a}}>x", "<a {{.a}}></p x", "<a {{.a}}>x</p ", "<a {{.a}}></script<a "]) {
    expect(trackedSkeleton(Template.parse(html))).toBeNull();
  }
});

test(
  "quoted-printable breaks its lines where nodemailer breaks them",
  () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(PIECE, fc.string()), { maxLength: 60 }), (pieces) => {
        const text = withCrlf(pieces.join("")).toWellFormed();
        expect(quotedPrintable(text)).toBe(nodemailers.wrap(nodemailers.encode(text), 76));
      }),
      RUNS,
    );
  },
  TIMEOUT_MS,
);

test("the address that a value makes is judged in time, however long it is", () => {
  const template = Template.parse('<a href="{{.url}}">x</a>');
  const skeleton = trackedSkeleton(template);
  for (const url of [`http://x${" ".repeat(500_000)}y`, `http://a${"\u0301\u0323".repeat(250_000)}`]) {
    const tracked = skeleton?.fill(template.values({ url }, "html", 1e6), TRACKING) ?? [];
    expect(tracked.some((text) => text.startsWith("https://send.test/c/"))).toBe(false);
  }
}, 5_000);

test("half a megabyte in one line is encoded in time", () => {
  expect(decoded(quotedPrintable("aa\u4e00".repeat(170_000)))).toBe("aa\u4e00".repeat(170_000));
}, 5_000);
