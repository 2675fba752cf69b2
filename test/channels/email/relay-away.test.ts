import { afterEach, describe, expect, test } from "bun:test";
import { EmailChannel, type EmailChannelOptions } from "../../../src/channels/email/email-channel.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { eventually } from "../../support/eventually.ts";
import { ScriptedRelay } from "../../support/scripted-relay.ts";
import { type Script, type ScriptedSmtp, startScriptedSmtp } from "../../support/scripted-smtp.ts";
import { verified } from "../../support/sending-domain.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, inEachStep, LINKS } from "./email-world.ts";

const NEVER = new AbortController().signal;
const SHORT = { turnMs: 5_000, connectMs: 200, readyMs: 300, ...inEachStep(300), idleMs: 1_000 };
const PATIENT = { turnMs: 30_000, connectMs: 30_000, readyMs: 30_000, ...inEachStep(30_000), idleMs: 30_000 };
const FROM = { address: "no-reply@waybill.test", name: "Waybill" };
const AUTH = "250-here\r\n250 AUTH PLAIN";

const open: { stop(): Promise<void> | void }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop();
});

async function aServer(script: Script = {}): Promise<ScriptedSmtp> {
  const server = await startScriptedSmtp(script);
  open.push(server);
  return server;
}

function aChannel(smtpUrl: string, options: Partial<EmailChannelOptions> = {}): EmailChannel {
  const channel = new EmailChannel({ smtpUrl, defaultFrom: FROM, ...LINKS, timeouts: SHORT, ...options });
  open.push({ stop: () => channel.close() });
  return channel;
}

/** A tenant with a relay of its own. */
function owner(smtpUrl: string): Tenant {
  const emailSender = { fromAddress: "a@acme.test", fromName: null, smtpUrl };
  return aTenant({ emailSender, domains: verified("acme.test"), allowCustom: new Set(["email"]) });
}

const deliver = (channel: EmailChannel, tenant: Tenant = aTenant(), signal = NEVER): Promise<Outcome> =>
  channel.deliver(emailJob({ to: "ana@example.test", subject: "Hello", html: "<p>Hi</p>" }), tenant, signal);

const withLogin = (url: string) => url.replace("//", "//user:secret@");

describe("before the message was offered, a relay is away and no attempt is spent", () => {
  test.each<[what: string, script: Script]>([
    ["never greets", { greeting: "silence" }],
    ["drops the connection instead of greeting", { greeting: "drop" }],
    ["greets with 421", { greeting: "421 4.3.2 too busy" }],
    ["greets with 554", { greeting: "554 5.7.1 no service" }],
    ["greets with what is no SMTP", { greeting: "SSH-2.0-OpenSSH_9.9" }],
    ["is silent after EHLO", { EHLO: "silence" }],
    ["drops the connection after EHLO", { EHLO: "drop" }],
    ["answers EHLO with 421", { EHLO: "421 4.3.2 shutting down" }],
    ["answers EHLO and HELO with 550", { EHLO: "550 5.7.1 blocked", HELO: "550 5.7.1 blocked" }],
    ["answers MAIL with 421", { MAIL: "421 4.3.2 shutting down" }],
    ["answers a message in one go with 421", { EHLO: "250-here\r\n250 PIPELINING", MAIL: "421 4.3.2 shutting down" }],
    ["demands authentication", { MAIL: "530 5.7.0 authentication required" }],
  ])("one that %s", async (_, script) => {
    const outcome = await deliver(aChannel((await aServer(script)).url));
    expect(outcome).toMatchObject({ kind: "away", why: expect.stringContaining("the mail server") });
  });

  test.each<[what: string, script: Script]>([
    ["is silent at AUTH", { EHLO: AUTH, AUTH: "silence" }],
    ["drops the connection at AUTH", { EHLO: AUTH, AUTH: "drop" }],
    ["cannot check credentials at the moment", { EHLO: AUTH, AUTH: "454 4.7.0 temporary authentication failure" }],
    ["refuses the platform's credentials", { EHLO: AUTH, AUTH: "535 5.7.8 wrong" }],
    ["closes at AUTH with 421", { EHLO: AUTH, AUTH: "421 4.7.0 too many logins" }],
  ])("one that %s", async (_, script) => {
    const { url } = await aServer(script);
    expect((await deliver(aChannel(withLogin(url)))).kind).toBe("away");
  });

  test("one that takes no encryption, or breaks it off, where it is to encrypt", async () => {
    const none = await aServer({ EHLO: "250 here", STARTTLS: "502 5.5.1 not here" });
    const broken = await aServer({ EHLO: "250-here\r\n250 STARTTLS", STARTTLS: "220 go\r\nno TLS here" });
    const silent = await aServer({ EHLO: "250-here\r\n250 STARTTLS", STARTTLS: "454 4.7.0 TLS not available" });
    // A name of this machine that must use encryption.
    const named = (url: string) => withLogin(url).replace("127.0.0.1", "0.0.0.0");
    for (const { url } of [none, silent]) {
      const outcome = await deliver(aChannel(named(url)));
      expect(outcome).toMatchObject({ kind: "away", why: "no encrypted connection to the mail server could be made" });
    }
    expect((await deliver(aChannel(named(broken.url)))).kind).toBe("away");
    const plain = await deliver(aChannel(none.url.replace("smtp:", "smtps:")));
    expect(plain.kind).toBe("away");
  });

  test("the tenant is told of its own relay, and credentials that it refuses for good fail the job", async () => {
    const busy = await aServer({ greeting: "421 4.3.2 too busy" });
    const locked = await aServer({ EHLO: AUTH, AUTH: "535 5.7.8 wrong" });
    const later = await aServer({ EHLO: AUTH, AUTH: "454 4.7.0 try later" });
    const channel = aChannel(busy.url);
    expect(await deliver(channel, owner(busy.url))).toMatchObject({
      kind: "away",
      why: "your mail server refused the connection: 421 4.3.2 too busy",
    });
    expect((await deliver(channel, owner(withLogin(locked.url)))).kind).toBe("failed");
    expect((await deliver(channel, owner(withLogin(later.url)))).kind).toBe("away");
  });
});

describe("once the message was offered", () => {
  test.each<[what: string, script: Script]>([
    ["at MAIL", { MAIL: "silence" }],
    ["at RCPT", { RCPT: "silence" }],
    ["at DATA", { DATA: "silence" }],
    ["by closing at MAIL", { MAIL: "drop" }],
    ["by closing at DATA", { DATA: "drop" }],
  ])("silence %s is an attempt and a strike, and the relay has not taken it", async (_, script) => {
    const outcome = await deliver(aChannel((await aServer(script)).url));
    expect(outcome).toMatchObject({ kind: "retry", isSilence: true, isUnsent: true });
    expect(outcome).not.toHaveProperty("isUncounted");
    expect(outcome).not.toHaveProperty("afterMs");
  });

  test.each<[what: string, act: string]>([
    ["silence", "silence"],
    ["closing", "drop"],
    ["no SMTP", "Hello"],
  ])(
    "%s behind the message leaves open whether the relay has it: it is tried again late, and twice at most",
    async (_, act) => {
      const channel = aChannel((await aServer({ ".": act })).url);
      const payload = { to: "ana@example.test", subject: "Hello", html: "<p>Hi</p>" };
      const [one, other] = [emailJob(payload), emailJob(payload)];
      const again = async (job: QueuedJob, attempts: number) => {
        const outcome = await channel.deliver({ ...job, attempts }, aTenant(), NEVER);
        expect(outcome).toMatchObject({ kind: "retry", isSilence: true, isUncertain: true, afterMs: 600_000 });
        expect(outcome).not.toHaveProperty("isUnsent");
        return outcome.kind === "retry" ? outcome.attemptsMax : null;
      };
      // The third of these three tries is the last; tries that the relay certainly refused do not count.
      expect([await again(one, 0), await again(one, 1), await again(one, 2)]).toEqual([3, 3, 3]);
      expect([await again(other, 5), await again(other, 9)]).toEqual([8, 11]);
      // An operator's retry starts another life of the job.
      expect(await again(one, 0)).toBe(3);
    },
  );

  test("a relay that takes long behind the message, and only there, gets one copy", async () => {
    // A minute beside 45 seconds, scaled.
    const limit = { ...inEachStep(150), connectMs: 1_000, readyMs: 1_000 };
    const relay = await ScriptedRelay.start({ answerMs: 600 });
    open.push({ stop: () => relay.stop() });
    const channel = aChannel(relay.url(), { timeouts: { ...SHORT, ...limit, endMs: 5_000 } });
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => deliver(channel)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => "delivered"));
    expect([relay.arrivals.length, relay.repeats]).toEqual([5, 0]);
  });

  test.each<[step: string, reply: string, kind: Outcome["kind"]]>([
    ["MAIL", "451 4.3.0 later", "retry"],
    ["RCPT", "421 4.7.0 too many of you", "retry"],
    ["RCPT", "450 4.2.0 greylisted", "retry"],
    ["RCPT", "550 5.1.1 no such user", "failed"],
    ["DATA", "421 4.7.0 closing", "retry"],
    ["DATA", "554 5.7.1 no", "failed"],
    [".", "452 4.3.1 no space", "retry"],
    [".", "552 5.3.4 too large", "failed"],
  ])("an answer at %p, %p, is about the message", async (step, reply, kind) => {
    const { url } = await aServer({ [step]: reply });
    const outcome = await deliver(aChannel(url, { timeouts: PATIENT }));
    expect(outcome.kind).toBe(kind);
    expect(outcome).not.toHaveProperty("isSilence");
  });
});

test("after a refusal the same connection takes the next message", async () => {
  const server = await aServer({ RCPT: (nth) => (nth % 2 === 1 ? "550 5.1.1 no such user" : "250 ok") });
  const channel = aChannel(server.url, { connectionsMax: 1, timeouts: PATIENT });
  const kinds: string[] = [];
  for (let i = 0; i < 6; i += 1) kinds.push((await deliver(channel)).kind);
  expect(kinds).toEqual(["failed", "delivered", "failed", "delivered", "failed", "delivered"]);
  expect(server.connections).toBe(1);
});

test("a kept connection that the server closed costs a message nothing", async () => {
  const server = await aServer();
  const channel = aChannel(server.url, { timeouts: PATIENT });
  expect((await deliver(channel)).kind).toBe("delivered");
  // It answers the next command by closing, as after a restart, or with 421, as after a time-out of its own.
  for (const MAIL of ["drop", "421 4.4.2 timeout exceeded"]) {
    server.script = { MAIL: (nth) => (nth % 2 === 0 ? MAIL : "250 ok") };
    expect((await deliver(channel)).kind).toBe("delivered");
  }
  expect(server.connections).toBe(3);
});

test("a message that waits for a connection does not time out for having waited", async () => {
  // Each holds its connection for longer than the silence that is allowed, all together.
  let answered = 0;
  const server = await aServer({ ".": "silence" });
  const channel = aChannel(server.url, { connectionsMax: 1, timeouts: { ...SHORT, ...inEachStep(200) } });
  const outcomes = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const outcome = await deliver(channel);
      answered += 1;
      // The last one finds the server healthy again.
      if (answered === 4) server.script = {};
      return outcome.kind;
    }),
  );
  expect(outcomes.slice(0, 4)).toEqual(["retry", "retry", "retry", "retry"]);
  expect(outcomes[4]).toBe("delivered");
  // The server may notice the end of one connection only after the next one is there.
  expect(server.openMax).toBeLessThanOrEqual(2);
});

test("a message that waits too long for a connection gives up unsent: its delivery's deadline includes the wait", async () => {
  const server = await aServer({ ".": "silence" });
  const channel = aChannel(server.url, { connectionsMax: 1, timeouts: { ...PATIENT, turnMs: 100 } });
  const called = new AbortController();
  const offered = deliver(channel, aTenant(), called.signal);
  await eventually("the first is offered", () => (server.reached.get(".") === 1 ? true : null));
  expect(await deliver(channel)).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true });
  called.abort();
  expect(await offered).toMatchObject({ kind: "retry", isSilence: true });
  expect(server.reached.get("MAIL")).toBe(1);
  // Nor does it take the place of the next.
  server.script = {};
  expect((await deliver(channel)).kind).toBe("delivered");
});

test("a message that is cancelled while it waits costs no attempt; one that was offered costs one", async () => {
  const server = await aServer({ ".": "silence" });
  const channel = aChannel(server.url, { connectionsMax: 1, timeouts: PATIENT });
  const called = new AbortController();
  const [offered, waiting] = [deliver(channel, aTenant(), called.signal), deliver(channel, aTenant(), called.signal)];
  await eventually("the first is offered", () => (server.reached.get(".") === 1 ? true : null));
  called.abort();
  expect(await offered).toMatchObject({ kind: "retry", isSilence: true, isUncertain: true });
  // A stop does not delay a message for ten minutes.
  expect(await offered).not.toHaveProperty("afterMs");
  expect(await waiting).toMatchObject({
    kind: "retry",
    why: "its turn at the mail server did not come",
    isUncounted: true,
    isUnsent: true,
  });
  await eventually("its socket is closed", () => (server.open === 0 ? true : null));
});

test("200 hanging relays keep no socket once their deliveries are cancelled, and delay no other mail", async () => {
  const healthy = await aServer();
  const hanging = await Promise.all(Array.from({ length: 200 }, () => aServer({ EHLO: "silence" })));
  const channel = aChannel(healthy.url, { timeouts: PATIENT });
  const called = new AbortController();
  const deliveries = hanging.flatMap(({ url }) =>
    Array.from({ length: 3 }, () => deliver(channel, owner(url), called.signal)),
  );
  await eventually("all hang", () => (hanging.every((each) => (each.reached.get("EHLO") ?? 0) === 3) ? true : null));
  expect((await deliver(channel)).kind).toBe("delivered");
  called.abort();
  const outcomes = await Promise.all(deliveries);
  expect(new Set(outcomes.map((outcome) => JSON.stringify({ ...outcome, relay: null }))).size).toBe(1);
  expect(outcomes[0]).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true });
  // The healthy one's connection is kept.
  expect(channel.connections).toBe(1);
  await eventually("the sockets are gone", () => (hanging.every((each) => each.open === 0) ? true : null));
});

test("a relay that has accepted nothing yet gets eight connections, and more once it has", async () => {
  const server = await aServer({ MAIL: "silence" });
  const other = await aServer();
  const channel = aChannel(other.url, { timeouts: PATIENT });
  const called = new AbortController();
  const tenant = owner(server.url);
  const stuck = Array.from({ length: 20 }, () => deliver(channel, tenant, called.signal));
  await eventually("eight are offered", () => (server.reached.get("MAIL") === 8 ? true : null));
  expect(server.openMax).toBe(8);
  called.abort();
  await Promise.all(stuck);
  server.script = {};
  expect((await deliver(channel, tenant)).kind).toBe("delivered");
  server.script = { MAIL: "silence" };
  const more = new AbortController();
  const proven = Array.from({ length: 60 }, () => deliver(channel, tenant, more.signal));
  await eventually("as many as it may have", () => (server.open === 48 ? true : null));
  more.abort();
  await Promise.all(proven);
  expect(server.openMax).toBe(48);
});

test("a message for one server too many waits without costing an attempt", async () => {
  const platform = await aServer();
  const hanging = await aServer({ MAIL: "silence" });
  const channel = aChannel(platform.url, { timeouts: PATIENT, relaysMax: 1 });
  const called = new AbortController();
  const stuck = deliver(channel, owner(hanging.url), called.signal);
  await eventually("it hangs", () => (hanging.reached.get("MAIL") === 1 ? true : null));
  expect(await deliver(channel)).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true, afterMs: 1_000 });
  called.abort();
  await stuck;
  expect((await deliver(channel)).kind).toBe("delivered");
});

test("a relay is named without its credentials, and known by them", () => {
  const channel = aChannel("smtp://platform:secret@relay.test:2525");
  expect(channel.findRelay(aTenant())).toEqual({
    key: "smtp://platform:secret@relay.test:2525",
    name: "relay.test:2525",
    isOwn: false,
  });
  expect(channel.findRelay(owner("smtps://me:mine@mx.acme.test"))).toEqual({
    key: "own smtps://me:mine@mx.acme.test",
    name: "mx.acme.test:465",
    isOwn: true,
  });
});
