import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { EmailChannel } from "../../../src/channels/email/email-channel.ts";
import type { MailMessage } from "../../../src/channels/email/mime/mail-message.ts";
import { LinesAndFiles } from "../../../src/channels/email/mime/message-rest.ts";
import type { AttachedFile, EmailPayload } from "../../../src/channels/email/payload.ts";
import { startSmtpSandbox } from "../../../src/channels/email/sandbox/smtp-sandbox.ts";
import { SmtpSession } from "../../../src/channels/email/smtp/smtp-session.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, inEachStep, LINKS } from "./email-world.ts";

const NEVER = new AbortController().signal;
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of open.splice(0).reverse()) await stop();
});

function file(filename: string, body: Uint8Array, more: Partial<AttachedFile> = {}) {
  const sha256 = new Bun.CryptoHasher("sha256").update(body).digest("hex");
  return { named: { filename, sha256, bytes: body.length, ...more }, body };
}

const PDF = file("Rechnung Ä.pdf", new Uint8Array(100_000).fill(7));
const LOGO = file("logo.png", new Uint8Array([1, 2, 3]), { contentId: "logo" });
const MAIL: EmailPayload = {
  to: "ann@example.test",
  subject: "s",
  html: '<p>Hello <img src="cid:logo"></p>',
  attachments: [PDF.named, LOGO.named],
};

async function world(get: (sha256: string) => Promise<Uint8Array | null>) {
  const sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport: () => {} });
  open.push(() => sandbox.stop());
  const defaultFrom = { address: "shop@shop.test", name: null };
  const contents = { get: (_ref: unknown, sha256: string) => get(sha256) };
  const channel = new EmailChannel({ ...LINKS, smtpUrl: sandbox.url, defaultFrom, contents });
  open.push(() => channel.close());
  return { deliver: () => channel.deliver(emailJob(MAIL), aTenant(), NEVER), inbox: sandbox.inbox };
}

test("a message carries its files, and the sandbox shows their names and sizes", async () => {
  const { deliver, inbox } = await world(
    async (sha256) => [PDF, LOGO].find(({ named }) => named.sha256 === sha256)?.body ?? null,
  );
  expect(await deliver()).toMatchObject({ kind: "delivered" });
  const [got] = inbox.messages("ann@example.test", 1);
  expect(got?.attachments).toEqual([
    { filename: "logo.png", bytes: 3 },
    { filename: "Rechnung Ä.pdf", bytes: 100_000 },
  ]);
  expect(got?.source).toContain("Content-ID: <logo>");
});

test.each([
  ["is gone", async () => null],
  ["is damaged", async () => new Uint8Array(3)],
])("a message whose attachment %s fails, and is not sent without it", async (what, get) => {
  const { deliver, inbox } = await world(get);
  expect(await deliver()).toMatchObject({ kind: "failed", error: expect.stringContaining(`Ä.pdf ${what}`) });
  expect(inbox.messages(null, 1)).toEqual([]);
});

test("while the store of files is away, the message waits", async () => {
  const { deliver } = await world(() => Promise.reject(new UnavailableError("away")));
  expect(await deliver()).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true });
});

describe("to a relay that reads slowly", () => {
  test("a file is encoded as far as the relay has read, not at once", async () => {
    const sockets: Socket[] = [];
    let isMessage = false;
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.write("220 here\r\n");
      socket.on("data", (chunk) => {
        if (isMessage) return;
        const text = chunk.toString("latin1");
        if (text.startsWith("DATA")) {
          isMessage = true;
          socket.write("354 go\r\n");
          socket.pause();
        } else socket.write("250 ok\r\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    open.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const host = "127.0.0.1";
    const place = { host, address: host, port, secure: false, user: "", password: "", ehloName: "send.test" };
    const timeouts = { turnMs: 1_000, connectMs: 2_000, readyMs: 4_000, ...inEachStep(10_000), idleMs: 1_000 };
    const session = new SmtpSession(place, timeouts, () => {});
    open.push(() => session.close());
    await session.open(NEVER);

    let made = 0;
    const rest = new LinesAndFiles([new Uint8Array(30 * 1024 * 1024), "\r\n"]);
    const chunks = rest.chunks.bind(rest);
    rest.chunks = function* (lines) {
      for (const chunk of chunks(lines)) {
        made += chunk.length;
        yield chunk;
      }
    };
    const mail: MailMessage = { from: "b@shop.test", to: "ann@example.test", text: "Subject: s\r\n\r\n", rest };
    const sent = session.send(mail, NEVER).catch(() => "given up");
    await eventually("the message begins", () => isMessage && made > 0);
    // Only as much is made as fits into the buffers of two sockets, until the relay reads on.
    let before = -1;
    await eventually("nothing more is made", () => {
      const isStill = made === before;
      before = made;
      return isStill;
    });
    expect(made).toBeLessThan(rest.bytes / 2);
    session.close();
    expect(await sent).toBe("given up");
  });
});
