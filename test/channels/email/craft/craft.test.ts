import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import PostalMime from "postal-mime";
import { makeDkimKey } from "../../../../src/channels/email/domains/dkim-key.ts";
import { EmailChannel } from "../../../../src/channels/email/email-channel.ts";
import { acceptEmail } from "../../../../src/channels/email/request.ts";
import { type SmtpSandbox, startSmtpSandbox } from "../../../../src/channels/email/sandbox/smtp-sandbox.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";
import { aTenant } from "../../../support/tenants.ts";
import { emailJob, LINKS } from "../email-world.ts";
import { BUSINESS_MAILS, type BusinessMail } from "./business-mails.ts";

/*
 * How our mail is built, judged by other projects' programs: a spam filter, a checker of signatures, and two parsers.
 */

const PYTHON = "/usr/bin/python3";
const HERE = import.meta.dir;
const missing = [
  ["/usr/bin/spamassassin", "spamassassin"],
  ["/usr/lib/python3/dist-packages/dkim/__init__.py", "python3-dkim"],
].find(([path = ""]) => !existsSync(path))?.[1];

/** The points of rules that are only informational. */
const INFORMAL = 0.01;
const UNTRACKED = { opens: false, clicks: false };
const FROM = { address: "orders@shop.example", name: "Bürgi & Söhne" };

interface Examined {
  readonly defects: readonly string[];
  readonly head: Readonly<Record<string, string>>;
  readonly names: readonly string[];
  readonly types: readonly string[];
  readonly texts: readonly string[];
  readonly files: readonly {
    readonly filename: string;
    readonly id: string | null;
    readonly type: string;
    readonly sha256: string;
  }[];
  readonly isSigned: boolean;
}

async function said(command: readonly string[], input: string): Promise<string> {
  const child = Bun.spawn([...command], { stdin: Buffer.from(input), stdout: "pipe", stderr: "pipe" });
  const [out, complaint] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect({ code: await child.exited, complaint }).toEqual({ code: 0, complaint: "" });
  return out;
}

const sha256 = (body: string | Uint8Array) => new Bun.CryptoHasher("sha256").update(body).digest("hex");
/** Line ends are the parsers' own, including a last one. */
const withLf = (text: string) => text.replaceAll("\r\n", "\n").trimEnd();

describe.skipIf(missing !== undefined)(
  missing === undefined ? "ten business mails" : `${missing} is not installed`,
  () => {
    let sandbox: SmtpSandbox;
    let channel: EmailChannel;
    /** Once without tracking, and once with it. */
    const sources: string[] = [];
    const tracked: string[] = [];
    let found: readonly Examined[] = [];
    const contents = new Map<string, Uint8Array>();

    beforeAll(async () => {
      const { publicKey, privateKeyPem } = await makeDkimKey();
      const key = { selector: "test", privateKeyPem, returnPathHost: "bounce.shop.example" };
      sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport: () => {} });
      channel = new EmailChannel({
        ...LINKS,
        publicUrl: "https://send.shop.example",
        smtpUrl: sandbox.url,
        defaultFrom: FROM,
        defaultSigning: () => key,
        contents: { get: async (_ref, name) => contents.get(name) ?? null },
      });
      for (const { body } of BUSINESS_MAILS) {
        sources.push(await sent({ ...body, tracking: UNTRACKED }));
        tracked.push(await sent(body));
      }
      const mails = [...sources, ...tracked].map((source) => Buffer.from(source, "latin1").toString("base64"));
      found = JSON.parse(await said([PYTHON, join(HERE, "examine.py")], JSON.stringify({ key: publicKey, mails })));
    }, 90_000);
    afterAll(async () => {
      channel?.close();
      await sandbox?.stop();
    });

    /** The mail as a relay received it after the usual acceptance and delivery. */
    async function sent(body: object): Promise<string> {
      const accepted = acceptEmail(aTenant(), body);
      if (!accepted.ok) throw new Error(accepted.refusal.message);
      for (const { sha256: name, body: bytes } of accepted.contents ?? []) contents.set(name, bytes);
      const job = { ...emailJob(accepted.job.payload), recipient: accepted.job.recipient };
      expect((await channel.deliver(job, aTenant(), new AbortController().signal)).kind).toBe("delivered");
      const [message] = sandbox.inbox.messages(accepted.job.recipient, 1);
      if (message === undefined) throw new Error("nothing arrived");
      return message.source;
    }

    const each = (check: (mail: BusinessMail, at: number) => void) => {
      for (const [at, mail] of BUSINESS_MAILS.entries()) check(mail, at);
    };

    test("no spam filter holds anything against a mail without tracking, nor against one with it but for the pixel", async () => {
      const input = [...sources, ...tracked].map((source) => Buffer.from(source, "latin1").toString("base64"));
      const lines = (await said(["perl", join(HERE, "score.pl")], `${input.join("\n")}\n`)).trimEnd().split("\n");
      expect(lines).toHaveLength(input.length);
      const hits = lines.map((line) => line.split(" ").filter((rule) => Number(rule.split("=")[1]) > INFORMAL));
      expect(hits.slice(0, sources.length)).toEqual(sources.map(() => []));
      // Any picture in a short mail costs points.
      const ofPixel = hits.slice(sources.length).flat();
      expect(ofPixel.filter((rule) => !/^(?:HTML_IMAGE_ONLY_\d+|T_REMOTE_IMAGE)=/.test(rule))).toEqual([]);
    }, 90_000);

    test("both parsers read what was sent, and find no defect", async () => {
      for (const [at, { body, types }] of BUSINESS_MAILS.entries()) {
        const seen = found[at];
        expect([body.subject, seen?.defects, seen?.types]).toEqual([body.subject, [], types]);
        const email = await PostalMime.parse(Buffer.from(sources[at] ?? "", "latin1"));
        expect([seen?.head["subject"], email.subject]).toEqual([body.subject, body.subject]);
        expect(email.from).toEqual(FROM);
        expect(email.to).toEqual([{ address: body.to_address, name: body.to_name ?? "" }]);
        expect(email.cc ?? []).toEqual([...(body.cc ?? [])]);
        const html = withLf(body.html ?? "");
        const texts = (seen?.texts ?? []).map(withLf);
        if (body.html !== undefined) expect([texts[1], withLf(email.html ?? "")]).toEqual([html, html]);
        if (body.text !== undefined)
          expect([texts[0], withLf(email.text ?? "")]).toEqual([withLf(body.text), withLf(body.text)]);
        const files = (body.attachments ?? []).map(({ filename, content }) => [
          filename,
          sha256(Buffer.from(content, "base64")),
        ]);
        expect(seen?.files.map((file) => [file.filename, file.sha256])).toEqual(files);
        // It converts the line ends of a calendar.
        const theirs = email.attachments.map(({ filename }) => filename);
        expect(theirs).toEqual(files.map(([filename = ""]) => filename));
        for (const [name, value] of Object.entries(body.headers ?? {}))
          expect(seen?.head[name.toLowerCase()]).toBe(value);
      }
    });

    test("signatures hold, lines fit, and each header is there once", () => {
      each(({ name }, at) => {
        for (const [seen, source = ""] of [
          [found[at], sources[at]],
          [found[at + sources.length], tracked[at]],
        ] as const) {
          expect([name, seen?.isSigned, seen?.defects]).toEqual([name, true, []]);
          const lines = source.split("\r\n");
          expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(998);
          expect(/^[\r\n\t\x20-\x7e]*$/.test(source) && !/[\r\n]/.test(lines.join(""))).toBe(true);
          const names = seen?.names ?? [];
          expect(new Set(names).size).toBe(names.length);
          for (const needed of [
            "from",
            "to",
            "subject",
            "date",
            "message-id",
            "mime-version",
            "content-type",
            "dkim-signature",
          ]) {
            expect(names).toContain(needed);
          }
        }
      });
    });

    test("a mail without tracking has no address of ours but the one that unsubscribes", () => {
      each((_mail, at) => {
        expect(found[at]?.texts.join("")).not.toContain("send.shop.example");
        expect(sources[at]).not.toContain("/t/");
      });
    });
  },
);
