import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { AddressInfo, Socket } from "node:net";
import { SMTPServer } from "smtp-server";
import { EmailChannel } from "../../../src/channels/email/email-channel.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { aTenant } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { emailJob, LINKS } from "./email-world.ts";

type Verdict = readonly [code: number, text: string];
const SLOWER: Verdict = [451, "4.7.1 Too much mail from you, try again later"];
const NEVER = new AbortController().signal;

/** The mail server's answers by domain, at RCPT TO or after the message; it accepts all other domains. */
const atRcpt = new Map<string, Verdict>();
const atData = new Map<string, Verdict>();
let asked = 0;
let server: SMTPServer;
let url: string;
let clock: VirtualClock;
let channel: EmailChannel;

const findVerdict = (verdicts: ReadonlyMap<string, Verdict>, address: string): Error | null => {
  const verdict = verdicts.get(address.slice(address.indexOf("@") + 1));
  return verdict === undefined ? null : Object.assign(new Error(verdict[1]), { responseCode: verdict[0] });
};

beforeAll(async () => {
  server = new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: true,
    logger: false,
    closeTimeout: 100,
    onRcptTo({ address }, _session, callback) {
      asked += 1;
      callback(findVerdict(atRcpt, address));
    },
    onData(stream, { envelope }, callback) {
      stream.resume();
      stream.on("end", () => callback(findVerdict(atData, envelope.rcptTo[0]?.address ?? "")));
    },
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  url = `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  for (const verdicts of [atRcpt, atData]) verdicts.clear();
  clock = new VirtualClock();
  channel?.close();
  const defaultFrom = { address: "no-reply@waybill.test", name: null };
  channel = new EmailChannel({ smtpUrl: url, defaultFrom, ...LINKS, clock });
});

afterAll(async () => {
  channel.close();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

const send = (to: string, tenant: Tenant = aTenant()): Promise<Outcome> =>
  channel.deliver({ ...emailJob({ to, subject: "s", html: "<p>h</p>" }), recipient: to }, tenant, NEVER);

async function sendMany(count: number, to: string): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let i = 0; i < count; i += 1) outcomes.push(await send(to));
  return outcomes;
}

test("mail to a destination that keeps slowing us waits without a connection and costs no attempt", async () => {
  atRcpt.set("big.test", SLOWER);
  const outcomes = await sendMany(25, "ann@big.test");
  const askedBefore = asked;
  const waiting = await sendMany(3, "ann@big.test");
  expect(asked).toBe(askedBefore);
  // Sixteen until it is slowed, then one per step until they must be a second apart.
  expect(outcomes.filter((outcome) => "isUnsent" in outcome)).toHaveLength(20);
  for (const outcome of waiting) {
    expect(outcome).toMatchObject({
      kind: "retry",
      why: "big.test takes mail more slowly than it comes",
      isUncounted: true,
    });
  }
  expect(await send("ann@small.test")).toMatchObject({ kind: "delivered" });
  expect(await send("ann@big.test", aTenant({ tenantId: "bolt" }))).toMatchObject({ kind: "retry", isUnsent: true });
});

test("once the destination takes mail again, its pace comes back", async () => {
  atRcpt.set("big.test", SLOWER);
  await sendMany(25, "ann@big.test");
  atRcpt.clear();
  let delivered = 0;
  let waited = 0;
  for (let i = 0; i < 200 && delivered < 60; i += 1) {
    const outcome = await send("ann@big.test");
    if (outcome.kind === "delivered") delivered += 1;
    else waited += 1;
    if (outcome.kind !== "delivered") await clock.advance(2_000);
  }
  expect(waited).toBeGreaterThan(0);
  const all = await Promise.all(Array.from({ length: 40 }, () => send("ann@big.test")));
  expect(all.every(({ kind }) => kind === "delivered")).toBe(true);
});

test.each<[string, "rcpt" | "data", Verdict]>([
  ["421 to the recipient", "rcpt", [421, "4.3.2 too many connections"]],
  ["421 to the message", "data", [421, "4.7.0 slow down"]],
  ["450 4.7.1 to the recipient", "rcpt", [450, "4.7.1 greylisted"]],
  ["451 4.7.500 to the message", "data", [451, "4.7.500 server busy"]],
])(
  "%s asks for a slower pace",
  async (_, at, verdict) => {
    (at === "rcpt" ? atRcpt : atData).set("big.test", verdict);
    const outcomes = await sendMany(30, "ann@big.test");
    expect(outcomes.at(-1)).toMatchObject({ kind: "retry", isUncounted: true });
  },
  90_000,
);

test("421 to a recipient of a message with copies asks for a slower pace, and the reason is shown", async () => {
  atRcpt.set("big.test", [421, "4.3.2 too many connections"]);
  const payload = { to: "ann@big.test", cc: [{ address: "bob@small.test" }], subject: "s", html: "<p>h</p>" };
  const sendOne = () => channel.deliver({ ...emailJob(payload), recipient: payload.to }, aTenant(), NEVER);
  const first = await sendOne();
  expect(first).toMatchObject({ kind: "retry", why: expect.stringContaining("too many connections"), isUnsent: true });
  expect(first.reply).toContain("421");
  for (let i = 0; i < 29; i += 1) await sendOne();
  expect(await sendOne()).toMatchObject({ kind: "retry", isUncounted: true, waitsFor: "destination_pace" });
}, 90_000);

test.each<[string, Verdict]>([
  ["a full mailbox", [452, "4.2.2 mailbox full"]],
  ["an error of the server's own", [451, "4.3.0 try later"]],
  ["an unknown recipient", [550, "5.1.1 unknown"]],
])("%s says nothing about the pace", async (_, verdict) => {
  atRcpt.set("big.test", verdict);
  const outcomes = await sendMany(30, "ann@big.test");
  expect(outcomes.some((outcome) => "isUncounted" in outcome)).toBe(false);
});

test("a relay that refuses connections does not slow the destinations behind it", async () => {
  channel.close();
  const busy = new SMTPServer({
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 100,
    onConnect: (_session, callback) => callback(Object.assign(new Error("4.3.2 busy"), { responseCode: 421 })),
  });
  busy.on("error", () => {});
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  const smtpUrl = `smtp://127.0.0.1:${(busy.server.address() as AddressInfo).port}`;
  channel = new EmailChannel({ smtpUrl, defaultFrom: { address: "a@waybill.test", name: null }, ...LINKS, clock });
  const outcomes = await Promise.all(Array.from({ length: 30 }, () => send("ann@big.test")));
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["away"]));
  expect(await send("ann@big.test")).not.toMatchObject({ isUncounted: true });
  await new Promise<void>((resolve) => busy.close(() => resolve()));
}, 90_000);

test("a message is known to be unsent only if the relay said so or could not be reached", async () => {
  channel.close();
  const dropping = new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 100,
    onData: (stream) => void stream.on("end", () => sockets.forEach((socket) => socket.destroy())).resume(),
  });
  const sockets: Socket[] = [];
  dropping.server.on("connection", (socket: Socket) => sockets.push(socket));
  dropping.on("error", () => {});
  await new Promise<void>((resolve) => dropping.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  const smtpUrl = `smtp://127.0.0.1:${(dropping.server.address() as AddressInfo).port}`;
  channel = new EmailChannel({ smtpUrl, defaultFrom: { address: "a@waybill.test", name: null }, ...LINKS, clock });
  const unanswered = await send("ann@big.test");
  expect(unanswered.kind).toBe("retry");
  expect(unanswered).not.toHaveProperty("isUnsent");
  await new Promise<void>((resolve) => dropping.close(() => resolve()));
  expect((await send("ann@big.test")).kind).toBe("away");
});
