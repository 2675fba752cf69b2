import nodemailer from "nodemailer";
import type { Message } from "./book.ts";
import type { LoadContext } from "./soak-world.ts";
import { triedUntilDone } from "./tried-until-done.ts";

const TRIES = 8;
const TIMEOUT_MS = 20_000;
const JOB_ID = /queued as ([0-9a-f-]{36})/;

/** The server's reply: 250 with the job's id, a refusal, or none. */
interface Reply {
  readonly code: number;
  readonly text: string;
}

/**
 * One e-mail of a program that speaks only SMTP. Half of them send again, byte for byte, until there is a definite
 * reply.
 */
export async function submit(context: LoadContext): Promise<void> {
  const { dice, book, tenants, did } = context;
  const tenant = tenants.sender(dice);
  const message = book.ask(tenant.id, "email");
  const source = buildSource(message);
  const most = dice.chance(0.5) ? TRIES : 1;
  await triedUntilDone(context, { most, pauseMs: () => 500 + dice.between(0, 6_000) }, async () => {
    const { code, text } = await say(context, tenant.apiKey, { to: formatRecipient(message), source });
    did(`submitted by SMTP: ${code}`);
    const jobId = JOB_ID.exec(text)?.[1];
    // 4yz: temporary, and the outcome is uncertain; 5yz: permanent.
    const status = code === 250 && jobId !== undefined ? 202 : code >= 500 ? 400 : 0;
    book.answered(message, status, jobId);
    return status !== 0;
  });
}

async function say(
  { smtpPort }: LoadContext,
  apiKey: string,
  { to, source }: { readonly to: string; readonly source: string },
): Promise<Reply> {
  const mailer = nodemailer.createTransport({
    host: "127.0.0.1",
    port: smtpPort,
    requireTLS: true,
    // The server's certificate is self-signed.
    tls: { rejectUnauthorized: false },
    auth: { user: "soak", pass: apiKey },
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
  try {
    const { response } = await mailer.sendMail({ envelope: { from: FROM, to }, raw: source });
    return { code: 250, text: response };
  } catch (error) {
    const code: unknown = Reflect.get(Object(error), "responseCode");
    return { code: typeof code === "number" ? code : 0, text: "" };
  } finally {
    mailer.close();
  }
}

const FROM = "no-reply@waybill.test";

function formatRecipient({ seq }: Message): string {
  return `smtp${seq}@example.com`;
}

/** The same bytes each time. */
function buildSource(message: Message): string {
  const { seq } = message;
  const head = [
    `From: ${FROM}`,
    `To: ${formatRecipient(message)}`,
    `Subject: Number ${seq}`,
    `Message-ID: <soak-${seq}@shop.test>`,
    `X-Soak: ${seq}`,
    "MIME-Version: 1.0",
    "Content-Type: text/html; charset=utf-8",
  ];
  return [...head, "", "<p>Hello, this is a test.</p>", ""].join("\r\n");
}
