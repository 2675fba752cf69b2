import { chatPath } from "../load/chat.ts";
import { describeLatency } from "../load/driver.ts";
import type { SectionOptions } from "./section.ts";

/** At a higher rate, the calm half of the comparison would not be calm on a small machine. */
const STEADY_RATE_MAX = 100;
const TROUBLED_SECONDS = 60;

export async function chat({ seconds, rate, smoke }: SectionOptions): Promise<unknown> {
  const steadyRate = Math.min(rate, STEADY_RATE_MAX);
  const result = await chatPath({ seconds, rate: steadyRate, troubledSeconds: smoke ? 2 : TROUBLED_SECONDS });
  console.log("\nChat: the embedded default against the sandbox Graph API, forty phone numbers, as fast as it goes\n");
  console.table([
    {
      "accepted/s": result.accept.perSecond,
      jobs: result.jobs,
      "sends/s": result.sendsPerSecond,
      "statuses/s until all are in the event store": result.statusesPerSecond,
    },
  ]);
  const { troubledSeconds, calmMs, throttledMs, failingMs, failingCallsPerSecond } = result;
  console.log(`\nIsolation: ${steadyRate} messages/s, from the request to the provider's acceptance, p50 / p99\n`);
  console.table([
    {
      "nobody throttled": describeLatency(calmMs),
      [`others, while one number is throttled for ${troubledSeconds} s`]: describeLatency(throttledMs),
      "others, while WhatsApp fails for it": describeLatency(failingMs),
      "calls/s to the failing number": failingCallsPerSecond,
    },
  ]);
  return result;
}
