import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { Front } from "../../../http/support/front.ts";
import { eventually } from "../../../support/eventually.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import type { SmtpClient } from "./smtp-client.ts";
import { type Listening, PLATFORM_SENDER, SubmissionWorld } from "./submission-world.ts";

let front: Front;
let world: SubmissionWorld;
let at: Listening;
const clock = new ManualClock();
beforeAll(async () => {
  front = await Front.start();
  world = new SubmissionWorld(front);
  at = await world.listen({ clock });
});
afterAll(async () => {
  await world.stop();
  await front.stop();
}, 90_000);
beforeEach(() => {
  front.queue.queued.length = 0;
});
afterEach(() => world.hangUp());

const FROM = `From: ${PLATFORM_SENDER}`;
const MIB = 1024 * 1024;

/** The reply to a message, sent as it is, with its end after it. */
async function submitted(client: SmtpClient, message: string): Promise<string> {
  await client.begin("ada@example.com");
  client.write(message);
  return client.say("", ".");
}

test("what comes in clear text behind STARTTLS is not run inside of TLS", async () => {
  const client = await world.dial(at);
  await client.secure("NONSENSE\r\nNONSENSE\r\n");
  expect(await client.say("NOOP")).toBe("250 OK");
});

test("only a dot between two CRLF ends a message: no second one can be hidden in it", async () => {
  const client = await world.loggedIn(at, front.apiKey);
  const hidden = `MAIL FROM:<x@shop.test>\r\nRCPT TO:<eve@example.com>\r\nDATA\r\n${FROM}\r\n\r\nHidden`;
  for (const end of ["\n.\n", "\n.\r\n", "\r\n.\n", "\r\n.\r", "\r.\r\n", "\r\n..\r\n"]) {
    front.queue.queued.length = 0;
    expect(await submitted(client, `${FROM}\r\n\r\nHi${end}${hidden}`)).toStartWith("250 2.0.0");
    expect(await client.say("NOOP")).toBe("250 OK");
    expect(front.queue.queued.map(({ job }) => job.recipient)).toEqual(["ada@example.com"]);
    expect(front.queue.queued[0]?.job.payload).toContain("Hidden");
  }
});

test("commands may be sent without waiting for their replies", async () => {
  const client = await world.loggedIn(at, front.apiKey);
  client.write("MAIL FROM:<a@shop.test>\r\nRCPT TO:<ada@example.com>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n");
  const replies = [await client.reply(), await client.reply(), await client.reply(), await client.reply()];
  expect(replies.map((reply) => reply.slice(0, 3))).toEqual(["250", "250", "250", "354"]);
  expect(await client.say(FROM, "", "Hi", ".", "QUIT")).toStartWith("250 2.0.0");
  expect(await client.reply()).toStartWith("221");
});

test("browsers, impatient clients, endless lines and floods of commands are cut off", async () => {
  const browser = await world.dial(at);
  expect(await browser.say("POST / HTTP/1.1")).toStartWith("421");
  // The greeting comes after a tenth of a second: if the machine stalls for that long, no client is too early.
  const isCutOff = async () => (await world.silent(at).say("EHLO client.test")).startsWith("421");
  await eventually("an impatient one is cut off", isCutOff);
  const endless = await world.dial(at);
  endless.write("x".repeat(20_000));
  expect(await endless.reply()).toStartWith("421");
  const stranger = await world.dial(at);
  await stranger.say("EHLO client.test");
  for (let n = 0; n < 8; n += 1) expect(await stranger.say("NOOP")).toStartWith("250");
  expect(await stranger.say("NOOP")).toStartWith("421");
  const tenant = await world.loggedIn(at, front.apiKey);
  tenant.write("NOOP\r\n".repeat(400));
  let last = "";
  for (let reply = await tenant.reply(); reply !== ""; reply = await tenant.reply()) last = reply;
  expect(last).toBe("421 4.7.0 too many commands without a message");
});

test("who does not log in, or does not end a message, is hung up on", async () => {
  const stranger = await world.dial(at);
  const tenant = await world.loggedIn(at, front.apiKey);
  const sending = await world.loggedIn(at, front.apiKey);
  await sending.begin("ada@example.com");
  clock.forward(31_000);
  expect(await stranger.reply()).toBe("421 4.4.2 you took too long");
  expect(await tenant.say("NOOP")).toStartWith("250");
  sending.write(`${FROM}\r\n`);
  clock.forward(5 * 60_000);
  expect(await sending.reply()).toBe("421 4.4.2 you took too long");
  expect(await tenant.say("NOOP")).toStartWith("250");
});

test("connections that nobody logs in on keep nobody out, as behind a balancer where all have one address", async () => {
  const own = await world.listen();
  const oldest = await world.dial(own);
  const strangers = await Promise.all(Array.from({ length: 31 }, () => world.dial(own)));
  const newcomer = await world.loggedIn(own, front.apiKey);
  expect(await oldest.reply()).toBe("421 4.3.2 others wait: log in sooner");
  expect(await strangers[0]?.logIn(front.apiKey)).toStartWith("235");
  expect(await newcomer.say("NOOP")).toStartWith("250");
});

test("connections that nobody logs in on, and that their clients do not close, keep nobody out", async () => {
  const own = await world.listen();
  // More than the limit of open sockets, including those that are closing.
  for (let i = 0; i < 20; i += 1) {
    const dials = Array.from({ length: 30 }, () => world.dial(own, { closes: false }));
    for (const client of await Promise.all(dials)) expect(client.greeting).toStartWith("220");
  }
  expect(await (await world.loggedIn(own, front.apiKey)).say("NOOP")).toStartWith("250");
});

test("a message that is too large is refused at its size or at its end, and the connection goes on", async () => {
  const client = await world.loggedIn(at, front.apiKey);
  expect(await client.say(`MAIL FROM:<a@shop.test> SIZE=${14 * MIB + 1}`)).toStartWith("552");
  expect(await submitted(client, `${FROM}\r\n\r\n${"x".repeat(14 * MIB)}`)).toStartWith(
    "552 5.3.4 the message is larger",
  );
  expect(await submitted(client, `${FROM}\r\n\r\nHi`)).toStartWith("250");
});

test("a message that goes on for twice that, or has little but dots that are taken away, is hung up on", async () => {
  const endless = await world.loggedIn(at, front.apiKey);
  await endless.begin("ada@example.com");
  endless.write("x".repeat(29 * MIB));
  expect(await endless.reply()).toStartWith("552 5.3.4 the message is larger");
  await endless.ended();
  const dotted = await world.loggedIn(at, front.apiKey);
  await dotted.begin("ada@example.com");
  dotted.write(`${FROM}\r\n\r\n${"\n..".repeat(12_000)}`);
  expect(await dotted.reply()).toStartWith("554 5.6.0 the message has more lines that begin with a dot");
  await dotted.ended();
  // A style sheet as text.
  const styles = await world.loggedIn(at, front.apiKey);
  const rules = "..button { color: #123456; }\r\n".repeat(9_000);
  expect(await submitted(styles, `${FROM}\r\n\r\n${rules}`)).toStartWith("250");
});

test("messages of one tenant on their way in take its share of the memory and no more", async () => {
  const large = `From: eve@example.com\r\n\r\n${`${"x".repeat(998)}\r\n`.repeat(13 * 1024)}`;
  const [first, second, third] = [
    await world.loggedIn(at, front.apiKey),
    await world.loggedIn(at, front.apiKey),
    await world.loggedIn(at, front.apiKey),
  ];
  for (const client of [first, second]) {
    await client.begin("ada@example.com");
    client.write(large);
  }
  expect(await submitted(third, large)).toStartWith("452 4.3.1 your large requests under way fill your share");
  // A small one fits, and so does the large one once another is gone.
  expect(await submitted(third, `${FROM}\r\n\r\nHi`)).toStartWith("250");
  first.close();
  const reply = await eventually("its room is free", async () => {
    const said = await submitted(third, large);
    return said.startsWith("452") ? null : said;
  });
  expect(reply).toStartWith("550 5.7.1 eve@example.com is not a sender of yours");
});

test("messages that would cost too much to read, or cannot be read, are refused", async () => {
  const client = await world.loggedIn(at, front.apiKey);
  const typed = (type: string, body: string) => `${FROM}\r\nContent-Type: ${type}\r\n\r\n${body}`;
  const nested = Array.from(
    { length: 30 },
    (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary=b${n + 1}\r\n\r\n`,
  );
  const cases: readonly (readonly [string, string])[] = [
    [`${FROM}\r\n\r\n${"\n".repeat(400_000)}`, "554 5.6.0 the message has more lines or parts"],
    [
      typed("multipart/mixed; boundary=b", "--b\r\n\r\n".repeat(20_000)),
      "554 5.6.0 the message has more lines or parts",
    ],
    [typed("multipart/mixed; boundary=b0", nested.join("")), "554 5.6.0 the message could not be read"],
    [`${FROM}\r\nX-Long: ${"x".repeat(300_000)}\r\n\r\nHi`, "554 5.6.0 the message could not be read"],
    [`${FROM}${", a@b.test".repeat(4_000)}\r\n\r\nHi`, "550 5.7.1 the message must have one address in From"],
    ["\r\nHi", "550 5.7.1 the message must have one address in From"],
    [`${FROM}\r\n${FROM}\r\n\r\nHi`, "550 5.7.1 the message must have one address in From"],
    [`${FROM}, eve@example.com\r\n\r\nHi`, "550 5.7.1 the message must have one address in From"],
    [`From: ${PLATFORM_SENDER}@eve.test\r\n\r\nHi`, "550 5.7.1"],
  ];
  for (const [message, said] of cases) expect(await submitted(client, message)).toStartWith(said);
  expect(front.queue.queued).toHaveLength(0);
});

test("a reply is one line of at most 512 printable characters, whatever it quotes", async () => {
  const client = await world.loggedIn(at, front.apiKey);
  const reply = await submitted(client, `From: "Zoë"\r\n\t<${"é".repeat(400)}@bücher.test>\r\n\r\nHi`);
  expect(reply).toMatch(/^550 5\.7\.1 [\x20-\x7e]{1,500}$/);
});

test("a port that is taken is not shared", async () => {
  const second = world.listen({}, at.port);
  await expect(second).rejects.toThrow();
});

test("a stop finishes the message under way, and tells everybody else", async () => {
  const own = await world.listen();
  const [idle, sending] = [await world.loggedIn(own, front.apiKey), await world.loggedIn(own, front.apiKey)];
  await sending.begin("ada@example.com");
  const stopped = own.server.stop();
  expect(await idle.reply()).toBe("421 4.3.2 the service is stopping: try again");
  expect(await sending.say(FROM, "", "Hi", ".")).toStartWith("250 2.0.0 queued as ");
  expect(await sending.reply()).toBe("421 4.3.2 the service is stopping: try again");
  sending.close();
  idle.close();
  await stopped;
  expect(front.queue.queued).toHaveLength(1);
});
