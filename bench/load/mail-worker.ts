/**
 * The e-mail channel against a mail server: `bun bench/load/mail-worker.ts <smtp url> <mails> <connections> <signed 0|1>`
 * prints what it came to as JSON. Templates, tracked links, MIME, signing and SMTP are as in production; no queue is
 * before it.
 */
import { EmailChannel } from "../../src/channels/email/email-channel.ts";
import { JobIds } from "../../src/core/ids.ts";
import type { QueuedJob } from "../../src/core/job.ts";
import { LinkTokens } from "../../src/links/link-tokens.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { verified } from "../../test/support/sending-domain.ts";
import { benchTenants, SEND_PAYLOAD } from "./bench-world.ts";
import type { MailRun } from "./mail.ts";

const [, , smtpUrl = "", mails = "0", connections = "1", signed = "0"] = process.argv;
const WARM_UP = 200;

const DOMAIN = "shop.example.test";
const [plain] = benchTenants(1);
if (plain === undefined) throw new Error("one tenant");
const emailSender = { fromAddress: `orders@${DOMAIN}`, fromName: "Shop", smtpUrl: null };
const tenant = signed === "1" ? { ...plain, emailSender, domains: verified(DOMAIN) } : plain;

const channel = new EmailChannel({
  smtpUrl,
  defaultFrom: { address: `orders@${DOMAIN}`, name: "Shop" },
  publicUrl: "https://send.example.test",
  links: new LinkTokens([new Uint8Array(32).fill(7)]),
  clock: systemClock,
  ownRelays: null,
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
    recipient: "ann.example@customer.example.com",
    suppressed: null,
    payload: SEND_PAYLOAD,
  };
}

async function send(count: number): Promise<void> {
  let left = count;
  const one = async () => {
    while (left > 0) {
      left -= 1;
      const outcome = await channel.deliver(aJob(), tenant, never);
      if (outcome.kind !== "delivered") throw new Error(`not taken: ${JSON.stringify(outcome)}`);
    }
  };
  await Promise.all(Array.from({ length: Number(connections) }, one));
}

await send(Math.min(WARM_UP, Number(mails)));
const cpuBefore = process.cpuUsage();
const startedMs = performance.now();
await send(Number(mails));
const seconds = (performance.now() - startedMs) / 1000;
const { user, system } = process.cpuUsage(cpuBefore);
channel.close();
const run: MailRun = { perSecond: Number(mails) / seconds, cpuMsPerMail: (user + system) / 1000 / Number(mails) };
console.log(JSON.stringify(run));
