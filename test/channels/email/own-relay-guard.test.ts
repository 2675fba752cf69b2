import { afterEach, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer } from "node:net";
import { EmailChannel, type EmailChannelOptions } from "../../../src/channels/email/email-channel.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import type { OutboundGuard } from "../../../src/domain/texts/outbound.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";
import { CANARY_SECRET, type Canary, startCanary } from "../../support/canary.ts";
import { type Script, type ScriptedSmtp, startScriptedSmtp } from "../../support/scripted-smtp.ts";
import { verified } from "../../support/sending-domain.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, inEachStep, LINKS } from "./email-world.ts";

const NEVER = new AbortController().signal;
const FROM = { address: "no-reply@waybill.test", name: "Waybill" };
const SHORT = { turnMs: 5_000, connectMs: 500, readyMs: 1_000, ...inEachStep(1_000), idleMs: 1_000 };
/** The guard of live providers, without exceptions. */
const STRICT = new NetworkGuard({ allow: [], publicAllowed: true });
const FORBIDDEN: Outcome = { kind: "failed", error: "your mail server is at an address that must not be connected to" };
const NAME = "relay.acme.test";

const open: { stop(): Promise<void> | void }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop();
});

async function aServer(script: Script = {}, place?: { host: string; port: number }): Promise<ScriptedSmtp> {
  const server = await startScriptedSmtp(script, place);
  open.push(server);
  return server;
}

async function aCanary(host?: "127.0.0.1" | "::1"): Promise<Canary> {
  const canary = await startCanary(host);
  open.push(canary);
  return canary;
}

async function aChannel(options: Partial<EmailChannelOptions>): Promise<EmailChannel> {
  const { url: smtpUrl } = await aServer();
  const channel = new EmailChannel({ smtpUrl, defaultFrom: FROM, ...LINKS, timeouts: SHORT, ...options });
  open.push({ stop: () => channel.close() });
  return channel;
}

/** 127.0.0.2 stands for a public address; `answers` are the addresses of any name, one list per look-up. */
function guardOver(...answers: readonly (readonly string[])[]): { guard: OutboundGuard; readonly asked: string[] } {
  const asked: string[] = [];
  const resolveAddresses = async (host: string) => {
    asked.push(host);
    return answers[Math.min(asked.length, answers.length) - 1] ?? [];
  };
  return {
    asked,
    guard: new NetworkGuard({ allow: ["127.0.0.2/31"], publicAllowed: true, resolveHost: resolveAddresses }),
  };
}

function owner(smtpUrl: string): Tenant {
  const emailSender = { fromAddress: "a@acme.test", fromName: null, smtpUrl };
  return aTenant({ emailSender, domains: verified("acme.test"), allowCustom: new Set(["email"]) });
}

const deliver = (channel: EmailChannel, tenant: Tenant = aTenant()): Promise<Outcome> =>
  channel.deliver(emailJob({ to: "ana@example.test", subject: "Hello", html: "<p>Hi</p>" }), tenant, NEVER);

describe("a tenant's own relay inside the platform", () => {
  // biome-ignore format: a list of hosts
  test.each([
    "127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "localhost", "LOCALHOST", "0.0.0.0",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:7f00:1]", "[::127.0.0.1]",
  ])("is never connected to, whatever it is called: %s", async (host) => {
    const canary = await aCanary();
    const channel = await aChannel({ ownRelays: STRICT });
    for (const url of [`smtp://${host}:${canary.port}`, `smtps://user:secret@${host}:${canary.port}`]) {
      const outcome = await deliver(channel, owner(url));
      expect(JSON.stringify(outcome)).not.toContain(CANARY_SECRET);
      expect(outcome.kind).toBeOneOf(["failed", "away"]);
    }
    expect(canary.connections).toBe(0);
  });

  test("is refused once and for all, in words that say nothing of what is there", async () => {
    const [here, six] = [await aCanary(), await aCanary("::1")];
    const channel = await aChannel({ ownRelays: STRICT });
    expect(await deliver(channel, owner(`smtp://127.0.0.1:${here.port}`))).toMatchObject(FORBIDDEN);
    expect(await deliver(channel, owner(`smtp://[::1]:${six.port}`))).toMatchObject(FORBIDDEN);
    // The error is the same whether a server listens there or not.
    await here.stop();
    expect(await deliver(channel, owner(`smtp://127.0.0.1:${here.port}`))).toMatchObject(FORBIDDEN);
    expect([here.connections, six.connections]).toEqual([0, 0]);
  });

  test("is not reached by the platform's URL either, nor over a connection that is kept for the platform", async () => {
    const platform = await aServer();
    const channel = await aChannel({ smtpUrl: platform.url, ownRelays: STRICT });
    expect((await deliver(channel)).kind).toBe("delivered");
    expect(await deliver(channel, owner(platform.url))).toMatchObject(FORBIDDEN);
    expect([platform.connections, platform.reached.get("MAIL")]).toEqual([1, 1]);
    // Nor do its results count for or against the platform's relay.
    expect(channel.findRelay(owner(platform.url))?.key).not.toBe(channel.findRelay(aTenant())?.key ?? "");
  });
});

describe("a name that changes its address", () => {
  test("is connected to where the guard looked, and looked up once a connection", async () => {
    const canary = await aCanary();
    const relay = await aServer({}, { host: "127.0.0.2", port: canary.port });
    const { guard, asked } = guardOver(["127.0.0.2"], ["127.0.0.1"]);
    const channel = await aChannel({ ownRelays: guard });
    const tenant = owner(`smtp://${NAME}:${canary.port}`);
    expect((await deliver(channel, tenant)).kind).toBe("delivered");
    expect([asked, relay.connections]).toEqual([[NAME], 1]);
    // The relay closes the kept connection; the next one needs another look-up, which is refused.
    relay.script = { MAIL: "drop" };
    expect(await deliver(channel, tenant)).toMatchObject(FORBIDDEN);
    expect([asked, canary.connections]).toEqual([[NAME, NAME], 0]);
  });

  test("is not connected to at all while one of its addresses is inside", async () => {
    const canary = await aCanary();
    const relay = await aServer({}, { host: "127.0.0.2", port: canary.port });
    for (const addresses of [
      ["127.0.0.2", "127.0.0.1"],
      ["127.0.0.1", "127.0.0.2"],
      ["127.0.0.2", "::1"],
    ]) {
      const channel = await aChannel({ ownRelays: guardOver(addresses).guard });
      expect(await deliver(channel, owner(`smtp://${NAME}:${canary.port}`))).toMatchObject(FORBIDDEN);
    }
    expect([relay.connections, canary.connections]).toEqual([0, 0]);
  });

  test("is away, not refused, while it cannot be looked up or does not exist", async () => {
    const failing = (code: string) =>
      new NetworkGuard({
        allow: [],
        publicAllowed: true,
        resolveHost: () => Promise.reject(Object.assign(new Error(code), { code })),
      });
    const hanging: OutboundGuard = { routeTo: () => new Promise(() => {}) };
    for (const ownRelays of [failing("ENOTFOUND"), failing("EAI_AGAIN"), hanging]) {
      const channel = await aChannel({ ownRelays });
      expect((await deliver(channel, owner(`smtp://${NAME}`))).kind).toBe("away");
    }
  });

  test("is tried at its next address where one does not answer", async () => {
    const relay = await aServer({}, { host: "127.0.0.2", port: 0 });
    const channel = await aChannel({ ownRelays: guardOver(["127.0.0.3", "127.0.0.2"]).guard });
    const tenant = owner(relay.url.replace("127.0.0.2", NAME));
    expect([(await deliver(channel, tenant)).kind, (await deliver(channel, tenant)).kind]).toEqual([
      "away",
      "delivered",
    ]);
  });
});

describe("the name of a tenant's relay", () => {
  test("is what the TLS handshake says, though the connection goes to an address", async () => {
    const hellos: string[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (bytes) => {
        hellos.push(bytes.toString("latin1"));
        socket.destroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.2", resolve));
    open.push({ stop: () => void server.close() });
    // A server that listens on TCP has an address of this form.
    const { port } = server.address() as AddressInfo;
    const channel = await aChannel({ ownRelays: guardOver(["127.0.0.2"]).guard });
    expect((await deliver(channel, owner(`smtps://${NAME}:${port}`))).kind).toBe("away");
    // The name is sent in the clear (RFC 6066, 3).
    expect(hellos).toEqual([expect.stringContaining(NAME)]);
  });

  test("excuses nobody from encryption for beginning like a loopback address", async () => {
    const script = { EHLO: "250-here\r\n250 AUTH PLAIN", STARTTLS: "502 5.5.1 not here" };
    const relay = await aServer(script, { host: "127.0.0.2", port: 0 });
    const channel = await aChannel({ ownRelays: guardOver(["127.0.0.2"]).guard });
    const url = relay.url.replace("smtp://127.0.0.2", "smtp://user:secret@127.evil.example");
    const outcome = await deliver(channel, owner(url));
    expect(outcome).toMatchObject({ kind: "away", why: "no encrypted connection to your mail server could be made" });
    expect([relay.connections, relay.reached.get("AUTH")]).toEqual([1, undefined]);
  });
});
