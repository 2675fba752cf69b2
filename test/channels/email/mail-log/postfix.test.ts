import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createTransport } from "nodemailer";
import { eventually } from "../../../support/eventually.ts";
import { freePort } from "../../../support/free-port.ts";
import { createTenants, type LoadTenant } from "../../../support/load.ts";
import { type MailSink, startMailSink } from "../../../support/mail-sink.ts";
import { type Postfix, postfixMissing, startPostfix } from "../../../support/postfix.ts";
import { startWaybill, temporaryHome, type Waybill } from "../../../support/waybill.ts";
import { buildFeedback, buildNotification } from "./returned-mail.ts";

const missing = postfixMissing();
/** `WAYBILL_POSTFIX_MAILS=2000` for the long run. */
const MAILS = Number(process.env["WAYBILL_POSTFIX_MAILS"] ?? 300);

const BOUNCE_DOMAIN = "bounce.waybill.test";
const OPERATOR_TOKEN = "operator-token-of-the-tests";

/** The outcome of mail to each kind of recipient. */
const OUTCOMES: Readonly<Record<string, readonly string[]>> = {
  nouser: ["sent", "bounced"],
  plain: ["sent", "bounced"],
  disabled: ["sent", "bounced"],
  policy: ["sent", "failed"],
  full: ["sent", "failed"],
  grey: ["sent", "delivered"],
  defer: ["sent", "failed"],
  ok: ["sent", "delivered"],
};
const KINDS = Object.keys(OUTCOMES);

function getKind(i: number): string {
  return KINDS[i % 20] ?? "ok";
}

describe.skipIf(missing !== null)(`with a real Postfix${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let sink: MailSink;
  let postfix: Postfix;
  let waybill: Waybill;
  let tenant: LoadTenant;

  let port: number;

  const start = () =>
    startWaybill(home.path, {
      SMTP_URL: postfix.url,
      MAIL_LOG: postfix.log,
      // Postfix's own notifications come back, too, and must have no effect.
      MAIL_FROM: `no-reply@${BOUNCE_DOMAIN}`,
      OPERATOR_TOKEN,
      PORT: String(port),
      LOG_LEVEL: "error",
    });

  beforeAll(async () => {
    home = await temporaryHome();
    sink = await startMailSink();
    port = await freePort();
    const settings = { maximal_queue_lifetime: "10s", bounce_queue_lifetime: "10s" };
    postfix = await startPostfix({
      sinkPort: sink.port,
      settings,
      bounces: {
        domain: BOUNCE_DOMAIN,
        reportsUrl: `http://127.0.0.1:${port}/dash/api/mail-reports`,
        operatorToken: OPERATOR_TOKEN,
      },
    });
    waybill = await start();
    [tenant = { id: "", apiKey: "" }] = await createTenants(waybill, 1);
  }, 300_000);

  afterAll(async () => {
    await waybill?.kill();
    await postfix?.remove();
    await sink?.stop();
    await home?.remove();
  }, 90_000);

  async function send(to: string): Promise<string> {
    const body = { to_address: to, subject: "Hello", html: "<p>Hello</p>" };
    const answer = await waybill.request(tenant.apiKey, "POST", "/v1/send/email", body);
    expect(answer.status).toBe(202);
    return answer.body.job_id;
  }

  async function fetchEvents(jobId: string): Promise<{ event_type: string; result: Record<string, unknown> }[]> {
    return (await waybill.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}/events`)).body.events;
  }

  async function metric(name: string): Promise<number> {
    const text = await (await fetch(`${waybill.url}/metrics`)).text();
    return Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`waybill_${name} `))
        ?.split(" ")
        .pop() ?? 0,
    );
  }

  test(
    `each of ${MAILS} jobs gets the event that the log tells, over a rotation and kill -9, and no line is unmatched`,
    async () => {
      const jobs = new Map<string, string>();
      const submit = async (from: number, to: number) => {
        for (let i = from; i < to; i += 20) {
          const recipients = Array.from(
            { length: Math.min(20, to - i) },
            (_, k) => `${getKind(i + k)}${i + k}@far.test`,
          );
          const ids = await Promise.all(recipients.map(send));
          for (const [k, jobId] of ids.entries()) jobs.set(jobId, getKind(i + k));
        }
      };
      const startedMs = performance.now();
      await submit(0, Math.floor(MAILS / 2));
      expect(await metric('mail_log_outcomes_total{message="unmatched"}')).toBe(0);
      await postfix.rotateLog();
      await waybill.kill();
      waybill = await start();
      await submit(Math.floor(MAILS / 2), MAILS);
      const withinMs = 60_000 + 60 * MAILS;
      // Postfix defers every delivery that is in progress when it learns of the rotation, for five minutes.
      let flushedMs = Number.NEGATIVE_INFINITY;
      const flushNowAndThen = async () => {
        if (performance.now() - flushedMs < 2_000) return;
        await postfix.flush();
        flushedMs = performance.now();
      };
      for (const [jobId, kind] of jobs) {
        const outcome = OUTCOMES[kind] ?? [];
        const events = await eventually(
          `job ${jobId} (${kind}) has its last event`,
          async () => {
            const found = await fetchEvents(jobId);
            if (found.length >= outcome.length) return found;
            await flushNowAndThen();
            return null;
          },
          withinMs,
        );
        expect({ kind, types: events.map((event) => event.event_type) }).toEqual({ kind, types: [...outcome] });
      }
      const seconds = (performance.now() - startedMs) / 1000;
      const matched = await metric('mail_log_outcomes_total{message="ours"}');
      expect(matched).toBeGreaterThan(0);
      expect(await metric('mail_log_outcomes_total{message="unmatched"}')).toBe(0);
      expect(await metric("mail_log_lines_unreadable_total")).toBe(0);
      expect([...sink.received.keys()].filter((to) => /^(ok|grey)/.test(to))).toHaveLength(
        [...jobs.values()].filter((kind) => kind === "ok" || kind === "grey").length,
      );
      if (MAILS > 300) process.stdout.write(`${MAILS} mails, each with its last event, in ${seconds.toFixed(1)} s\n`);
    },
    120_000 + 120 * MAILS,
  );

  test("a bounce says what the destination said and keeps the address from being sent to; other failures do not", async () => {
    const refused = "550 5.1.1 Recipient address rejected: User unknown";
    const bounced = await send("nouser-once@far.test");
    const failed = await send("policy-once@far.test");
    const last = (jobId: string) =>
      eventually(`job ${jobId} has its last event`, async () => (await fetchEvents(jobId))[1], 30_000);
    expect(await last(bounced)).toMatchObject({
      event_type: "bounced",
      result: { code: 550, enhanced_code: "5.1.1", diagnostic: refused },
    });
    expect(await last(failed)).toMatchObject({
      event_type: "failed",
      result: { error: "550 5.7.1 Message rejected due to policy" },
    });
    const again = await Promise.all([send("nouser-once@FAR.test"), send("policy-once@far.test")]);
    const first = (jobId: string) =>
      eventually(`job ${jobId} has an event`, async () => (await fetchEvents(jobId))[0], 30_000);
    expect(await first(again[0])).toMatchObject({ event_type: "suppressed", result: { reason: "bounced" } });
    expect(await first(again[1])).toMatchObject({ event_type: "sent" });
  }, 300_000);

  test("bounces and complaints that come back by mail reach their jobs, late ones and Postfix's own", async () => {
    const late = { gone: await send("late-gone@far.test"), cross: await send("late-cross@far.test") };
    const refused = await send("nouser-twice@far.test");
    const has = (jobId: string, events: number) =>
      eventually(
        `job ${jobId} has ${events} events`,
        async () => {
          const found = await fetchEvents(jobId);
          return found.length >= events ? found.map((event) => event.event_type) : null;
        },
        90_000,
      );
    await Promise.all([has(late.gone, 2), has(late.cross, 2)]);
    const failure = { recipient: "late-gone@far.test", status: "5.1.1", diagnostic: "550 5.1.1 No such user here" };
    const { hostname, port: smtpPort } = new URL(postfix.url);
    const elsewhere = createTransport({ host: hostname, port: Number(smtpPort), ignoreTLS: true });
    const comeBack = (raw: string) => elsewhere.sendMail({ envelope: { from: "", to: [`b@${BOUNCE_DOMAIN}`] }, raw });
    await comeBack(buildNotification(sink.sources.get("late-gone@far.test") ?? "", failure));
    await comeBack(buildFeedback(sink.sources.get("late-cross@far.test") ?? ""));
    expect(await has(late.gone, 3)).toEqual(["sent", "delivered", "bounced"]);
    expect(await has(late.cross, 3)).toEqual(["sent", "delivered", "complained"]);
    const again = { gone: await send("late-gone@far.test"), cross: await send("late-cross@far.test") };
    expect(await has(again.gone, 1)).toEqual(["suppressed"]);
    expect(await has(again.cross, 1)).toEqual(["suppressed"]);

    // By now the notification of the same bounce has come back, which repeats the log's report.
    await has(refused, 2);
    const isBack = () => metric('mail_reports_total{result="taken"}').then((taken) => taken >= 3);
    await eventually("Postfix's own notification is taken", isBack, 30_000);
    expect(await has(refused, 2)).toEqual(["sent", "bounced"]);
  }, 300_000);
});
