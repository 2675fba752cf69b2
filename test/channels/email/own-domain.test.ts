import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmailChannel } from "../../../src/channels/email/email-channel.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import { type SmtpSandbox, startSmtpSandbox } from "../../../src/channels/email/sandbox/smtp-sandbox.ts";
import type { SandboxMessage } from "../../../src/domain/jobs/report.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { DnsServer } from "../../support/dns-server.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { TEST_KEY_RECORD, TEST_SELECTOR, verified } from "../../support/sending-domain.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, LINKS, parseHeaders } from "./email-world.ts";

const FROM = { address: "no-reply@waybill.test", name: "Waybill" };
const SENDER = { fromAddress: "shop@Acme.test", fromName: "Acme", smtpUrl: null };
const OWN = { emailSender: SENDER, domains: verified("acme.test") };

let sandbox: SmtpSandbox;
let channel: EmailChannel;
let dns: DnsServer;
let nth = 0;

beforeAll(async () => {
  dns = await DnsServer.start();
  dns.publish([{ type: "TXT", name: `${TEST_SELECTOR}._domainkey.acme.test`, value: TEST_KEY_RECORD }]);
  sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport: () => {} });
  channel = new EmailChannel({ smtpUrl: sandbox.url, defaultFrom: FROM, ...LINKS });
});

afterAll(async () => {
  channel.close();
  await sandbox.stop();
  await dns.stop();
});

async function arrived(tenant: Partial<Tenant>, payload: Partial<EmailPayload> = {}) {
  const to = `ana-${(nth += 1)}@example.test`;
  const job = emailJob({ to, toName: "Ána", subject: "Größe  42", html: "<p>Hello\t Ana </p>\n\n", ...payload });
  const outcome = await channel.deliver(job, aTenant(tenant), new AbortController().signal);
  expect(outcome.kind).toBe("delivered");
  const [message] = sandbox.inbox.messages(to, 10);
  if (message === undefined) throw new Error("nothing arrived");
  return { job, message };
}

/** The tags of the one DKIM signature. */
function parseSignature({ source }: SandboxMessage): Record<string, string> {
  const signatures = parseHeaders(source).filter(([name]) => name.toLowerCase() === "dkim-signature");
  expect(signatures).toHaveLength(1);
  const tags = (signatures[0]?.[1] ?? "").split(";").map((tag) => tag.trim());
  return Object.fromEntries(tags.map((tag) => [tag.slice(0, tag.indexOf("=")), tag.slice(tag.indexOf("=") + 1)]));
}

test("mail of the platform's sender is signed once its domain is verified, and bounces to its return path", async () => {
  const signed = verified("waybill.test").get("waybill.test")?.relay ?? null;
  const job = emailJob({ to: "ana-signed@example.test", subject: "Hello", html: "<p>Hello</p>" });
  let signing: typeof signed = null;
  const platform = new EmailChannel({
    smtpUrl: sandbox.url,
    defaultFrom: FROM,
    defaultSigning: () => signing,
    ...LINKS,
  });
  const deliver = () => platform.deliver(job, aTenant(), new AbortController().signal);
  expect((await deliver()).kind).toBe("delivered");
  signing = signed;
  expect((await deliver()).kind).toBe("delivered");
  platform.close();
  const [after, before] = sandbox.inbox.messages("ana-signed@example.test", 10);
  if (after === undefined || before === undefined) throw new Error("two messages should have arrived");
  expect(before.source).not.toContain("DKIM-Signature");
  expect(parseSignature(after)).toMatchObject({ d: "waybill.test", s: TEST_SELECTOR });
  expect([before.from, after.from]).toEqual([FROM.address, expect.stringContaining("@bounce.waybill.test")]);
});

describe("mail of a verified domain", () => {
  test("is signed by the domain, over every header that says who, to whom, what and how to unsubscribe", async () => {
    const signature = parseSignature((await arrived(OWN)).message);
    expect(signature).toMatchObject({ d: "acme.test", s: TEST_SELECTOR, a: "rsa-sha256", c: "relaxed/relaxed" });
    const signed = (signature["h"] ?? "").replace(/\s/g, "").split(":");
    expect(signed).toEqual(
      expect.arrayContaining([
        "from",
        "to",
        "subject",
        "date",
        "message-id",
        "mime-version",
        "content-type",
        "list-unsubscribe",
        "list-unsubscribe-post",
      ]),
    );
    // The signature covers the body's whole length, so no text can be appended to it.
    expect(signature["l"]).toBeUndefined();
  });

  test("has its bounces come to the domain's return path, where they name their job", async () => {
    const { job, message } = await arrived(OWN);
    expect(message.from).toBe(`b+${job.jobId}@bounce.acme.test`);
    expect(message.from.split("@")[0]?.length).toBeLessThanOrEqual(64);
    expect(new Map(parseHeaders(message.source)).get("From")).toBe("Acme <shop@acme.test>");
  });

  test("through the tenant's own relay has its bounces there, and is signed where its key is published", async () => {
    const own = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport: () => {} });
    const emailSender = { ...SENDER, smtpUrl: own.url };
    const relayOnly = new Map([["acme.test", { domain: "acme.test", relay: null, smtp: true }]]);
    try {
      for (const domains of [relayOnly, verified("acme.test")]) {
        const tenant = aTenant({ emailSender, domains, allowCustom: new Set(["email"]) });
        await channel.deliver(emailJob({ to: "x@y.test", html: "<p>x</p>" }), tenant, new AbortController().signal);
      }
      const messages = own.inbox.messages(null, 3);
      expect(messages.map(({ from }) => from.toLowerCase())).toEqual(["shop@acme.test", "shop@acme.test"]);
      expect(messages.map(({ source }) => source.includes("DKIM-Signature"))).toEqual([true, false]);
    } finally {
      await own.stop();
    }
  });
});

test("mail that cannot be signed is not sent unsigned", async () => {
  const [domain] = verified("acme.test").values();
  if (domain === undefined || domain.relay === null) throw new Error("the domain has a key");
  const broken = { ...domain, relay: { ...domain.relay, privateKeyPem: "no key at all" } };
  const job = emailJob({ to: "unsigned@example.test", html: "<p>x</p>" });
  const tenant = aTenant({ ...OWN, domains: new Map([["acme.test", broken]]) });
  const outcome = await channel.deliver(job, tenant, new AbortController().signal);
  expect(outcome).toMatchObject({ kind: "retry", isUnsent: true });
  expect(sandbox.inbox.messages("unsigned@example.test", 1)).toEqual([]);
});

test("mail of the platform's own sender is left to the platform's relay to sign", async () => {
  const { message } = await arrived({ domains: verified("acme.test") });
  expect(message.from).toBe("no-reply@waybill.test");
  expect(message.source).not.toContain("DKIM-Signature");
});

test.each([
  ["was never registered", { emailSender: SENDER }],
  [
    "is verified for another way than the mail would take",
    {
      emailSender: SENDER,
      domains: new Map([["acme.test", { domain: "acme.test", relay: null, smtp: true }]]),
    },
  ],
  ["is a parent of the verified one", { emailSender: SENDER, domains: verified("mail.acme.test") }],
])("nothing is sent from a domain that %s", async (_why, tenant) => {
  const job = emailJob({ to: "never@example.test", html: "<p>x</p>" });
  const outcome = await channel.deliver(job, aTenant(tenant), new AbortController().signal);
  expect(outcome).toEqual({ kind: "failed", error: "the domain acme.test is not verified any more" });
  expect(sandbox.inbox.messages("never@example.test", 1)).toEqual([]);
});

/** Debian's python3-dkim, which shares no code with the signer. */
const PYTHON = "/usr/bin/python3";
const hasDkimpy = Bun.spawnSync([PYTHON, "-c", "import dkim, dns.resolver"], { stderr: "ignore" }).exitCode === 0;
const skipped = hasDkimpy ? "" : " (skipped: python3-dkim and python3-dnspython are not installed)";

const VERIFIER = `
import sys, dkim, dns.resolver
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers, resolver.port = ["127.0.0.1"], int(sys.argv[1])
def txt(name, timeout=5):
    return b"".join(list(resolver.resolve(name.decode().rstrip("."), "TXT"))[0].strings)
for path in sys.argv[2:]:
    message = dkim.DKIM(open(path, "rb").read(), minkey=2048)
    try:
        print("pass" if message.verify(dnsfunc=txt) else "fail")
    except dkim.DKIMException:
        print("fail")
`;

test.skipIf(!hasDkimpy)(
  `an independent verifier passes what was sent, and nothing that was changed${skipped}`,
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-dkim-"));
    try {
      const { source } = (await arrived(OWN)).message;
      const long = (await arrived(OWN, { html: `<p>${"dot\n.\n..\n ".repeat(20_000)}</p>` })).message.source;
      const variants = [
        source,
        long,
        source.replace(/^From: .*$/m, "From: Acme <ceo@acme.test>"),
        source.replace(/^Subject: /m, "Subject: Re: "),
        source.replace(/^List-Unsubscribe-Post: .*$/im, "List-Unsubscribe-Post: List-Unsubscribe=Never"),
        source.replace(/^List-Unsubscribe: .*$/im, "List-Unsubscribe: <https://evil.test/>"),
        `${source.trimEnd()}\r\nand more\r\n`,
      ];
      expect(new Set(variants).size).toBe(variants.length);
      const paths = variants.map((_, index) => join(folder, `${index}.eml`));
      await Promise.all(variants.map((text, index) => writeFile(paths[index] ?? "", text, "utf8")));
      const python = Bun.spawn([PYTHON, "-c", VERIFIER, String(dns.port), ...paths], { stdout: "pipe" });
      const said = await new Response(python.stdout).text();
      expect(said.trim().split("\n")).toEqual(["pass", "pass", "fail", "fail", "fail", "fail", "fail"]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  90_000,
);
