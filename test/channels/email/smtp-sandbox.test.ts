import { afterEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import nodemailer from "nodemailer";
import { formatMessageId } from "../../../src/channels/email/message-id.ts";
import {
  type SmtpSandbox,
  type SmtpSandboxOptions,
  startSmtpSandbox,
} from "../../../src/channels/email/sandbox/smtp-sandbox.ts";
import type { DeliveryReport } from "../../../src/domain/jobs/report.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const JOB = { jobId: "0197f3a0-1111-7222-8333-444455556666", tenantId: "acme" };
const MESSAGE_ID = formatMessageId(JOB.jobId, JOB.tenantId, "acme.test");

let running: SmtpSandbox[] = [];
let clients: Socket[] = [];
let reports: DeliveryReport[] = [];

async function start(options: Partial<SmtpSandboxOptions> = {}): Promise<SmtpSandbox> {
  const onReport = (report: DeliveryReport) => reports.push(report);
  const sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport, ...options });
  running.push(sandbox);
  return sandbox;
}

afterEach(async () => {
  for (const client of clients) client.destroy();
  await Promise.all(running.map((sandbox) => sandbox.stop()));
  [running, clients, reports] = [[], [], []];
});

/** A client that sends lines and waits for the reply to each. */
async function dial(url: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  clients.push(socket);
  let heard = "";
  let isOpen = true;
  socket.on("data", (chunk) => {
    heard += chunk.toString();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    isOpen = false;
  });
  /** Discards earlier replies, sends the lines, and returns the next reply, or "" when the line drops. */
  const say = async (...lines: string[]) => {
    heard = "";
    socket.write(`${lines.join("\r\n")}\r\n`);
    await eventually(`a reply to ${lines[0]?.slice(0, 30)}`, () => !isOpen || /^\d{3} .*\r\n/m.test(heard));
    return heard.trim();
  };
  await eventually("a greeting", () => heard.includes("\r\n"));
  await say("EHLO test");
  return { socket, say };
}

async function hand(url: string, to: string, source: string): Promise<string> {
  const { say } = await dial(url);
  await say("MAIL FROM:<shop@acme.test>");
  const answer = await say(`RCPT TO:<${to}>`);
  if (!answer.startsWith("250")) return answer;
  await say("DATA");
  return say(source, ".");
}

const letter = (subject: string, messageId = MESSAGE_ID) => `Subject: ${subject}\r\nMessage-ID: ${messageId}\r\n\r\nHi`;

test("mail of ours is accepted with a queue id, kept as it came, and reported as delivered", async () => {
  const sandbox = await start();
  expect(await hand(sandbox.url, "Ana@example.test", letter("Hello"))).toMatch(/^250 2\.0\.0 Ok: queued as [0-9A-Z]+$/);
  const [message] = sandbox.inbox.messages("ana@EXAMPLE.test", 10);
  expect(message).toMatchObject({ channel: "email", from: "shop@acme.test", to: "Ana@example.test", subject: "Hello" });
  expect(message?.source).toBe(`${letter("Hello")}\r\n`);
  expect(message?.received_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  await eventually("a report", () => reports.length > 0);
  expect(reports).toEqual([{ ...JOB, type: "delivered", result: {}, suppressRecipient: null }]);
});

test("mail that is not of ours is kept and reported to nobody", async () => {
  const sandbox = await start();
  await hand(sandbox.url, "ana@example.test", letter("x", "<somebody@else.test>"));
  await hand(sandbox.url, "bob@bounce.test", "no headers at all");
  await hand(sandbox.url, "ana@example.test", letter("y"));
  await eventually("a report", () => reports.length > 0);
  expect(reports).toHaveLength(1);
  expect(sandbox.inbox.messages(null, 10)).toHaveLength(3);
});

test("a Message-ID is found where it is folded, and not in the body", async () => {
  const sandbox = await start();
  await hand(sandbox.url, "ana@example.test", `Subject: x\r\nmessage-id:\r\n ${MESSAGE_ID}\r\n\r\nHi`);
  await hand(sandbox.url, "ana@example.test", `Subject: x\r\n\r\nMessage-ID: ${MESSAGE_ID}`);
  await hand(sandbox.url, "bob@bounce.test", letter("last"));
  await eventually("the last report", () => reports.some(({ type }) => type === "bounced"));
  expect(reports.map(({ type }) => type)).toEqual(["delivered", "bounced"]);
});

test("@slow.test is accepted after ten seconds and not before", async () => {
  const clock = new VirtualClock();
  const sandbox = await start({ clock });
  let answer = "";
  const slow = hand(sandbox.url, "x@slow.test", letter("slow")).then((said) => {
    answer = said;
  });
  // The answer to mail that came later shows that the slow one is being held without delaying others.
  await hand(sandbox.url, "ana@example.test", letter("quick"));
  await clock.advance(9_999);
  expect([answer, sandbox.inbox.messages("x@slow.test", 1)]).toEqual(["", []]);
  await eventually("the slow mail", async () => {
    await clock.advance(10_000);
    return sandbox.inbox.messages("x@slow.test", 1).length > 0;
  });
  await slow;
  expect(answer).toStartWith("250");
});

test("a stop does not wait for slow mail, nor for clients that stay, and reports nothing more", async () => {
  const sandbox = await start();
  const slow = hand(sandbox.url, "x@slow.test", letter("slow"));
  const idle = await dial(sandbox.url);
  await hand(sandbox.url, "ana@example.test", letter("quick"));
  const before = reports.length;
  const closed = new Promise((resolve) => idle.socket.once("close", resolve));
  await Promise.all([sandbox.stop(), sandbox.stop(), closed]);
  expect(await slow).toBe("");
  expect(reports.length).toBe(before);
  await expect(
    new Promise((resolve, reject) =>
      connect(Number(new URL(sandbox.url).port), "127.0.0.1", () => resolve(null)).on("error", reject),
    ),
  ).rejects.toThrow();
});

test("the newest messages are kept, within a number and a size", async () => {
  const few = await start({ messagesMax: 3 });
  for (const subject of ["1", "2", "3", "4", "5", "6", "7"]) await hand(few.url, "ana@example.test", letter(subject));
  expect(few.inbox.messages(null, 10).map(({ subject }) => subject)).toEqual(["7", "6", "5"]);
  expect(few.inbox.messages("ana@example.test", 2).map(({ subject }) => subject)).toEqual(["7", "6"]);
  const small = await start({ bytesMax: 5_000 });
  for (const subject of ["1", "2", "3"])
    await hand(small.url, "ana@example.test", `Subject: ${subject}\r\n\r\n${"x\r\n".repeat(600)}`);
  expect(small.inbox.messages(null, 10).map(({ subject }) => subject)).toEqual(["3", "2"]);
  await hand(small.url, "ana@example.test", `Subject: 4\r\n\r\n${"x\r\n".repeat(6_000)}`);
  expect(small.inbox.messages(null, 10)).toEqual([]);
});

test("a message over 20 MiB is refused and not kept", async () => {
  const sandbox = await start();
  const line = `${"x".repeat(998)}\r\n`;
  expect(await hand(sandbox.url, "ana@example.test", letter("big") + line.repeat(21_000))).toStartWith("552 ");
  expect(sandbox.inbox.messages(null, 1)).toEqual([]);
});

test("deferrals are counted by Message-ID, or by envelope where there is none", async () => {
  const sandbox = await start();
  const tries = async (source: string, to = "x@defer.test") => {
    const codes: string[] = [];
    for (let n = 0; n < 4; n += 1) codes.push((await hand(sandbox.url, to, source)).slice(0, 3));
    return codes;
  };
  expect(await tries(letter("x"))).toEqual(["451", "451", "250", "451"]);
  expect(await tries("no headers", "Y@DEFER.test")).toEqual(["451", "451", "250", "451"]);
});

test.each([
  ["plain", "Hello"],
  ["quoted-printable", "Grüße, 你好 😀 and more than fits into one encoded word of RFC 2047"],
  ["quotes", 'a "b" =?c? d_e'],
])("a subject is shown as it was written (%s)", async (_, subject) => {
  const sandbox = await start();
  for (const textEncoding of ["Q", "B"] as const) {
    const mailer = nodemailer.createTransport(sandbox.url);
    await mailer.sendMail({ from: "a@acme.test", to: "ana@example.test", subject, text: "x", textEncoding });
    expect(sandbox.inbox.messages(null, 1)[0]?.subject).toBe(subject);
  }
});

test("a client that leaves in the middle of a message leaves nothing behind", async () => {
  const sandbox = await start();
  for (const to of ["ana@example.test", "x@slow.test"]) {
    const { socket, say } = await dial(sandbox.url);
    await say("MAIL FROM:<shop@acme.test>");
    await say(`RCPT TO:<${to}>`);
    await say("DATA");
    socket.write("Subject: half a mess");
    socket.destroy();
  }
  await hand(sandbox.url, "bob@example.test", letter("whole"));
  expect(sandbox.inbox.messages(null, 10).map(({ subject }) => subject)).toEqual(["whole"]);
});

test("a second recipient has the same message and a report of its own", async () => {
  const sandbox = await start();
  const { say } = await dial(sandbox.url);
  await say("MAIL FROM:<>");
  await say("RCPT TO:<ana@example.test>");
  await say("RCPT TO:<bob@bounce.test>");
  await say("DATA");
  expect(await say(letter("both"), ".")).toStartWith("250");
  await eventually("two reports", () => reports.length === 2);
  expect(reports.map(({ type }) => type)).toEqual(["delivered", "bounced"]);
  expect(sandbox.inbox.messages(null, 10).map(({ from, to }) => [from, to])).toEqual([
    ["", "bob@bounce.test"],
    ["", "ana@example.test"],
  ]);
});

test("a subject in an unknown charset stays as it came", async () => {
  const sandbox = await start();
  await hand(sandbox.url, "ana@example.test", letter("=?x-none?Q?a?="));
  expect(sandbox.inbox.messages(null, 1)[0]?.subject).toBe("=?x-none?Q?a?=");
});
