import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { SMTPServer } from "smtp-server";
import { SmtpProbe } from "../../../src/channels/email/smtp/smtp-probe.ts";
import type { Finding } from "../../../src/domain/channels/domain.ts";
import type { OutboundGuard } from "../../../src/domain/texts/outbound.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";

const guard = new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: false });
const probe = new SmtpProbe({ guard, ehloName: "send.test", deadlineMs: 400 });
/** For servers that answer: a busy machine may take longer than that. */
const patient = new SmtpProbe({ guard, ehloName: "send.test", deadlineMs: 10_000 });

let relay: SMTPServer;
let port = 0;
const mails: string[] = [];

beforeAll(async () => {
  relay = new SMTPServer({
    allowInsecureAuth: true,
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ["STARTTLS"],
    logger: false,
    onAuth: ({ username, password }, _session, callback) =>
      username === "acme" && password === "p@ss"
        ? callback(null, { user: username })
        : callback(new Error("no such user")),
    onMailFrom: ({ address }, _session, callback) => {
      mails.push(address);
      callback();
    },
  });
  relay.on("error", () => {});
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  port = (relay.server.address() as AddressInfo).port;
});

afterAll(() => new Promise<void>((resolve) => relay.close(() => resolve())));

/** A server that sends only `greeting` to every client. */
async function withServer<T>(
  greeting: string | null,
  use: (url: string, sockets: Set<Socket>) => Promise<T>,
): Promise<T> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    // A socket that is not read never learns that the other side has ended.
    socket.resume();
    if (greeting !== null) socket.write(greeting);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    // A server that listens on TCP has an address of this form.
    return await use(`smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

const found = (result: Finding["result"], why: string): Finding => ({
  check: "smtp",
  result,
  why: expect.stringContaining(why),
});

describe("a tenant's own relay", () => {
  test("passes when it greets, with and without credentials, and no mail is begun", async () => {
    expect(await patient.check(`smtp://127.0.0.1:${port}`)).toEqual({ check: "smtp", result: "passed", why: null });
    expect(await patient.check(`smtp://acme:p%40ss@127.0.0.1:${port}`)).toEqual({
      check: "smtp",
      result: "passed",
      why: null,
    });
    expect(mails).toEqual([]);
  });

  test("fails when it refuses the credentials, of which nothing is repeated", async () => {
    const finding = await patient.check(`smtp://acme:hunter2@127.0.0.1:${port}`);
    expect(finding).toEqual(found("failed", "it answered 535"));
    expect(finding.why).not.toMatch(/hunter2|acme|127\.0/);
  });

  test("fails when nobody listens, when none is stored, and when the address is none", async () => {
    expect(await probe.check(`smtp://127.0.0.1:${await freePort()}`)).toEqual(found("failed", "nobody listens"));
    expect(await probe.check(null)).toEqual(found("failed", "no smtp_url is stored"));
    expect(await probe.check("http://x.test")).toEqual(found("failed", "not the address of a mail server"));
  });

  test("fails when it refuses for good, and is not judged when it only refuses for now", async () => {
    await withServer("554 5.7.1 not you\r\n", async (url) => {
      expect(await patient.check(url)).toEqual(found("failed", "it answered 554 5.7.1 not you"));
    });
    await withServer("421 4.3.2 later\r\n", async (url) => {
      expect(await patient.check(url)).toEqual(found("unanswered", "put us off: it answered 421 4.3.2 later"));
    });
  });

  test("is not judged when it says nothing, and no connection is left behind", async () => {
    await withServer(null, async (url, sockets) => {
      expect(await probe.check(url)).toMatchObject({ result: "unanswered" });
      await eventually("the connection is closed", () => sockets.size === 0);
    });
    await withServer("220 hello\r\n", async (url, sockets) => {
      expect(await probe.check(url)).toMatchObject({ result: "unanswered" });
      await eventually("the connection is closed", () => sockets.size === 0);
    });
  });

  test("is given up at the deadline, also while it goes on talking without an end", async () => {
    await withServer("220 hello\r\n", async (url, sockets) => {
      const talking = setInterval(() => {
        for (const socket of sockets) socket.write("250-and more\r\n");
      }, 20);
      try {
        expect(await probe.check(url)).toEqual(found("unanswered", "did not answer in time"));
        await eventually("the connection is closed", () => sockets.size === 0);
      } finally {
        clearInterval(talking);
      }
    });
  });

  test("is not judged while its name cannot be looked up", async () => {
    const away: OutboundGuard = { routeTo: async () => ({ kind: "unanswered", why: "could not be looked up" }) };
    expect(await new SmtpProbe({ guard: away, ehloName: "send.test" }).check("smtp://mail.acme.test")).toMatchObject({
      result: "unanswered",
    });
  });

  test("is not connected to where the network is not allowed", async () => {
    await withServer("220 hello\r\n", async (url, sockets) => {
      const strict = new SmtpProbe({
        guard: new NetworkGuard({ allow: [], publicAllowed: true }),
        ehloName: "send.test",
      });
      expect(await strict.check(url)).toEqual(found("failed", "must not be connected to"));
      expect(await strict.check(url.replace("127.0.0.1", "localhost"))).toEqual(
        found("failed", "must not be connected to"),
      );
      expect(await strict.check(url.replace("127.0.0.1", "[::ffff:127.0.0.1]"))).toEqual(found("failed", "must not"));
      expect(sockets.size).toBe(0);
    });
  });
});

test("a server that only talks is left at once, not at the deadline", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write("\n".repeat(128 * 1024));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: talking } = server.address() as AddressInfo;
  const { result, why } = await patient.check(`smtp://127.0.0.1:${talking}`);
  server.close();
  expect([result, why]).toEqual([
    "unanswered",
    expect.stringContaining("dropped the connection or could not be reached"),
  ]);
}, 90_000);
