import { postfixMissing } from "../../test/support/postfix.ts";
import { median } from "../load/latency.ts";
import {
  MAIL_CLIENTS,
  type MailBench,
  type MailClient,
  type MailLoad,
  type MailServer,
  mailBench,
} from "../load/mail.ts";
import { MAIL_SIZES } from "../load/mail-content.ts";
import type { MailRun } from "../load/mail-run.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

const CONNECTIONS = 20;
/** Mails per round: some seconds for each client. */
const MAILS = 6_000;
/** The CPU that a mail may cost, relative to nodemailer's pool. */
const CPU_RATIO_MAX = 1 / 3;

/**
 * Mails per second and CPU per mail of the e-mail channel, compared with nodemailer's pool and Postfix's own load
 * generator.
 */
export async function mail({ rounds, smoke }: SectionOptions): Promise<unknown> {
  const missing = postfixMissing();
  if (missing !== null) {
    console.log(`\nMail: left out. ${missing}`);
    return { missing };
  }
  const bench = await mailBench();
  const results: Record<string, unknown> = { rounds, messageBytes: bench.messageBytes };
  try {
    for (const server of bench.servers) {
      for (const size of MAIL_SIZES) {
        // A queue on disk costs the server the same, whatever the client.
        if (server.name === "Postfix" && size !== "small") continue;
        const load = { mails: smoke ? 200 : MAILS, connections: CONNECTIONS, size };
        results[`${server.name}, ${size}`] = await table(bench, server, load, rounds);
      }
    }
  } finally {
    await bench.stop();
  }
  return results;
}

async function table(bench: MailBench, server: MailServer, load: MailLoad, rounds: number): Promise<unknown> {
  const { mails, connections, size } = load;
  const bytes = bench.messageBytes[size];
  console.log(
    `\nMail: ${mails} of ${bytes} bytes to ${server.name} over ${connections} connections, ${rounds} rounds\n`,
  );
  const runs = new Map<MailClient, MailRun[]>(MAIL_CLIENTS.map((client) => [client, []]));
  for (let i = 0; i < rounds; i += 1) {
    for (const client of MAIL_CLIENTS) runs.get(client)?.push(await bench.round(client, server, load));
  }
  const of = (client: MailClient) => runs.get(client) ?? [];
  console.table(
    [...runs].map(([client, all]) => ({
      client,
      "mails/s": Math.round(median(all.map((run) => run.perSecond))),
      "CPU µs a mail": Math.round(median(all.map((run) => run.cpuMicros))),
      "of them on the loop": Math.round(median(all.map((run) => run.loopMicros))),
      "mails/s beside smtp-source": describeRatios(computeRatios(all, of("smtp-source"), (run) => run.perSecond)),
    })),
  );
  const unsigned = computeRatios(of("waybill"), of("nodemailer"), (run) => run.cpuMicros);
  const signed = computeRatios(of("waybill, signed"), of("nodemailer, signed"), (run) => run.cpuMicros);
  const isMet = median(unsigned) <= CPU_RATIO_MAX;
  console.log(
    `CPU a mail, waybill / nodemailer's pool: ${describeRatios(unsigned)}; at most a third: ${isMet ? "met" : "missed"}`,
  );
  console.log(`the same with each mail signed: ${describeRatios(signed)}`);
  return { runs: Object.fromEntries(runs), cpuRatios: { unsigned, signed }, isMet };
}
