import { afterEach, describe, expect, test } from "bun:test";
import { EmailChannel } from "../../../src/channels/email/email-channel.ts";
import { parseMessageId } from "../../../src/channels/email/message-id.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import { startSmtpSandbox } from "../../../src/channels/email/sandbox/smtp-sandbox.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { EndReason, QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { DeliveryReport } from "../../../src/domain/jobs/report.ts";
import type { SuppressionLookup } from "../../../src/domain/tenants/suppressions.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type Script, startScriptedSmtp } from "../../support/scripted-smtp.ts";
import { startSmtpServer } from "../../support/smtp-server.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, LINKS, parseHeaders } from "./email-world.ts";

/* Messages with cc and bcc, to real mail servers on this machine. */

const NEVER = new AbortController().signal;
const TO = "ann@example.test";
const MAIL: EmailPayload = { to: TO, subject: "s", html: "<p>Hello</p>" };
const COPIES: EmailPayload = {
  ...MAIL,
  cc: [{ address: "bob@example.test", name: "Bob" }, { address: "cy@reject.test" }],
  bcc: [{ address: "dan@example.test" }],
};

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of open.splice(0).reverse()) await stop();
});

const NOBODY: SuppressionLookup = { suppressedAmong: async () => new Map() };

function suppressing(reasons: Readonly<Record<string, EndReason>>): SuppressionLookup {
  return {
    suppressedAmong: async (_tenant, addresses) =>
      new Map(addresses.flatMap((address) => (reasons[address] ? [[address, { reason: reasons[address] }]] : []))),
  };
}

function channelTo(smtpUrl: string, suppressions = NOBODY): EmailChannel {
  const defaultFrom = { address: "shop@shop.test", name: null };
  const channel = new EmailChannel({ ...LINKS, smtpUrl, defaultFrom, suppressions });
  open.push(() => channel.close());
  return channel;
}

async function sandbox() {
  const reports: DeliveryReport[] = [];
  const started = await startSmtpSandbox({
    clock: systemClock,
    telemetry: new QuietTelemetry(),
    onReport: (report) => reports.push(report),
  });
  open.push(() => started.stop());
  return { url: started.url, inbox: started.inbox, reports };
}

async function scripted(script: Script) {
  const server = await startScriptedSmtp(script);
  open.push(() => server.stop());
  return server;
}

function deliver(channel: EmailChannel, payload: EmailPayload, job: Partial<QueuedJob> = {}) {
  return channel.deliver({ ...emailJob(payload), recipient: payload.to, ...job }, aTenant(), NEVER);
}

test("everybody who is named gets the message once; cc is in its header, bcc in none", async () => {
  const { url, inbox } = await sandbox();
  const payload: EmailPayload = {
    ...MAIL,
    cc: [{ address: "bob@example.test", name: "Bob" }, { address: "ANN@example.test" }],
    bcc: [{ address: "dan@example.test" }, { address: "bob@example.test" }],
  };
  expect(await deliver(channelTo(url), payload)).toMatchObject({ kind: "delivered" });
  const got = inbox.messages(null, 10);
  expect(got.map(({ to }) => to).toSorted()).toEqual([TO, "bob@example.test", "dan@example.test"]);
  expect(got[0]?.recipients?.toSorted()).toEqual([TO, "bob@example.test", "dan@example.test"]);
  const source = got[0]?.source ?? "";
  expect(parseHeaders(source).filter(([name]) => /^(?:to|cc|bcc)$/i.test(name))).toEqual([
    ["To", TO],
    ["Cc", "Bob <bob@example.test>, ANN@example.test"],
  ]);
  expect(source).not.toContain("dan@example.test");
});

test("who is suppressed is left out of envelope and header, and an event says why", async () => {
  const { url, inbox } = await sandbox();
  const suppressions = suppressing({ "bob@example.test": "bounced", "dan@example.test": "unsubscribed" });
  const payload: EmailPayload = {
    ...MAIL,
    cc: [{ address: "Bob@example.test" }, { address: "eve@example.test" }],
    bcc: [{ address: "dan@example.test" }],
  };
  const outcome = await deliver(channelTo(url, suppressions), payload);
  expect(outcome).toMatchObject({
    kind: "delivered",
    further: [
      { type: "suppressed", result: { recipient: "bob@example.test", reason: "bounced" } },
      { type: "suppressed", result: { recipient: "dan@example.test", reason: "unsubscribed" } },
    ],
  });
  const got = inbox.messages(null, 10);
  expect(got.map(({ to }) => to).toSorted()).toEqual([TO, "eve@example.test"]);
  expect(got[0]?.source).not.toMatch(/bob@/i);
});

test("while suppressions cannot be looked up, nothing is sent and the job waits", async () => {
  const { url, inbox } = await sandbox();
  const away = { suppressedAmong: () => Promise.reject(new UnavailableError("the queue is away")) };
  expect(await deliver(channelTo(url, away), COPIES)).toMatchObject({
    kind: "retry",
    isUncounted: true,
    isUnsent: true,
  });
  expect(inbox.messages(null, 10)).toEqual([]);
});

describe("a relay that refuses a recipient", () => {
  test("still takes the message for the others, and an event names who was refused", async () => {
    const { url, inbox } = await sandbox();
    const outcome = await deliver(channelTo(url), COPIES);
    expect(outcome).toMatchObject({ kind: "delivered" });
    expect("further" in outcome ? outcome.further : []).toEqual([
      { type: "failed", result: { recipient: "cy@reject.test", error: expect.stringContaining("550 5.7.1") } },
    ]);
    expect(inbox.messages(null, 10).map(({ to }) => to)).toHaveLength(3);
  });

  test("ends the job well if it takes any other; the main recipient's failure is an event without a name", async () => {
    const { url, inbox } = await sandbox();
    const outcome = await deliver(channelTo(url), { ...MAIL, to: "ann@reject.test", cc: [{ address: TO }] });
    expect("further" in outcome ? outcome.further : []).toEqual([
      { type: "failed", result: { error: expect.stringContaining("550 5.7.1") } },
    ]);
    expect(outcome.kind).toBe("delivered");
    expect(inbox.messages(null, 10).map(({ to }) => to)).toEqual([TO]);
  });

  test("fails the job if it takes nobody, and sends no message", async () => {
    const server = await scripted({ EHLO: "250-here\r\n250 PIPELINING", RCPT: "550 5.1.1 no such user" });
    const outcome = await deliver(channelTo(server.url), COPIES);
    expect(outcome).toMatchObject({ kind: "failed", error: expect.stringContaining("550 5.1.1") });
    const named = "further" in outcome ? (outcome.further ?? []).map(({ result }) => result["recipient"]) : [];
    expect(named).toEqual(["bob@example.test", "cy@reject.test", "dan@example.test"]);
    expect(server.reached.get("DATA")).toBeUndefined();
  });
});

describe("a relay that puts a copy off", () => {
  const script: Script = {
    EHLO: "250-here\r\n250 PIPELINING",
    RCPT: (nth) => (nth % 2 === 0 ? "451 4.7.1 greylisted" : "250 ok"),
  };
  const payload: EmailPayload = { ...MAIL, cc: [{ address: "bob@example.test" }] };

  test("gets the whole message later, so that nobody gets it twice", async () => {
    const server = await scripted(script);
    const channel = channelTo(server.url);
    expect(await deliver(channel, payload, { attempts: 0 })).toMatchObject({ kind: "retry" });
    expect(await deliver(channel, payload, { attempts: 2 })).toMatchObject({ kind: "retry" });
    expect(server.reached.get("DATA")).toBeUndefined();
    await eventually("both transactions were given up", () => server.reached.get("RSET") === 2);
  });

  test("does not hold the others up for long", async () => {
    const server = await scripted(script);
    const outcome = await deliver(channelTo(server.url), payload, { attempts: 3 });
    expect(outcome).toMatchObject({
      kind: "delivered",
      further: [{ type: "failed", result: { recipient: "bob@example.test" } }],
    });
  });
});

test.each([
  ["with", "250-here\r\n250 PIPELINING"],
  ["without", "250 here"],
])("a server %s PIPELINING is asked for the message once all recipients are answered", async (_how, ehlo) => {
  const steps: string[] = [];
  const noted = (step: string, reply: string) => () => {
    steps.push(step);
    return reply;
  };
  const server = await scripted({
    EHLO: ehlo,
    MAIL: noted("MAIL", "250 ok"),
    RCPT: noted("RCPT", "250 ok"),
    DATA: noted("DATA", "354 go"),
    ".": noted(".", "250 2.0.0 Ok: queued as 1ABC"),
  });
  expect(await deliver(channelTo(server.url), COPIES)).toMatchObject({ kind: "delivered", providerRef: "1ABC" });
  expect(steps).toEqual(["MAIL", "RCPT", "RCPT", "RCPT", "RCPT", "DATA", "."]);
});

describe("what is reported of a message later", () => {
  test("names the copy that it is about, and nobody where it is the main recipient", async () => {
    const { url, reports } = await sandbox();
    const payload: EmailPayload = {
      ...MAIL,
      cc: [{ address: "bob@bounce.test" }],
      bcc: [{ address: "dan@example.test" }],
    };
    await deliver(channelTo(url), payload);
    await eventually("all reports are there", () => reports.length === 3);
    const told = reports.map(
      ({ type, result, suppressRecipient }) => `${type} ${String(result["recipient"])} ${suppressRecipient}`,
    );
    expect(told.toSorted()).toEqual([
      "bounced bob@bounce.test bob@bounce.test",
      "delivered dan@example.test null",
      "delivered undefined null",
    ]);
  });

  test("a message to one recipient has the Message-ID that it always had, one with copies the same at every try", async () => {
    const { url, inbox } = await sandbox();
    const [channel, late] = [channelTo(url), channelTo(url, suppressing({ "bob@example.test": "manual" }))];
    const deliverForId = async (through: EmailChannel, job: QueuedJob) => {
      await through.deliver(job, aTenant(), NEVER);
      return parseHeaders(inbox.messages(null, 1)[0]?.source ?? "").find(([name]) => name === "Message-ID")?.[1] ?? "";
    };
    const single = emailJob(MAIL);
    expect(await deliverForId(channel, single)).toBe(`<${single.jobId}.acme@shop.test>`);
    const copied = emailJob({ ...MAIL, cc: [{ address: "bob@example.test" }] });
    const id = await deliverForId(channel, copied);
    expect(parseMessageId(id)).toMatchObject({
      jobId: copied.jobId,
      tenantId: "acme",
      mark: expect.stringMatching(/^\./),
    });
    expect(await deliverForId(late, copied)).toBe(id);
  });
});

describe("addresses beyond ASCII", () => {
  const payload: EmailPayload = { ...MAIL, to: "jõ@xn--jgeva-dua.test" };

  test("go to a relay that offers SMTPUTF8", async () => {
    const server = await scripted({ EHLO: "250-here\r\n250 SMTPUTF8" });
    expect(await deliver(channelTo(server.url), payload)).toMatchObject({ kind: "delivered" });
  });

  test("fail the job at one that does not, with a sentence", async () => {
    const server = await scripted({ EHLO: "250 here" });
    expect(await deliver(channelTo(server.url), payload)).toMatchObject({
      kind: "failed",
      error: "the mail server takes no addresses with letters beyond ASCII (SMTPUTF8)",
    });
    expect(server.reached.get("MAIL")).toBeUndefined();
  });
});

describe("recipients who are too many for a relay at a time", () => {
  const many = Array.from({ length: 7 }, (_, at) => ({ address: `copy-${at}@example.test` }));
  const payload: EmailPayload = { ...MAIL, cc: many.slice(0, 3), bcc: many.slice(3) };
  const everybody = [TO, ...many.map(({ address }) => address)].toSorted();

  async function limited(max: number, reply: string, onMessage: (nth: number) => string | null = () => null) {
    const messages: string[][] = [];
    let open_ = 0;
    const { url, stop } = await startSmtpServer({
      onRcptTo({ address }, session, done) {
        void address;
        if (session.envelope.rcptTo.length < max) return done();
        const [code = "452", ...words] = reply.split(" ");
        done(Object.assign(new Error(words.join(" ")), { responseCode: Number(code) }));
      },
      onConnect(_session, done) {
        open_ += 1;
        done();
      },
      onData(stream, { envelope }, done) {
        stream.resume();
        stream.on("end", () => {
          const refusal = onMessage(messages.length + 1);
          if (refusal !== null) return done(Object.assign(new Error(refusal), { responseCode: 451 }));
          messages.push(envelope.rcptTo.map(({ address }) => address));
          done(null, "queued as A1");
        });
      },
    });
    open.push(stop);
    return { url, messages, connections: () => open_ };
  }

  test.each([
    ["452 4.5.3 Error: too many recipients"],
    ["452 Too many recipients"],
    ["452 come again"],
    ["451 4.5.3 too many rcpts"],
    ["450 4.2.1 maximum number of recipients exceeded"],
    ["552 5.5.3 recipient limit reached"],
    ["550 too many recipients for this message"],
  ])("get it in further transactions, each once: %s", async (reply) => {
    const relay = await limited(3, reply);
    const outcome = await deliver(channelTo(relay.url), payload);
    expect(outcome).toMatchObject({ kind: "delivered" });
    expect(outcome).not.toHaveProperty("further");
    expect(relay.messages.map(({ length }) => length)).toEqual([3, 3, 2]);
    expect(relay.messages.flat().toSorted()).toEqual(everybody);
  });

  test("nobody gets it twice if the relay stops in the middle, and events name the others", async () => {
    const relay = await limited(3, "452 4.5.3 too many recipients", (nth) => (nth === 2 ? "4.3.0 no more now" : null));
    const outcome = await deliver(channelTo(relay.url), payload);
    expect(relay.messages.flat()).toEqual(everybody.filter((address) => relay.messages.flat().includes(address)));
    const missed = outcome.kind === "delivered" ? (outcome.further ?? []) : [];
    expect(missed.map(({ type, result }) => [type, result["recipient"]])).toEqual(
      everybody.filter((address) => !relay.messages.flat().includes(address)).map((address) => ["failed", address]),
    );
    expect(missed).toHaveLength(5);
  });

  test("an hour's limit and a full mailbox are no such thing: the message waits", async () => {
    for (const reply of ["452 4.2.2 mailbox full", "450 4.7.1 too many recipients this hour"]) {
      const relay = await limited(3, reply);
      expect(await deliver(channelTo(relay.url), payload)).toMatchObject({ kind: "retry" });
      expect(relay.messages).toEqual([]);
    }
  });
});
