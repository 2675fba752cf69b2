import { afterEach, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmailChannel } from "../../../../src/channels/email/email-channel.ts";
import { MailLog } from "../../../../src/channels/email/mail-log/mail-log.ts";
import { formatMessageId } from "../../../../src/channels/email/message-id.ts";
import type { Labels } from "../../../../src/domain/telemetry.ts";
import { DeliveryReports } from "../../../../src/engine/reports/delivery-reports.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import { accept, first, pullOne, queue, useQueueWorld, world } from "../../../engine/queue/queue-world.ts";
import { eventually } from "../../../support/eventually.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";
import { startScriptedSmtp } from "../../../support/scripted-smtp.ts";
import { aTenant, createDirectory } from "../../../support/tenants.ts";
import { LINKS } from "../email-world.ts";

useQueueWorld();

const NEVER = new AbortController().signal;
const PAYLOAD = JSON.stringify({ to: "ok@good.test", subject: "Hello", html: "<p>Hi</p>" });

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** The lines that Postfix logs for a message that it took and handed on. */
function delivered(messageId: string): string {
  return `Nov 21 02:07:58 mx postfix/smtpd[16454]: C893B23E2CA: client=unknown[127.0.0.1]
Nov 21 02:07:58 mx postfix/cleanup[16457]: C893B23E2CA: message-id=${messageId}
Nov 21 02:07:58 mx postfix/qmgr[16420]: C893B23E2CA: from=<bounce+job1.ok=good.test@platform.test>, size=779, nrcpt=1 (queue active)
Nov 21 02:07:58 mx postfix/smtp[16458]: C893B23E2CA: to=<ok@good.test>, relay=127.0.0.1[127.0.0.1]:2626, delay=0.16, delays=0.01/0.01/0.14/0.01, dsn=2.0.0, status=sent (250 2.0.0 OK 1700000000 abc123 - gsmtp)
Nov 21 02:07:58 mx postfix/qmgr[16420]: C893B23E2CA: removed
`;
}

/** The results of the reports. */
const results: string[] = [];

/** A followed log whose reports go into the queue. */
function follow(shard: number): string {
  results.length = 0;
  const folder = mkdtempSync(join(tmpdir(), "waybill-parked-"));
  const path = join(folder, "maillog");
  const telemetry = new (class extends QuietTelemetry {
    override count(name?: string, labels: Labels = {}): void {
      if (name === "delivery_reports") results.push(labels["result"] ?? "");
    }
  })();
  const reports = new DeliveryReports({
    queue,
    directory: createDirectory([aTenant({ shard })]),
    eventStore: { job: async () => null },
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  const onReport = (report: Parameters<DeliveryReports["take"]>[0]) => reports.take(report);
  const mailLog = new MailLog({
    path,
    home: folder,
    onReport,
    owners: { findOwner: async () => null },
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  mailLog.start();
  stops.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => reports.stop(),
    () => mailLog.stop(),
  );
  return path;
}

test("a job that waits for another try ends when the MTA's log says that its message was delivered, and is not sent again", async () => {
  const relay = await startScriptedSmtp({ ".": "drop" });
  const channel = new EmailChannel({
    smtpUrl: relay.url,
    defaultFrom: { address: "no-reply@waybill.test", name: null },
    ...LINKS,
  });
  stops.push(
    () => relay.stop(),
    () => channel.close(),
  );
  const { tenant, lease } = await world();
  const log = follow(tenant.shard);
  const jobId = await accept(tenant, { recipient: "ok@good.test", payload: PAYLOAD });
  const job = first(await pullOne(lease, "acme"));
  // The relay took the whole message, and its reply was lost.
  expect((await channel.deliver(job, aTenant(), NEVER)).kind).toBe("retry");
  await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
  appendFileSync(log, delivered(formatMessageId(jobId, "acme", "waybill.test")));
  const ended = await eventually("the job has ended", async () => {
    const found = await queue.job(tenant, jobId);
    return found?.status === "success" ? found : null;
  });
  expect(ended.attempts).toBe(1);
  expect(ended.events.map(({ type }) => type)).toEqual(["sent", "delivered"]);
  // Its next try was due at once.
  expect(
    await queue.pull(lease, {
      tenantQueues: [],
      survey: true,
      bytesMax: 1 << 20,
      shardTimeMs: null,
      confirmedSkewMs: null,
    }),
  ).toMatchObject({
    ready: [],
    nextDueMs: null,
  });
  expect(await pullOne(lease, "acme")).toEqual([]);
  expect(relay.reached.get(".")).toBe(1);
});

test("a log line that overtakes our own record of the hand-over is recorded after it", async () => {
  const { tenant, lease } = await world();
  const log = follow(tenant.shard);
  const jobId = await accept(tenant, { recipient: "ok@good.test", payload: PAYLOAD });
  const job = first(await pullOne(lease, "acme"));
  appendFileSync(log, delivered(formatMessageId(jobId, "acme", "waybill.test")));
  await eventually("it is kept", () => (results.includes("kept") ? true : null));
  expect(await queue.job(tenant, jobId)).toMatchObject({ events: [] });
  const result = {};
  await queue.settle(lease, [{ kind: "final", job, status: "success", result, event: { type: "sent", result } }]);
  expect((await queue.job(tenant, jobId))?.events.map(({ type }) => type)).toEqual(["sent", "delivered"]);
});
