import { afterEach, describe, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { MailMessage } from "../../../src/channels/email/mime/mail-message.ts";
import { RelayPool } from "../../../src/channels/email/smtp/relay-pool.ts";
import { RelayRoute } from "../../../src/channels/email/smtp/relay-route.ts";
import { SmtpProbe } from "../../../src/channels/email/smtp/smtp-probe.ts";
import type { SmtpTimeouts } from "../../../src/channels/email/smtp/smtp-session.ts";
import type { SmtpServer } from "../../../src/domain/channels/smtp-url.ts";
import { startScriptedSmtp } from "../../support/scripted-smtp.ts";

const NEVER = new AbortController().signal;
const MAIL: MailMessage = { from: "a@shop.test", to: "b@example.test", text: "Subject: s\r\n\r\nHello\r\n" };
const TIMES: SmtpTimeouts = {
  turnMs: 2_000,
  connectMs: 2_000,
  readyMs: 500,
  socketMs: 2_000,
  envelopeMs: 2_000,
  dataMs: 2_000,
  blockMs: 2_000,
  endMs: 2_000,
  idleMs: 2_000,
};

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of open.splice(0).reverse()) await stop();
});

function aPool(server: Partial<SmtpServer> & { readonly port: number }) {
  const swaps: (string | null)[] = [];
  const pool = new RelayPool({
    server: { host: "127.0.0.1", secure: false, user: "", password: "", ...server },
    route: new RelayRoute("127.0.0.1", null, 1_000),
    timeouts: TIMES,
    ehloName: "send.test",
    connectionsMax: 1,
    unprovenMax: 1,
    onOpen() {},
    onEnd() {},
    onSwap: ({ code }) => swaps.push(code),
  });
  open.push(() => pool.close());
  return { pool, swaps };
}

/** Its certificate contains no host name. */
async function aServer(options: SMTPServerOptions) {
  const taken: boolean[] = [];
  const server = new SMTPServer({
    disableReverseLookup: true,
    logger: false,
    onData(stream, { secure }, done) {
      stream.resume();
      stream.on("end", () => done(null, `queued as ${taken.push(secure)}`));
    },
    ...options,
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  // A server that listens on TCP has an address of this form.
  return { taken, port: (server.server.address() as AddressInfo).port };
}

const DEMANDS: SMTPServerOptions = {
  authOptional: true,
  onMailFrom(_address, { secure }, done) {
    if (secure) return done();
    done(Object.assign(new Error("5.7.0 Must issue a STARTTLS command first"), { responseCode: 530 }));
  },
};
const OFFERS_AUTH_ENCRYPTED: SMTPServerOptions = {
  onAuth({ username }, { secure }, done) {
    done(secure ? null : new Error("plain"), { user: username ?? "" });
  },
};

describe("a relay on this machine that demands STARTTLS", () => {
  test.each([
    ["of everybody", DEMANDS, {}, "EENVELOPE"],
    ["before it offers AUTH", OFFERS_AUTH_ENCRYPTED, { user: "shop", password: "secret" }, "EAUTH"],
  ])("is encrypted to, from the first message on: %s", async (_what, options, login, code) => {
    const { taken, port } = await aServer(options);
    const { pool, swaps } = aPool({ port, ...login });
    expect(await pool.send(MAIL, NEVER)).toContain("queued as 1");
    expect(await pool.send(MAIL, NEVER)).toContain("queued as 2");
    expect([taken, swaps]).toEqual([[true, true], [code]]);
  });

  test("passes the probe of a tenant's relay", async () => {
    const { port } = await aServer(OFFERS_AUTH_ENCRYPTED);
    const guard = {
      routeTo: async () => ({ kind: "allowed" as const, address: "127.0.0.1", addresses: ["127.0.0.1"] as const }),
    };
    // Only the route is checked.
    const probe = new SmtpProbe({ guard: guard as never, ehloName: "send.test" });
    expect(await probe.check(`smtp://shop:secret@127.0.0.1:${port}`)).toMatchObject({ result: "passed" });
  });
});

describe("a relay whose TLS handshake fails", () => {
  test.each([
    ["answers no TLS", "220 go\r\nno TLS here"],
    ["closes", "drop"],
    ["says nothing", "220 go"],
  ])("gets plain mail where nothing requires encryption, and is remembered: %s", async (what, STARTTLS) => {
    let tries = 0;
    const server = await startScriptedSmtp({
      EHLO: "250-here\r\n250 STARTTLS",
      STARTTLS: () => {
        tries += 1;
        return what === "closes" ? "220 go\r\n\u0015\u0003\u0001\u0000\u0002\u0002\u0028" : STARTTLS;
      },
    });
    open.push(() => server.stop());
    const { pool, swaps } = aPool({ host: "mail.test", port: Number(new URL(server.url).port) });
    expect(await pool.send(MAIL, NEVER)).toStartWith("250");
    expect(await pool.send(MAIL, NEVER)).toStartWith("250");
    expect([tries, swaps]).toEqual([1, ["ETLS"]]);
  });

  test("never gets plain mail where credentials require encryption", async () => {
    const server = await startScriptedSmtp({
      EHLO: "250-here\r\n250-AUTH PLAIN\r\n250 STARTTLS",
      STARTTLS: "220 go\r\nno",
    });
    open.push(() => server.stop());
    const port = Number(new URL(server.url).port);
    const { pool, swaps } = aPool({ host: "mail.test", port, user: "shop", password: "secret" });
    await expect(pool.send(MAIL, NEVER)).rejects.toThrow();
    await expect(pool.send(MAIL, NEVER)).rejects.toThrow();
    expect([server.reached.get("MAIL"), server.reached.get("AUTH"), swaps]).toEqual([undefined, undefined, []]);
  });
});
