/**
 * The e-mail channel against a mail server: `bun bench/load/mail-worker.ts <smtp url> <mails> <connections> <signed
 * 0|1> <size>` prints its result as JSON. Templates, tracked links, MIME, signing and SMTP are as in production; there
 * is no queue in front.
 */
import { EmailChannel } from "../../src/channels/email/email-channel.ts";
import { LinkTokens } from "../../src/channels/email/links/link-tokens.ts";
import { JobIds } from "../../src/domain/ids.ts";
import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { verified } from "../../test/support/sending-domain.ts";
import { benchTenants } from "./bench-world.ts";
import { MAIL_CONTENTS } from "./mail-content.ts";
import { mailRun } from "./mail-run.ts";

const [, , smtpUrl = "", mails = "0", connections = "1", signed = "0", size = "small"] = process.argv;

const DOMAIN = "shop.example.test";
const { subject, html, data } = MAIL_CONTENTS[size === "small" ? "small" : "6 KB"];
const [plain] = benchTenants(1);
if (plain === undefined) throw new Error("one tenant");
const emailSender = { fromAddress: `orders@${DOMAIN}`, fromName: "Shop", smtpUrl: null };
const tenant = {
  ...plain,
  emailTemplates: new Map([["order", { subject, html, text: null }]]),
  ...(signed === "1" ? { emailSender, domains: verified(DOMAIN) } : {}),
};
const to = "ann.example@customer.example.com";
const payload = JSON.stringify({ to, toName: "Ann Example", template: "order", data });

const channel = new EmailChannel({
  smtpUrl,
  defaultFrom: { address: `orders@${DOMAIN}`, name: "Shop" },
  publicUrl: "https://send.example.test",
  links: new LinkTokens([new Uint8Array(32).fill(7)]),
  clock: systemClock,
  ownRelays: null,
  ehloName: "send.example.test",
  connectionsMax: Number(connections),
});
const ids = new JobIds(systemClock, systemRandom);
const never = new AbortController().signal;

function aJob(): QueuedJob {
  return {
    jobId: ids.next(),
    tenantId: tenant.tenantId,
    channel: "email",
    entryId: "1-0",
    attempts: 0,
    recipient: to,
    suppressed: null,
    payload,
  };
}

const run = await mailRun(Number(mails), Number(connections), async () => {
  const outcome = await channel.deliver(aJob(), tenant, never);
  if (outcome.kind !== "delivered") throw new Error(`not taken: ${JSON.stringify(outcome)}`);
});
channel.close();
console.log(JSON.stringify(run));
