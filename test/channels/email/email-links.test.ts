import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { EmailChannel } from "../../../src/channels/email/email-channel.ts";
import { emailLimits } from "../../../src/channels/email/limits.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import { type SmtpSandbox, startSmtpSandbox } from "../../../src/channels/email/sandbox/smtp-sandbox.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { limits } from "../../../src/domain/limits.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, LINKS, linkTokens, parseHeaders, parseParts } from "./email-world.ts";

const NEVER = new AbortController().signal;
const FROM = { address: "no-reply@waybill.test", name: null };
let sandbox: SmtpSandbox;
let channel: EmailChannel;
let nth = 0;

beforeAll(async () => {
  sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport: () => {} });
  channel = new EmailChannel({ smtpUrl: sandbox.url, defaultFrom: FROM, ...LINKS });
});
afterAll(async () => {
  channel.close();
  await sandbox.stop();
});

/** Delivers to a new recipient, and returns the job and the message that arrived. */
async function arrived(payload: Omit<EmailPayload, "to">, through = channel, of?: QueuedJob, tenant = aTenant()) {
  const to = `Reader-${(nth += 1)}@example.test`;
  const job = { ...(of ?? emailJob("{}")), payload: JSON.stringify({ ...payload, to }), recipient: to.toLowerCase() };
  expect((await through.deliver(job, tenant, NEVER)).kind).toBe("delivered");
  const [message] = sandbox.inbox.messages(to, 1);
  if (message === undefined) throw new Error("nothing arrived");
  return { job, source: message.source, headers: new Map(parseHeaders(message.source)) };
}

test("every e-mail offers one-click unsubscribing, for the very recipient, in lines that mail servers take", async () => {
  const { job, source, headers } = await arrived({ subject: "s", html: "<p>Hi</p>" });
  expect(headers.get("List-Unsubscribe-Post")).toBe("List-Unsubscribe=One-Click");
  const [, token = ""] = /^<https:\/\/send\.test\/u\/([\w-]+)>$/.exec(headers.get("List-Unsubscribe") ?? "") ?? [];
  const { tenantId, jobId, recipient } = job;
  expect(linkTokens.read("unsubscribe", token)).toEqual({ purpose: "unsubscribe", tenantId, jobId, recipient });
  expect(Math.max(...source.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
});

test("links lead past us and carry their own address, and the text alternative keeps it", async () => {
  const html =
    '<body><a href="https://x.test/?q={{.q}}&amp;b=2">shop</a> <a data-no-track href="https://y.test/">y</a></body>';
  const { job, source } = await arrived({ subject: "s", html, data: { q: "a&b" } });
  const parts = parseParts(source);
  const sent = parts["text/html"] ?? "";
  const [, click = ""] = /<a href="https:\/\/send\.test\/t\/c\/([\w-]+)">shop<\/a>/.exec(sent) ?? [];
  const [, open = ""] = /<img src="https:\/\/send\.test\/t\/o\/([\w-]+)\.gif"[^>]*><\/body>$/.exec(sent) ?? [];
  const { tenantId, jobId } = job;
  expect(linkTokens.read("click", click)).toEqual({
    purpose: "click",
    tenantId,
    jobId,
    url: "https://x.test/?q=a&b&b=2",
  });
  expect(linkTokens.read("open", open)).toEqual({ purpose: "open", tenantId, jobId });
  expect(sent).toContain('<a data-no-track href="https://y.test/">y</a>');
  expect(parts["text/plain"]).toContain("https://x.test/?q=a&b&b=2");
  expect(parts["text/plain"]).not.toContain("send.test");
});

test("a repeated delivery sends the very same links", async () => {
  const payload = { subject: "s", html: '<a href="https://x.test/">x</a>' };
  const first = await arrived(payload);
  const again = await arrived(payload, channel, first.job);
  expect(parseParts(again.source)["text/html"]).toBe(parseParts(first.source)["text/html"] ?? "");
});

test("an address that is too long for a link, and links beyond the bound, stay as they are", async () => {
  const long = `https://x.test/${"a".repeat(limits.linkUrlBytesMax)}`;
  const many = Array.from({ length: emailLimits.trackedLinksMax + 3 }, (_, i) => `<a href="https://x.test/${i}">x</a>`);
  const { source } = await arrived({ subject: "s", html: `<a href="${long}">long</a>${many.join("\n")}` });
  const sent = parseParts(source)["text/html"] ?? "";
  expect(sent).toContain(long);
  expect(sent.match(/send\.test\/t\/c\//g)).toHaveLength(emailLimits.trackedLinksMax);
  expect(sent.match(/href="https:\/\/x\.test\/\d+"/g)).toHaveLength(3);
});

test("a public address with a path, a port or a slash at its end begins every link once", async () => {
  const other = new EmailChannel({
    smtpUrl: sandbox.url,
    defaultFrom: FROM,
    ...LINKS,
    publicUrl: "http://127.0.0.1:3000/mail/",
  });
  const { headers } = await arrived({ subject: "s", html: "<p>x</p>" }, other);
  expect(headers.get("List-Unsubscribe")).toMatch(/^<http:\/\/127\.0\.0\.1:3000\/mail\/u\/[\w-]+>$/);
  other.close();
});

describe("what is tracked", () => {
  const html = "<body><p>{{.name}}</p><a href=https://x.test/?a=1&amp;b=2>shop</a></body>";
  const filled = html.replace("{{.name}}", "Ann");
  const clean = { opens: false, clicks: false };

  async function checkTracking(payload: object, choices: { template?: object; tenant?: object } = {}) {
    const { template, tenant } = choices;
    const known = { subject: "s", html, text: null, ...(template && { tracking: template }) };
    const emailTemplates = new Map([["t", known]]);
    const of = aTenant({ emailTemplates, ...(tenant && { tracking: tenant }) });
    const mail = { template: "t", data: { name: "Ann" }, ...payload };
    const { source } = await arrived(mail, channel, undefined, of);
    const sent = parseParts(source)["text/html"] ?? "";
    return { opens: sent.includes("/t/o/"), clicks: sent.includes("/t/c/"), sent };
  }

  test("is everything where nobody says otherwise", async () => {
    expect(await checkTracking({})).toMatchObject({ opens: true, clicks: true });
  });

  test.each([{ opens: false }, { clicks: false }, clean])(
    "of %j only what is said is left out, and stays as it was written",
    async (tracking) => {
      const { sent, ...seen } = await checkTracking({ tracking });
      expect(seen).toEqual({ opens: true, clicks: true, ...tracking });
      if (!seen.opens && !seen.clicks) expect(sent).toBe(filled);
    },
  );

  test("is what the message says, or else its template, or else the tenant, each member by itself", async () => {
    const seen = await checkTracking({ tracking: { opens: true } }, { template: clean, tenant: { clicks: true } });
    expect(seen).toMatchObject({ opens: true, clicks: false });
    expect(await checkTracking({}, { tenant: clean })).toMatchObject(clean);
    expect(await checkTracking({}, { template: { opens: true }, tenant: clean })).toMatchObject({
      opens: true,
      clicks: false,
    });
    // A template that only lends its subject leaves tracking undecided.
    expect(await checkTracking({ template: undefined, html, subject: "s" }, { template: clean })).toMatchObject({
      opens: true,
    });
  });

  test("of HTML whose tags depend on values is left out, too", async () => {
    const { sent } = await checkTracking({
      template: undefined,
      html: "<p {{.attributes}}>x</p><a href='https://x.test/'>y</a>",
      tracking: clean,
    });
    expect(sent).toBe("<p >x</p><a href='https://x.test/'>y</a>");
  });
});
