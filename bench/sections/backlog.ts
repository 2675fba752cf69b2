import { type BacklogRound, measureBacklog } from "../load/backlog.ts";
import { measureHistory } from "../load/history.ts";
import { median, round } from "../load/latency.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

/** Whether existing data slows Waybill down: queued jobs, and days of history. */
export async function backlog({ rounds, seconds, smoke }: SectionOptions): Promise<unknown> {
  const queued = smoke ? 500 : Number(process.env["BACKLOG_QUEUED"] ?? 1_000_000);
  const eventsPerDay = smoke ? 500 : Number(process.env["BACKLOG_EVENTS_A_DAY"] ?? 200_000);
  const queue = await measureBacklog({ queued, rounds, seconds });
  console.log(`\nBacklog: accepting for ${seconds} s, then delivering as many to a channel that does nothing\n`);
  console.table([...queue.rounds].map(([size, all]) => queueRow(size, all)));
  const [empty = [], full = []] = queue.rounds.values();
  const ratios = {
    accept: computeRatios(full, empty, (one) => one.acceptedPerSecond),
    dispatch: computeRatios(full, empty, (one) => one.dispatchedPerSecond),
  };
  console.log(`with ${queued} queued / empty: accept ${describeRatios(ratios.accept)}`);
  console.log(`with ${queued} queued / empty: dispatch ${describeRatios(ratios.dispatch)}`);
  console.log(`Redis bytes a queued job: ${queue.bytesPerJob}`);

  const days = smoke ? [1] : [1, 30];
  const history = await measureHistory({ days, eventsPerDay, rounds });
  console.log(`\nHistory: ${eventsPerDay} events a day\n`);
  console.table(
    history.map(({ pageMs, ...one }) => ({
      days: one.days,
      events: one.events,
      "recorded/s": one.recordedPerSecond,
      "CPU µs an event": one.recordMicros,
      "page of 100, p50 / p99, ms": `${pageMs.p50} / ${pageMs.p99}`,
      "bytes an event / a job": `${one.bytesPerEvent} / ${one.bytesPerJob}`,
    })),
  );
  return { queued, queue: { ...queue, rounds: Object.fromEntries(queue.rounds) }, ratios, history };
}

function queueRow(queued: number, all: readonly BacklogRound[]) {
  const computeMedian = (value: (one: BacklogRound) => number) => round(median(all.map(value)), 1);
  return {
    queued,
    "accepted/s": computeMedian((one) => one.acceptedPerSecond),
    "accept p50 / p99, ms": `${computeMedian((one) => one.acceptMs.p50)} / ${computeMedian((one) => one.acceptMs.p99)}`,
    "dispatched/s": computeMedian((one) => one.dispatchedPerSecond),
    "dispatch, Redis CPU µs": computeMedian((one) => one.redisMicros),
  };
}
