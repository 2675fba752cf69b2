import { startCountingSink } from "../../test/support/counting-sink.ts";
import { startPostfix } from "../../test/support/postfix.ts";
import { startChild } from "./child.ts";
import type { MailSize } from "./mail-content.ts";
import type { MailRun } from "./mail-run.ts";
import { startSmtpSink } from "./smtp-sink.ts";

export interface MailServer {
  readonly name: "smtp-sink" | "Postfix";
  readonly url: string;
}

export const MAIL_CLIENTS = ["waybill", "nodemailer", "waybill, signed", "nodemailer, signed", "smtp-source"] as const;
export type MailClient = (typeof MAIL_CLIENTS)[number];

export interface MailLoad {
  readonly mails: number;
  readonly connections: number;
  readonly size: MailSize;
}

export interface MailBench {
  readonly servers: readonly MailServer[];
  /** Bytes of the channel's unsigned message; `smtp-source` sends messages of the same size. */
  readonly messageBytes: Readonly<Record<MailSize, number>>;
  round(client: MailClient, server: MailServer, load: MailLoad): Promise<MailRun>;
  stop(): Promise<void>;
}

/**
 * The e-mail channel, nodemailer's own pool (both with and without DKIM), and Postfix's own load generator: the same
 * number of connections, kept open, and messages of the same content or size, to a sink that accepts everything and to
 * a Postfix that queues them on disk and then discards them.
 */
export async function mailBench(): Promise<MailBench> {
  const one = { mails: 1, connections: 1 };
  const measureBytes = (size: MailSize) => bytesTaken((url) => worker("waybill", url, { ...one, size }));
  const messageBytes = { small: await measureBytes("small"), "6 KB": await measureBytes("6 KB") };
  const generated = await bytesTaken((url) => smtpSource(url, { ...one, size: "small" }, 1000));
  const sink = await startSmtpSink();
  // Queued as in production; delivered nowhere.
  const settings = { transport_maps: "", default_transport: "discard:" };
  const postfix = await startPostfix({ sinkPort: 9, settings });
  return {
    servers: [
      { name: "smtp-sink", url: sink.url },
      { name: "Postfix", url: postfix.url },
    ],
    messageBytes,
    round(client, { url }, load) {
      if (client !== "smtp-source") return worker(client, url, load);
      return smtpSource(url, load, messageBytes[load.size] - (generated - 1000));
    },
    async stop() {
      await sink.stop();
      await postfix.remove();
    },
  };
}

async function worker(client: MailClient, url: string, { mails, connections, size }: MailLoad): Promise<MailRun> {
  const script = client.startsWith("waybill") ? "bench/load/mail-worker.ts" : "bench/baseline/nodemailer-pool.ts";
  const args = [url, String(mails), String(connections), client.endsWith("signed") ? "1" : "0", size];
  const child = await startChild(script, args);
  await child.stop();
  // The worker prints one.
  return JSON.parse(child.firstLine) as MailRun;
}

async function smtpSource(url: string, { mails, connections }: MailLoad, payloadBytes: number): Promise<MailRun> {
  const { hostname, port } = new URL(url);
  const addresses = ["-f", "orders@shop.example.test", "-t", "ann.example@customer.example.com"];
  const counts = ["-s", String(connections), "-m", String(mails), "-l", String(payloadBytes)];
  const startedMs = performance.now();
  const child = Bun.spawn(["smtp-source", "-d", ...addresses, ...counts, `${hostname}:${port}`], { stdout: "ignore" });
  if ((await child.exited) !== 0) throw new Error("smtp-source failed");
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuMicros = Number(child.resourceUsage()?.cpuTime.total ?? Number.NaN);
  return { perSecond: mails / seconds, cpuMicros: cpuMicros / mails, loopMicros: Number.NaN };
}

/** The size of a message that a client sends. */
async function bytesTaken(send: (url: string) => Promise<unknown>): Promise<number> {
  const sink = await startCountingSink();
  await send(sink.url);
  await sink.stop();
  return sink.bytes();
}
