import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { parsePostfixLogLine, type RefusedMail } from "../../../../src/channels/email/mail-log/postfix-log-line.ts";

const SENT =
  "to=<ann@far.test>, relay=mx.far.test[192.0.2.1]:25, delay=0.16, delays=0.01/0.01/0.14/0, dsn=2.0.0, status=sent (250 2.0.0 Ok)";
const REFUSED =
  "(host mx.far.test[192.0.2.1] said: 550 5.1.1 <x@far.test>: User unknown (in reply to RCPT TO command))";

function parse(rest: string, program = "postfix/smtp", queueId = "4jWcZx67mFzMCQZ") {
  return parsePostfixLogLine(`Nov 21 02:07:58 mx ${program}[16458]: ${queueId}: ${rest}`);
}

test.each([
  ["the long time of rsyslog", `2026-11-21T03:42:02.527846+00:00 vm postfix/smtp[1]: 4jWcZx67mFzMCQZ: ${SENT}`],
  ["the long time in UTC", `2026-11-21T03:42:02Z vm postfix/smtp[1]: 4jWcZx67mFzMCQZ: ${SENT}`],
  ["a day of one digit", `Nov  1 03:42:02 mail.example.com postfix/smtp[1]: 4jWcZx67mFzMCQZ: ${SENT}`],
  ["a service with a name of its own", `Nov 21 03:42:02 mx postfix/relay/smtp[1]: 4jWcZx67mFzMCQZ: ${SENT}`],
])("a delivery is read with %s", (_what, line) => {
  expect(parsePostfixLogLine(line)).toEqual({
    kind: "delivered",
    instance: "postfix",
    queueId: "4jWcZx67mFzMCQZ",
    recipient: "ann@far.test",
    said: "250 2.0.0 Ok",
  });
});

test("short queue ids and other instances are read", () => {
  expect(parse(SENT, "postfix-out/smtp", "C893B23E2CA")).toMatchObject({
    kind: "delivered",
    instance: "postfix-out",
    queueId: "C893B23E2CA",
  });
});

test("a message is named by its own header, and only by cleanup", () => {
  const rest = "message-id=<0199a-x.acme@example.com>";
  expect(parse(rest, "postfix/cleanup")).toMatchObject({ kind: "named", messageId: "<0199a-x.acme@example.com>" });
  expect(parse(rest, "postfix/smtpd")).toBeNull();
  expect(parse("message-id=<>", "postfix/cleanup")).toMatchObject({ kind: "named", messageId: "<>" });
});

test("a refusal is taken apart: what was said, with which codes, in answer to what", () => {
  expect(
    parse(
      `to=<x@far.test>, relay=mx.far.test[192.0.2.1]:25, conn_use=2, delay=1, dsn=5.1.1, status=bounced ${REFUSED}`,
    ),
  ).toEqual({
    kind: "bounced",
    instance: "postfix",
    queueId: "4jWcZx67mFzMCQZ",
    recipient: "x@far.test",
    enhancedCode: "5.1.1",
    replyCode: 550,
    text: "550 5.1.1 <x@far.test>: User unknown",
    command: "RCPT TO",
  });
});

test("what Postfix itself says has no reply code, and parentheses in it are kept", () => {
  const said = "Host or domain name not found. Name service error for name=far.test type=A: Host not found (really)";
  expect(parse(`to=<x@far.test>, relay=none, delay=0.1, dsn=5.4.4, status=bounced (${said})`)).toMatchObject({
    kind: "bounced",
    enhancedCode: "5.4.4",
    replyCode: null,
    text: said,
    command: null,
  });
});

test.each([
  ['to=<"a b>c, relay=x"@far.test>', '"a b>c, relay=x"@far.test'],
  ['to=<"a\\">b"@far.test>', '"a\\">b"@far.test'],
  ["to=<ü@far.test>", "ü@far.test"],
  ["to=<root@mx>, orig_to=<ann@far.test>", "ann@far.test"],
  ["to=<>", ""],
])("%s is for %s", (to, recipient) => {
  expect(parse(`${to}, relay=none, delay=0, delays=0/0/0/0, dsn=2.0.0, status=sent (250 Ok)`)).toMatchObject({
    kind: "delivered",
    recipient,
  });
});

test.each([
  ["postfix/pipe", "delivered via mail-report service"],
  ["postfix/local", "delivered to command: /usr/bin/procmail"],
  ["postfix/virtual", "delivered to maildir"],
  ["postfix/smtp", "250 2.0.0 from MTA(smtp:[127.0.0.1]:10025): 250 2.0.0 Ok: queued as 4jWcZx67mFzMCQZ"],
])("what %s keeps on this machine (%s) is no delivery", (program, said) => {
  expect(parse(`to=<x@far.test>, relay=here, delay=0, dsn=2.0.0, status=sent (${said})`, program)).toMatchObject({
    kind: "handed_over",
  });
});

test.each([
  [
    "postfix/smtp",
    `to=<x@far.test>, relay=none, delay=5, dsn=4.4.1, status=deferred (connect to mx: refused)`,
    "deferred",
  ],
  ["postfix/smtp", `to=<x@far.test>, relay=none, delay=5, dsn=4.1.1, status=SOFTBOUNCE ${REFUSED}`, "deferred"],
  ["postfix/error", "to=<x@far.test>, relay=none, delay=5, dsn=5.0.0, status=bounced (no route)", "bounced"],
  ["postfix/qmgr", "from=<a@b.test>, status=expired, returned to sender", "expired"],
  ["postfix/qmgr", "from=<a@b.test>, status=force-expired, returned to sender", "expired"],
  ["postfix/qmgr", "removed", "removed"],
  ["postfix/postsuper", "removed", "removed"],
  ["postfix/bounce", "sender non-delivery notification: 4jWcbk4wDVzMCQq", "notified"],
  ["postfix/smtp", "to=<x@far.test>, relay=none, something new", "unreadable"],
  ["postfix/smtp", "to=<x@far.test>, relay=none, delay=5, dsn=2.0.0, status=teleported (where?)", "unreadable"],
])("%s: %s is %s", (program, rest, kind) => {
  expect(parse(rest, program)?.kind).toBe(kind as NonNullable<ReturnType<typeof parse>>["kind"]);
});

test.each([
  ["postfix/qmgr", "from=<a@b.test>, size=719, nrcpt=1 (queue active)"],
  ["postfix/qmgr", "status=deferred (bounce failed)"],
  ["postfix/smtpd", "client=unknown[127.0.0.1]"],
  ["postfix/smtp", "to=<x@far.test>, relay=none, delay=5, dsn=2.1.5, status=deliverable (250 2.1.5 Ok)"],
])("%s: %s says nothing about a message's outcome", (program, rest) => {
  expect(parse(rest, program)).toBeNull();
});

test("every line of a real log that tells an outcome is read, and no other", () => {
  const counts: Record<string, number> = {};
  for (const line of readFileSync(join(import.meta.dir, "postfix.maillog"), "utf8")
    .trimEnd()
    .split("\n")) {
    const kind = parsePostfixLogLine(line)?.kind ?? "nothing";
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  // Counted with grep: status=sent, status=bounced, status=deferred, status=expired, message-id=, removed, notification.
  expect(counts).toEqual({
    delivered: 13,
    bounced: 5,
    deferred: 17,
    expired: 3,
    named: 20,
    removed: 20,
    notified: 8,
    nothing: 88,
  });
});

/** Files of cases: `kind recipient enhanced-code reply-code`, then the line; `#` begins a comment that names the source. */
const CORPUS = join(import.meta.dir, "../corpus/log-lines");

test.each(readdirSync(CORPUS))("each line of %s is read as it is meant", (file) => {
  const lines = readFileSync(join(CORPUS, file), "utf8")
    .trimEnd()
    .split("\n")
    .filter((line) => !line.startsWith("#"));
  expect(lines.length % 2).toBe(0);
  for (let at = 0; at < lines.length; at += 2) {
    const [expected = "", line = ""] = lines.slice(at, at + 2);
    const read = parsePostfixLogLine(line);
    const { recipient, enhancedCode, replyCode } = (read ?? {}) as Partial<RefusedMail>;
    const said = [read?.kind ?? "nothing", recipient, enhancedCode, replyCode].filter(
      (part) => part !== null && part !== undefined,
    );
    expect([said.join(" "), line]).toEqual([expected, line]);
  }
});

test("no text makes the parser throw or hang", () => {
  const pieces = [
    "to=<",
    '"',
    "\\",
    ">",
    ", relay=",
    ", delay=1",
    ", dsn=5.1.1",
    ", status=sent (",
    ")",
    "from=<",
    " removed",
    "\u0000",
    "ü",
  ];
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 200 }), (parts) => {
      parse(parts.join(""));
      parsePostfixLogLine(parts.join(""));
    }),
    { numRuns: 2_000 },
  );
  // Quadratic work on 60 KB would outlast the test.
  for (const piece of [...pieces, "to=a ", "x to=a status=", " a", "a/"]) {
    parse(piece.repeat(60_000 / piece.length));
    parsePostfixLogLine(piece.repeat(60_000 / piece.length));
  }
  parse(`to=<${'"a'.repeat(20_000)}`);
}, 90_000);
