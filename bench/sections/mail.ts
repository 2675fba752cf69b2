import { postfixMissing } from "../../test/support/postfix.ts";
import { median, round } from "../load/latency.ts";
import { MAIL_CLIENTS, type MailClient, type MailRun, mailBench } from "../load/mail.ts";
import { describeRatios, ratiosOf } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

const CONNECTIONS = 20;
/** Mails of a round: some seconds for each client. */
const MAILS = 2_000;

/** Mails a second through the e-mail channel, beside Postfix's own load generator. */
export async function mail({ rounds, smoke }: SectionOptions): Promise<unknown> {
  const missing = postfixMissing();
  if (missing !== null) {
    console.log(`\nMail: left out. ${missing}`);
    return { missing };
  }
  const load = { mails: smoke ? 200 : MAILS, connections: CONNECTIONS };
  const bench = await mailBench();
  const results: Record<string, unknown> = { ...load, messageBytes: bench.messageBytes };
  try {
    const { mails, connections } = load;
    const what = `${mails} mails of ${bench.messageBytes} bytes over ${connections} connections, ${rounds} rounds`;
    console.log(`\nMail: ${what}\n`);
    for (const server of bench.servers) {
      const runs = new Map<MailClient, MailRun[]>(MAIL_CLIENTS.map((client) => [client, []]));
      for (let i = 0; i < rounds; i += 1) {
        for (const client of MAIL_CLIENTS) runs.get(client)?.push(await bench.round(client, server, load));
      }
      const generated = runs.get("smtp-source") ?? [];
      console.table(
        [...runs].map(([client, all]) => ({
          server: server.name,
          client,
          "mails/s": Math.round(median(all.map((run) => run.perSecond))),
          "client CPU ms/mail": round(median(all.map((run) => run.cpuMsPerMail))),
          "beside smtp-source": describeRatios(ratiosOf(all, generated, (run) => run.perSecond)),
        })),
      );
      results[server.name] = Object.fromEntries(runs);
    }
  } finally {
    await bench.stop();
  }
  return results;
}
