import { measureRecorder } from "../load/recorder.ts";
import type { SectionOptions } from "./section.ts";

export async function recorder({ seconds, smoke }: SectionOptions): Promise<unknown> {
  const report = await measureRecorder({
    rates: [2, 100, 1000, 5000],
    seconds: smoke ? 1 : seconds * 3,
    backlog: smoke ? 2000 : 100_000,
  });
  console.log("\nRecorder: from a job's end until its event can be read, the embedded default's 16 shards, ms\n");
  console.table(
    report.visibility.map(({ perSecond, events, ms, insertsPerSecond, cores }) => {
      return { "events/s": perSecond, events, ...ms, "inserts/s": insertsPerSecond, cores };
    }),
  );
  const { events, perSecond } = report.catchUp;
  console.log(`catching up with ${events} events: ${perSecond}/s`);
  return report;
}
