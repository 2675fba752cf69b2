import { describeLatency } from "../load/driver.ts";
import { median } from "../load/latency.ts";
import { type WebhookRound, type WebhookVariant, webhookTarget } from "../load/webhook.ts";
import type { SectionOptions } from "./section.ts";

const VARIANTS: readonly WebhookVariant[] = [
  { perBody: 1, isNamed: true },
  { perBody: 10, isNamed: true },
  { perBody: 100, isNamed: true },
  { perBody: 1, isNamed: false },
  { perBody: 100, isNamed: false },
];

/** The chat provider's signed calls until their 200: parsed, correlated and on disk. */
export async function webhook({ rounds, jobs, smoke }: SectionOptions): Promise<unknown> {
  const target = await webhookTarget();
  const variants = smoke ? VARIANTS.slice(-1) : VARIANTS;
  const runs = new Map(variants.map((variant) => [variant, [] as WebhookRound[]]));
  // The first run measures compilation, so it does not count.
  for (const variant of smoke ? [] : variants) await target.round(variant, Math.min(jobs, 4_000));
  for (let i = 0; i < rounds; i += 1) {
    for (const variant of variants) runs.get(variant)?.push(await target.round(variant, jobs));
  }
  await target.stop();
  console.log(`\nWebhook: ${jobs} statuses a round, 16 connections, one process, ${rounds} rounds\n`);
  console.table(
    [...runs].map(([{ perBody, isNamed }, all]) => ({
      "statuses a body": perBody,
      "found by": isNamed ? "the job it names" : "the message's id",
      "statuses/s": median(all.map((one) => one.statusesPerSecond)),
      "p50 / p99 of a call": describeLatency({
        p50: median(all.map((one) => one.latencyMs.p50)),
        p99: median(all.map((one) => one.latencyMs.p99)),
      }),
      "server CPU µs a status": median(all.map((one) => one.serverMicros)),
      "Redis CPU µs a status": median(all.map((one) => one.redisMicros)),
    })),
  );
  return [...runs].map(([variant, all]) => ({ ...variant, rounds: all }));
}
