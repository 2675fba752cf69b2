import { afterEach, describe, expect, test } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import { SMTPServer } from "smtp-server";
import type { MailMessage } from "../../../src/channels/email/mime/mail-message.ts";
import { RelayPool } from "../../../src/channels/email/smtp/relay-pool.ts";
import { RelayRoute } from "../../../src/channels/email/smtp/relay-route.ts";
import { ReplyReader } from "../../../src/channels/email/smtp/reply-reader.ts";
import { type SmtpFailure, smtpOutcome, toSmtpFailure } from "../../../src/channels/email/smtp/smtp-replies.ts";
import { SmtpError, type SmtpPlace, SmtpSession } from "../../../src/channels/email/smtp/smtp-session.ts";
import { eventually } from "../../support/eventually.ts";
import { type Script, startScriptedSmtp } from "../../support/scripted-smtp.ts";
import { inEachStep } from "./email-world.ts";

/* One message's way over a connection, against servers with rare behaviour, over real sockets. */

const NEVER = new AbortController().signal;
const SHORT = { turnMs: 5_000, connectMs: 2_000, readyMs: 4_000, ...inEachStep(800), idleMs: 10_000 };
const MAIL: MailMessage = { from: "b@shop.test", to: "ana@example.test", text: "Subject: s\r\n\r\nHello\r\n" };
const PIPELINING = "250-here\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 PIPELINING\r\n";
const LONE = "250 here\r\n";

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const stop of open.splice(0).reverse()) await stop();
});

/** How a server handles the bytes received so far on a connection: returns the number that it has consumed. */
type Manners = (text: string, socket: Socket, nth: number) => number;

interface RawServer {
  readonly port: number;
  readonly connections: number;
}

async function aServer(manners: Manners, greeting = "220 here\r\n"): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const nth = sockets.size;
    let text = "";
    socket.on("error", () => {});
    socket.write(greeting);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      text = text.slice(manners(text, socket, nth));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    // A server that listens on TCP has an address of this form.
    port: (server.address() as AddressInfo).port,
    get connections() {
      return sockets.size;
    },
  };
}

/** A server that accepts all input, and answers the command with endless reply lines. */
async function aDrippingServer(command: "RSET" | "QUIT"): Promise<RawServer> {
  return aServer((text, socket) => {
    if (text.startsWith("EHLO")) socket.write(LONE);
    else if (text.startsWith(command)) {
      const drip = setInterval(() => socket.write("250-a moment\r\n"), SHORT.socketMs / 20);
      socket.on("close", () => clearInterval(drip));
    }
    return text.length;
  });
}

/** Commands that a server answers by itself: everything but the message's own. */
function manners(ehlo: string, onJobs: Manners): Manners {
  return (text, socket, nth) => {
    const [, command = ""] = /^(EHLO|RSET|QUIT)[^\r]*\r\n/.exec(text) ?? [];
    if (command === "") return onJobs(text, socket, nth);
    socket.write(command === "EHLO" ? ehlo : "250 ok\r\n");
    return text.indexOf("\r\n") + 2;
  };
}

const GROUP = "MAIL FROM:<b@shop.test> SIZE=21\r\nRCPT TO:<ana@example.test>\r\nDATA\r\n";
const WIRE = `${MAIL.text}.\r\n`;

function buildPlace(port: number, host = "127.0.0.1"): SmtpPlace {
  return { host, address: "127.0.0.1", port, secure: false, user: "", password: "", ehloName: "send.test" };
}

async function aSession(port: number, place = buildPlace(port)): Promise<SmtpSession> {
  const session = new SmtpSession(place, SHORT, () => {});
  open.push(() => session.close());
  await session.open(NEVER);
  return session;
}

function aPool(port: number): RelayPool {
  const pool = new RelayPool({
    server: buildPlace(port),
    route: new RelayRoute("127.0.0.1", null, 1_000),
    timeouts: SHORT,
    ehloName: "send.test",
    connectionsMax: 1,
    unprovenMax: 1,
    onOpen() {},
    onEnd() {},
  });
  open.push(() => pool.close());
  return pool;
}

async function failureIn(sending: Promise<unknown>): Promise<SmtpFailure> {
  try {
    await sending;
  } catch (error) {
    if (error instanceof SmtpError) return error.failure;
    throw error;
  }
  throw new Error("the message was taken");
}

describe("where commands may be sent together", () => {
  test("they are sent as one, then the message as one, and nothing of the message before the server listens", async () => {
    const pieces: string[] = [];
    const { port } = await aServer(
      manners(PIPELINING, (text, socket) => {
        pieces.push(text);
        socket.write(text.startsWith("MAIL") ? "250 ok\r\n250 ok\r\n354 go\r\n" : "250 queued as ABC\r\n");
        return text.length;
      }),
    );
    const session = await aSession(port);
    expect(await session.send(MAIL, NEVER)).toBe("250 queued as ABC");
    expect(await session.send(MAIL, NEVER)).toBe("250 queued as ABC");
    expect(pieces).toEqual([GROUP, WIRE, GROUP, WIRE]);
  });

  test("replies may come in any pieces, of several lines each", async () => {
    const replies = "250-2.1.0 one\r\n250 2.1.0 two\r\n250-a\r\n250-b\r\n250 c\r\n354 go\r\n";
    const last = "250-2.0.0 gr\u00fc\u00dfe\r\n250 2.0.0 queued as ABC\r\n";
    const dribble = async (socket: Socket, text: string) => {
      for (const octet of Buffer.from(text)) {
        socket.write(Uint8Array.of(octet));
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const { port } = await aServer(
      manners(PIPELINING, (text, socket) => {
        if (text !== GROUP && text !== WIRE) return 0;
        void dribble(socket, text === GROUP ? replies : last);
        return text.length;
      }),
    );
    expect(await (await aSession(port)).send(MAIL, NEVER)).toBe("250-2.0.0 grüße\n250 2.0.0 queued as ABC");
  });
});

test("a server is greeted by the name that is set, and its refusal of it is kept in its own words", async () => {
  const greetings: string[] = [];
  const { port } = await aServer((text, socket) => {
    greetings.push(text);
    socket.end("421 4.7.0 Try again later, closing connection. (EHLO)\r\n");
    return text.length;
  });
  const { failure } = await aSession(port).then(
    () => expect.unreachable("the server refuses"),
    (error: SmtpError) => error,
  );
  expect(greetings).toEqual(["EHLO send.test\r\n"]);
  expect(smtpOutcome(failure, { own: false, confidential: [] })).toEqual({
    kind: "away",
    why: "the mail server refused the connection: 421 4.7.0 Try again later, closing connection. (EHLO)",
  });
});

test("where commands may not be sent together, each waits for its reply", async () => {
  const lines: string[] = [];
  const { port } = await aServer(
    manners(LONE, (text, socket) => {
      lines.push(text);
      socket.write(text === "DATA\r\n" ? "354 go\r\n" : "250 ok\r\n");
      return text.length;
    }),
  );
  await (await aSession(port)).send(MAIL, NEVER);
  expect(lines).toEqual(["MAIL FROM:<b@shop.test>\r\n", "RCPT TO:<ana@example.test>\r\n", "DATA\r\n", WIRE]);
});

describe("a server that refuses", () => {
  const takes = "250 ok\r\n250 ok\r\n354 go\r\n";
  test.each<[what: string, replies: string, failure: Partial<SmtpFailure>]>([
    [
      "the sender for now",
      "451 later\r\n503 no\r\n503 no\r\n",
      { code: "EENVELOPE", replyCode: 451, command: "MAIL FROM" },
    ],
    ["the sender", "550 no\r\n503 no\r\n503 no\r\n", { code: "EENVELOPE", replyCode: 550, command: "MAIL FROM" }],
    ["the recipient for now", "250 ok\r\n450 later\r\n503 no\r\n", { replyCode: 450, command: "RCPT TO" }],
    ["the recipient", "250 ok\r\n550 nobody\r\n554 no\r\n", { code: "EENVELOPE", replyCode: 550, command: "RCPT TO" }],
    ["to listen", "250 ok\r\n250 ok\r\n451 later\r\n", { code: "EENVELOPE", replyCode: 451, command: "DATA" }],
  ])("%s with other commands in flight takes the next message on the same connection", async (_, replies, failure) => {
    const heard: string[] = [];
    let asked = 0;
    const server = await aServer(
      manners(PIPELINING, (text, socket) => {
        heard.push(text);
        if (text === GROUP) asked += 1;
        socket.write(text === WIRE ? "250 taken\r\n" : asked === 1 ? replies : takes);
        return text.length;
      }),
    );
    const pool = aPool(server.port);
    expect(await failureIn(pool.send(MAIL, NEVER))).toMatchObject({ stage: "message", ...failure });
    expect(await pool.send(MAIL, NEVER)).toBe("250 taken");
    expect(heard).toEqual([GROUP, GROUP, WIRE]);
    expect(server.connections).toBe(1);
  });

  test("the recipient and listens all the same hears an empty message, and nothing of this one", async () => {
    const heard: string[] = [];
    const replies = ["250 ok\r\n550 nobody\r\n354 go\r\n", "554 no recipients\r\n", takes, "250 taken\r\n"];
    const server = await aServer(
      manners(PIPELINING, (text, socket) => {
        socket.write(replies[heard.push(text) - 1] ?? "");
        return text.length;
      }),
    );
    const pool = aPool(server.port);
    expect(await failureIn(pool.send(MAIL, NEVER))).toMatchObject({ replyCode: 550, command: "RCPT TO" });
    expect(await pool.send({ ...MAIL, text: "Subject: another1\r\n\r\n" }, NEVER)).toBe("250 taken");
    expect(heard).toEqual([GROUP, ".\r\n", GROUP, "Subject: another1\r\n\r\n.\r\n"]);
    expect(server.connections).toBe(1);
  });

  test("the sender and listens all the same is left", async () => {
    const heard: string[] = [];
    const { port } = await aServer(
      manners(PIPELINING, (text, socket) => {
        heard.push(text);
        socket.write("550 no\r\n550 no\r\n354 go\r\n");
        return text.length;
      }),
    );
    const session = await aSession(port);
    expect(await failureIn(session.send(MAIL, NEVER))).toMatchObject({ replyCode: 550, command: "MAIL FROM" });
    expect([session.isOver, heard]).toEqual([true, [GROUP]]);
  });

  test("and hangs up at once has said what it said", async () => {
    const { port } = await aServer(
      manners(PIPELINING, (text, socket) => {
        socket.end("250 ok\r\n550 nobody\r\n");
        return text.length;
      }),
    );
    expect(await failureIn((await aSession(port)).send(MAIL, NEVER))).toMatchObject({
      replyCode: 550,
      command: "RCPT TO",
    });
  });
});

test.each<[at: string, replies: string, command: string]>([
  ["the recipient", "250 ok\r\n421 4.7.0 slow down\r\n", "RCPT TO"],
  ["DATA", "250 ok\r\n250 ok\r\n421 4.7.0 slow down\r\n", "DATA"],
  ["the message", "250 ok\r\n250 ok\r\n354 go\r\n", "DATA"],
])("421 in answer to %s is that answer, and the end of the connection", async (_, replies, command) => {
  const { port } = await aServer(
    manners(PIPELINING, (text, socket) => {
      socket.write(text === WIRE ? "421 4.7.0 slow down\r\n" : replies);
      return text.length;
    }),
  );
  const session = await aSession(port);
  expect(await failureIn(session.send(MAIL, NEVER))).toMatchObject({ replyCode: 421, command });
  expect(session.isOver).toBe(true);
});

describe("a connection that is lost", () => {
  const LOST = { stage: "message", replyCode: null, code: "ECONNECTION" };

  test("while it was kept costs the message nothing: it goes over another", async () => {
    const server = await aServer(
      manners(PIPELINING, (text, socket, nth) => {
        socket.write(text === WIRE ? "250 taken\r\n" : "250 ok\r\n250 ok\r\n354 go\r\n");
        // It resets after the answer, so that the next message finds out.
        if (text === WIRE && nth === 1) socket.end();
        return text.length;
      }),
    );
    const pool = aPool(server.port);
    expect([await pool.send(MAIL, NEVER), await pool.send(MAIL, NEVER)]).toEqual(["250 taken", "250 taken"]);
  });

  test("before the server listened leaves the message untold, and it is not repeated over a new connection", async () => {
    const server = await aServer(
      manners(PIPELINING, (text, socket) => {
        socket.end("250 ok\r\n");
        return text.length;
      }),
    );
    expect(await failureIn(aPool(server.port).send(MAIL, NEVER))).toMatchObject(LOST);
    expect(server.connections).toBe(1);
  });

  test.each([
    ["in the message", false],
    ["behind the message, before its answer", true],
  ])("%s says how far the message had come, and the message is not repeated", async (_, isWhole) => {
    const text = `Subject: s\r\n\r\n${"x".repeat(70)}\r\n`.repeat(60_000);
    const server = await aServer(
      manners(PIPELINING, (heard, socket) => {
        if (heard.startsWith("MAIL")) {
          socket.write("250 ok\r\n250 ok\r\n354 go\r\n");
          return heard.length;
        }
        if (!isWhole || heard.endsWith("\r\n.\r\n")) socket.destroy();
        return 0;
      }),
    );
    const { replyCode, stage } = await failureIn(aPool(server.port).send({ ...MAIL, text }, NEVER));
    expect({ replyCode, stage }).toEqual({ replyCode: null, stage: isWhole ? "end" : "message" });
    expect(server.connections).toBe(1);
  });
});

describe("a server that reads slowly", () => {
  const text = `Subject: s\r\n\r\n${`${"x".repeat(74)}\r\n`.repeat(60_000)}`;

  test("has its time, and gets every octet", async () => {
    let octets = 0;
    let end = "";
    const { port } = await aServer(
      manners(PIPELINING, (heard, socket) => {
        if (heard.startsWith("MAIL")) {
          socket.write("250 ok\r\n250 ok\r\n354 go\r\n");
          return heard.length;
        }
        octets += heard.length;
        end = (end + heard).slice(-5);
        socket.pause();
        setTimeout(() => socket.resume(), 2);
        if (end === "\r\n.\r\n") socket.write("250 taken\r\n");
        return heard.length;
      }),
    );
    expect(await (await aSession(port)).send({ ...MAIL, text }, NEVER)).toBe("250 taken");
    expect(octets).toBe(text.length + 3);
  });

  test("and then no more is silence", async () => {
    const { port } = await aServer(
      manners(PIPELINING, (heard, socket) => {
        if (heard.startsWith("MAIL")) socket.write("250 ok\r\n250 ok\r\n354 go\r\n");
        else socket.pause();
        return heard.length;
      }),
    );
    const session = await aSession(port);
    expect(await failureIn(session.send({ ...MAIL, text }, NEVER))).toMatchObject({
      code: "ETIMEDOUT",
      replyCode: null,
    });
    expect(session.isOver).toBe(true);
  });
});

test.each([
  ["refuses", "552 too large\r\n", { code: "EMESSAGE", replyCode: 552 }],
  ["takes", "250 taken\r\n", { code: "EPROTOCOL", replyCode: null }],
])(
  "a server that %s a long message before it has read it gets no other on that connection",
  async (_, said, failure) => {
    const { port } = await aServer(
      manners(PIPELINING, (heard, socket) => {
        socket.write(heard.startsWith("MAIL") ? "250 ok\r\n250 ok\r\n354 go\r\n" : said);
        if (!heard.startsWith("MAIL")) socket.pause();
        return heard.length;
      }),
    );
    const session = await aSession(port);
    const text = `Subject: s\r\n\r\n${`${"x".repeat(74)}\r\n`.repeat(200_000)}`;
    expect(await failureIn(session.send({ ...MAIL, text }, NEVER))).toMatchObject(failure);
    expect(session.isOver).toBe(true);
  },
);

test("dots that begin a line arrive as they are", async () => {
  const text = "Subject: s\r\n\r\n.\r\n..\r\n.a\r\nb.\r\n.\r\n";
  let heard = "";
  const { port } = await aServer(
    manners(PIPELINING, (text, socket) => {
      if (!text.startsWith("MAIL")) heard += text;
      socket.write(text.startsWith("MAIL") ? "250 ok\r\n250 ok\r\n354 go\r\n" : "250 ok\r\n");
      return text.length;
    }),
  );
  await (await aSession(port)).send({ ...MAIL, text }, NEVER);
  expect(heard.endsWith("\r\n.\r\n")).toBe(true);
  expect(heard.slice(0, -".\r\n".length).replace(/(^|\r\n)\./g, "$1")).toBe(text);
});

test.each<[what: string, mail: MailMessage, ehlo: string, command: string]>([
  ["the size where the server wants it", MAIL, "250-here\r\n250 SIZE\r\n", "MAIL FROM:<b@shop.test> SIZE=21"],
  [
    "addresses beyond ASCII where the server takes them",
    { ...MAIL, to: "jõ@jõgeva.test", text: "To: jõ@jõgeva.test\r\n\r\n" },
    "250-here\r\n250-SIZE 0\r\n250 SMTPUTF8\r\n",
    "MAIL FROM:<b@shop.test> SMTPUTF8 SIZE=24",
  ],
  ["nothing of the kind where no address needs it", MAIL, "250-here\r\n250 SMTPUTF8\r\n", "MAIL FROM:<b@shop.test>"],
  ["no eight bits in a body, which has none", MAIL, "250-here\r\n250 8BITMIME\r\n", "MAIL FROM:<b@shop.test>"],
])("MAIL says %s", async (_, mail, ehlo, command) => {
  const heard: string[] = [];
  const { port } = await aServer(
    manners(ehlo, (text, socket) => {
      heard.push(Buffer.from(text, "latin1").toString());
      socket.write(text === "DATA\r\n" ? "354 go\r\n" : "250 ok\r\n");
      return text.length;
    }),
  );
  await (await aSession(port)).send(mail, NEVER);
  expect(heard).toEqual([`${command}\r\n`, `RCPT TO:<${mail.to}>\r\n`, "DATA\r\n", `${mail.text}.\r\n`]);
});

describe("a server that speaks before it is asked", () => {
  test("is not believed: what answers a message was said after it", async () => {
    const heard: string[] = [];
    const { port } = await aServer(
      manners(PIPELINING, (text, socket) => {
        heard.push(text);
        socket.write("250 ok\r\n250 ok\r\n354 go\r\n250 queued as FORGED\r\n");
        return text.length;
      }),
    );
    const session = await aSession(port);
    expect(await failureIn(session.send(MAIL, NEVER))).toMatchObject({ code: "EPROTOCOL", replyCode: null });
    expect(session.isOver).toBe(true);
  });

  test("while its connection is being made ready gets no message", async () => {
    const { port } = await aServer(manners(`${PIPELINING}250 and more\r\n`, (text) => text.length));
    expect(await failureIn(aSession(port))).toMatchObject({ stage: "session" });
  });

  test("while nobody has a message for it is left", async () => {
    const sockets: Socket[] = [];
    const { port } = await aServer(
      manners(PIPELINING, (text, socket) => {
        sockets.push(socket);
        socket.write(text === WIRE ? "250 taken\r\n" : "250 ok\r\n250 ok\r\n354 go\r\n");
        return text.length;
      }),
    );
    const session = await aSession(port);
    await session.send(MAIL, NEVER);
    sockets[0]?.write("421 4.4.2 idle for too long\r\n");
    await eventually("the connection is over", () => session.isOver);
  });

  test("in plain text behind its answer to STARTTLS is not heard: that may be anybody (RFC 3207, 6)", async () => {
    const taken: string[] = [];
    const server = new SMTPServer({
      authOptional: true,
      disableReverseLookup: true,
      logger: false,
      onData(stream, _, done) {
        let text = "";
        stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
        stream.on("end", () => done(null, `queued as ${taken.push(text)}`));
      },
    });
    server.on("error", () => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    open.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
    // A server that listens on TCP has an address of this form.
    const behind = (server.server.address() as AddressInfo).port;
    const injected: string[] = [];
    const between = createServer((client) => {
      const upstream = connect(behind, "127.0.0.1");
      for (const socket of [client, upstream]) socket.on("error", () => {});
      client.on("data", (chunk) => upstream.write(chunk));
      client.on("close", () => upstream.destroy());
      upstream.on("close", () => client.destroy());
      upstream.on("data", (chunk) => {
        const isReady = /^220 .*TLS/i.test(chunk.toString("latin1")) && injected.length === 0;
        const forged =
          "250-forged\r\n250-SIZE 1\r\n250 PIPELINING\r\n250 ok\r\n250 ok\r\n354 go\r\n250 queued as FORGED\r\n";
        if (isReady) injected.push(forged);
        client.write(isReady ? Buffer.concat([Buffer.from(chunk), Buffer.from(forged)]) : chunk);
      });
    });
    await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
    open.push(() => void between.close());
    const { port } = between.address() as AddressInfo;
    const session = new SmtpSession(buildPlace(port, "mail.test"), SHORT, () => {});
    open.push(() => session.close());
    // Either the session rejects such a connection, or it ignores the forged reply.
    const reply = await session.open(NEVER).then(
      () => session.send(MAIL, NEVER),
      () => "refused",
    );
    expect(injected).toHaveLength(1);
    expect(reply === "refused" ? taken : [reply, ...taken]).toEqual(
      reply === "refused" ? [] : ["250 queued as 1", MAIL.text],
    );
  });
});

describe("a message has the outcome that nodemailer's own connection reports", () => {
  const cases = ["", "\r\n250-PIPELINING"].flatMap((extension) =>
    [
      ["MAIL", "550 5.7.1 no"],
      ["MAIL", "451 4.3.0 later"],
      ["MAIL", "421 4.3.2 closing"],
      ["MAIL", "drop"],
      ["RCPT", "550 5.1.1 nobody"],
      ["RCPT", "450 4.2.0 later"],
      ["RCPT", "drop"],
      ["DATA", "554 5.7.1 no"],
      ["DATA", "421 4.7.0 closing"],
      ["DATA", "drop"],
      ["DATA", "250 go"],
      [".", "250 2.0.0 queued as ABC"],
      [".", "552 5.3.4 too large"],
      [".", "452 4.3.1 no space"],
      [".", "drop"],
      [".", "silence"],
    ].map(([step = "", act = ""]) => [extension, step, act] as const),
  );
  test.each(cases)("EHLO 250%p, %p: %p", async (extension, step, act) => {
    const script: Script = { EHLO: `250-here${extension}\r\n250 ok`, [step]: act };
    const server = await startScriptedSmtp(script);
    open.push(() => server.stop());
    const port = Number(new URL(server.url).port);
    const ours = await (await aSession(port))
      .send(MAIL, NEVER)
      .catch((error: unknown) => (error instanceof SmtpError ? error.failure : error));
    const theirs = await sentByNodemailer(port).catch((error: unknown) => toSmtpFailure(error, "message"));
    // Nodemailer reports a lost connection as a socket error; our session reports the command's refusal first.
    const plain = (result: unknown) =>
      typeof result === "object" && result !== null ? { ...result, code: null, command: null, stage: null } : result;
    const isLost = act === "drop" || act === "silence";
    expect(isLost ? plain(ours) : ours).toEqual(isLost ? plain(theirs) : theirs);
  });
});

async function sentByNodemailer(port: number): Promise<string> {
  const connection = new SMTPConnection({ host: "127.0.0.1", port, ignoreTLS: true, socketTimeout: SHORT.socketMs });
  open.push(() => connection.close());
  return new Promise((resolve, reject) => {
    connection.on("error", reject);
    connection.connect(() =>
      connection.send({ from: MAIL.from, to: [MAIL.to] }, MAIL.text, (error, info) =>
        error ? reject(error) : resolve(info.response),
      ),
    );
  });
}

describe("a server whose reply never ends", () => {
  test("after RSET is left, and does not keep the connection from others", async () => {
    const session = await aSession((await aDrippingServer("RSET")).port);
    expect(await failureIn(session.reset())).toMatchObject({ code: "ETIMEDOUT" });
    expect(session.isOver).toBe(true);
  });

  test("after QUIT is left", async () => {
    const session = await aSession((await aDrippingServer("QUIT")).port);
    session.quit();
    await eventually("the connection is over", () => session.isOver);
  });
});

test("a reply of endless short lines is given up before its lines take much more than its bytes", () => {
  const replies = new ReplyReader();
  const lines = Buffer.from("250-\n".repeat(100));
  let bytes = 0;
  while (bytes < 1024 * 1024 && replies.read(lines) !== null) bytes += lines.length;
  expect(bytes).toBeLessThan(70_000);
});

test("a server that says too much before it is ready is left at once", async () => {
  const server = await aServer(() => 0, "\r\n".repeat(64 * 1024));
  const patient = { ...SHORT, connectMs: 60_000, readyMs: 60_000 };
  const session = new SmtpSession(buildPlace(server.port), patient, () => {});
  const failure = await session.open(NEVER).then(
    () => null,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ failure: { code: "EPROTOCOL" } });
  expect(session.isOver).toBe(true);
}, 90_000);
