/**
 * The baseline for the whole of Waybill: a route that queues with BullMQ, BullMQ's worker and nodemailer's pool in one
 * process. `bun bench/baseline/mail-peer.ts '<PeerOptions as JSON>'` prints its address.
 *
 * With `historyUrl`, each delivered mail becomes one row in PostgreSQL, written before the job is completed.
 */
import { Queue, Worker } from "bullmq";
import { SQL } from "bun";
import { Elysia, t } from "elysia";
import { Redis } from "ioredis";
import nodemailer from "nodemailer";
import { compileTemplate } from "./compile-template.ts";
import { sendBody } from "./send-body.ts";

export interface PeerOptions {
  readonly redisPath: string;
  readonly smtpUrl: string;
  readonly keys: readonly string[];
  readonly template: { readonly slug: string; readonly subject: string; readonly html: string; readonly text: string };
  readonly roles: "all" | "api";
  readonly historyUrl: string | null;
  readonly dkim: { readonly domain: string; readonly privateKeyPem: string } | null;
  /** Jobs in flight at one time, and connections to the mail server. */
  readonly concurrency: number;
  readonly connections: number;
}

interface MailJob {
  readonly tenant: string;
  readonly to_address: string;
  readonly to_name?: string;
  readonly template_id?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

// `startPeer` passes options of this form.
const options = JSON.parse(process.argv[2] ?? "{}") as PeerOptions;
const keys = new Map(options.keys.map((key, i) => [key, `tenant-${i}`]));
const connect = () => new Redis({ path: options.redisPath, maxRetriesPerRequest: null });

function startWorker(): void {
  const { smtpUrl, dkim, historyUrl, template, connections, concurrency } = options;
  const { hostname, port } = new URL(smtpUrl);
  const transport = nodemailer.createTransport({
    pool: true,
    host: hostname,
    port: Number(port),
    secure: false,
    ignoreTLS: true,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
    ...(dkim === null
      ? {}
      : { dkim: { domainName: dkim.domain, keySelector: "peer", privateKey: dkim.privateKeyPem } }),
  });
  const from = { name: "Shop", address: `orders@${dkim?.domain ?? "shop.example.test"}` };
  const templates = new Map([[template.slug, compileTemplate(template)]]);
  const history = historyUrl === null ? null : new SQL(historyUrl, { max: 20 });
  const send = async ({ id = "", data }: { id?: string; data: MailJob }) => {
    const content = templates.get(data.template_id ?? "")?.(data.data ?? {});
    if (content === undefined) throw new Error("no such template");
    const messageId = `<${id}.${data.tenant}@shop.example.test>`;
    await transport.sendMail({
      from,
      to: { name: data.to_name ?? "", address: data.to_address },
      messageId,
      ...content,
    });
    if (history !== null)
      await history`INSERT INTO events (tenant_id, job_id, type, result) VALUES (${data.tenant}, ${id}, 'sent', '{}')`;
    return {};
  };
  new Worker<MailJob>("email", send, { connection: connect(), concurrency });
}

const queue = new Queue<MailJob>("email", { connection: connect() });
if (options.roles === "all") startWorker();

const app = new Elysia().post(
  "/v1/send/email",
  async ({ headers, body, status }) => {
    const tenant = keys.get(headers["x-api-key"] ?? "");
    if (tenant === undefined) return status(401, { error: "unknown key" });
    const jobId = crypto.randomUUID();
    const retries = { attempts: 12, backoff: { type: "exponential", delay: 1000 } };
    // Finished jobs stay available as long as Waybill's.
    await queue.add("email", { tenant, ...body }, { jobId, ...retries, removeOnComplete: { age: 900 } });
    return status(202, { job_id: jobId, status: "pending" });
  },
  { body: sendBody(t) },
);
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
console.log(server.url.href);
