import { afterEach, expect, test } from "bun:test";
import { EmailChannel } from "../../../src/channels/email/email-channel.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { type Script, startScriptedSmtp } from "../../support/scripted-smtp.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, LINKS } from "./email-world.ts";

/* A relay that refuses recipients itself, as one does that contacts their mail server during the transaction. */

const MAIL: EmailPayload = { to: "ann@far.test", subject: "s", html: "<p>Hello</p>" };
const COPIED: EmailPayload = { ...MAIL, cc: [{ address: "bob@far.test" }] };
const GONE = "550 5.1.1 <ann@far.test>: Recipient address rejected: User unknown";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of open.splice(0).reverse()) await stop();
});

const added: string[] = [];
const LIST = {
  put: async (_tenant: unknown, address: string, reason: string) => void added.push(`${address} ${reason}`),
};

async function delivered(script: Script, payload = MAIL, bounces: typeof LIST = LIST) {
  added.length = 0;
  const server = await startScriptedSmtp(script);
  open.push(() => server.stop());
  const defaultFrom = { address: "shop@shop.test", name: null };
  const channel = new EmailChannel({ ...LINKS, smtpUrl: server.url, defaultFrom, bounces });
  open.push(() => channel.close());
  const job = { ...emailJob(payload), recipient: payload.to };
  return channel.deliver(job, aTenant(), new AbortController().signal);
}

test.each<[string, Script]>([
  ["RCPT", { RCPT: GONE }],
  ["RCPT among pipelined commands", { EHLO: "250-here\r\n250 PIPELINING", RCPT: GONE }],
  ["the end of the message", { ".": GONE }],
])("a recipient whom the relay does not know at %s fails the job, bounced, and is suppressed", async (_at, script) => {
  expect(await delivered(script)).toMatchObject({
    kind: "failed",
    error: `the mail server refused the message: ${GONE}`,
    bounce: { code: 550, enhanced_code: "5.1.1", diagnostic: GONE },
  });
  expect(added).toEqual(["ann@far.test bounced"]);
});

test.each([
  "550 5.7.1 <ann@far.test>: Relay access denied",
  "550 5.1.1 <shop@shop.test>: Sender address rejected: User unknown",
  "550 5.1.1 You have exceeded your monthly sending quota",
  "552 5.1.1 <ann@far.test>: Recipient overquota",
  "550 5.1.1 <ann@far.test>: Recipient address rejected: Greylisted",
  "550 no",
])("a relay that answers RCPT with %j fails the job and suppresses nobody", async (reply) => {
  const outcome = await delivered({ RCPT: reply });
  expect(outcome).toMatchObject({ kind: "failed", error: expect.stringContaining(reply) });
  expect(outcome).not.toHaveProperty("bounce");
  expect(added).toEqual([]);
});

test("a relay that does not know the sender suppresses nobody", async () => {
  expect(await delivered({ MAIL: "550 5.1.1 User unknown" })).not.toHaveProperty("bounce");
  expect(added).toEqual([]);
});

test("of a message with copies, who is unknown is told and suppressed, and the others get it", async () => {
  const script: Script = { RCPT: (nth) => (nth === 2 ? GONE : "250 ok") };
  expect(await delivered(script, COPIED)).toMatchObject({
    kind: "delivered",
    further: [{ type: "bounced", result: { recipient: "bob@far.test", code: 550, enhanced_code: "5.1.1" } }],
  });
  await eventually("the copy's recipient is suppressed", () => added.join() === "bob@far.test bounced");
  const main: Script = { RCPT: (nth) => (nth === 1 ? GONE : "250 ok") };
  expect(await delivered(main, COPIED)).toMatchObject({ kind: "delivered", further: [{ type: "bounced" }] });
  await eventually("the main recipient is suppressed", () => added.join() === "ann@far.test bounced");
});

test("a refusal of the whole message suppresses none of several recipients", async () => {
  expect(await delivered({ ".": GONE }, COPIED)).not.toHaveProperty("bounce");
  expect(added).toEqual([]);
});

test("while the list is away, a job whose recipient is gone waits, and a message that others got is not sent again", async () => {
  const away = { put: () => Promise.reject(new UnavailableError("the registry is away")) };
  expect(await delivered({ RCPT: GONE }, MAIL, away)).toMatchObject({ kind: "retry", isUncounted: true });
  const script: Script = { RCPT: (nth) => (nth === 2 ? GONE : "250 ok") };
  expect(await delivered(script, COPIED, away)).toMatchObject({ kind: "delivered" });
});
