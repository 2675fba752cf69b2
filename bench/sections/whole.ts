import { postfixMissing } from "../../test/support/postfix.ts";
import { postgresMissing } from "../../test/support/postgres.ts";
import { type Burst, burst } from "../load/burst.ts";
import { describeLatency } from "../load/driver.ts";
import { median, round } from "../load/latency.ts";
import { type OpenLoop, openLoop } from "../load/open-loop.ts";
import { type SmtpSink, startSmtpSink } from "../load/smtp-sink.ts";
import { peerSide, type Side, waybillSide } from "../load/whole-sides.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

const TENANTS = 20;
/** Mails that do not count: a fresh process compiles its code. */
const WARM_UP_MAILS = 500;
const OPEN_LOOP_PER_SECOND = 1_000;

/** The whole path, `npm start` with its defaults, compared with the baseline. */
export async function whole({ rounds, seconds, smoke }: SectionOptions): Promise<unknown> {
  const missing = postfixMissing();
  if (missing !== null) {
    console.log(`\nWhole path: left out. ${missing}`);
    return { missing };
  }
  const readSize = (name: string, usual: number, small: number) => (smoke ? small : Number(process.env[name] ?? usual));
  const mails = readSize("WHOLE_MAILS", 12_000, 200);
  const backlog = readSize("WHOLE_BACKLOG", 40_000, 500);
  const fewer = Math.max(1, Math.ceil(rounds / 2));
  const sink = await startSmtpSink();
  const options = { sink, tenants: TENANTS, isSigned: false };
  const ours = await waybillSide(options);
  // A smoke run needs only one form of the peer, the one that has everything.
  const plain = smoke ? [] : [await peerSide({ ...options, withHistory: false })];
  const history = postgresMissing() === null ? [await peerSide({ ...options, withHistory: true })] : [];
  try {
    const bursts = await bursting("a burst", [ours, ...plain, ...history], { sink, rounds, mails });
    const loops = await steadily([ours, ...plain], {
      rounds: fewer,
      load: { backlog, perSecond: smoke ? 50 : OPEN_LOOP_PER_SECOND, seconds },
    });
    // The same code as without signatures plus seconds of signing: by now it is known to run.
    const signed = smoke ? null : await signing(sink, fewer, Math.ceil(mails / 4));
    return { mails, bursts, signed, openLoop: loops };
  } finally {
    for (const side of [ours, ...plain, ...history]) await side.end();
    await sink.stop();
  }
}

async function signing(sink: SmtpSink, rounds: number, mails: number): Promise<unknown> {
  const options = { sink, tenants: TENANTS, isSigned: true };
  const sides = [await waybillSide(options), await peerSide({ ...options, withHistory: false })];
  try {
    return await bursting("a burst, signed with RSA-2048", sides, { sink, rounds, mails });
  } finally {
    for (const side of sides) await side.end();
  }
}

interface BurstLoad {
  readonly sink: SmtpSink;
  readonly rounds: number;
  readonly mails: number;
}

async function bursting(what: string, sides: readonly Side[], { sink, rounds, mails }: BurstLoad): Promise<unknown> {
  const runs = new Map(sides.map((side) => [side.name, [] as Burst[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const side of sides) runs.get(side.name)?.push(await oneBurst(side, sink, mails));
  }
  console.log(`\nWhole path, ${what}: ${mails} mails over 64 connections to smtp-sink, ${rounds} rounds\n`);
  console.table([...runs].map(([side, all]) => burstRow(side, all)));
  console.table([...runs].flatMap(([side, all]) => cpuRows(side, all)));
  const [[, ours = []] = [], ...others] = [...runs];
  const ratios = Object.fromEntries(
    others.map(([name, theirs]) => [name, computeRatios(ours, theirs, (one) => one.perSecond)]),
  );
  for (const [name, all] of Object.entries(ratios)) console.log(`waybill / ${name}: ${describeRatios(all)}`);
  // A busy machine changes these less than rates.
  const cpuRatios = Object.fromEntries(others.map(([name, theirs]) => [name, computeRatios(theirs, ours, sumCpu)]));
  for (const [name, all] of Object.entries(cpuRatios))
    console.log(`CPU a mail, ${name} / waybill: ${describeRatios(all)}`);
  return { rounds: Object.fromEntries(runs), ratios, cpuRatios };
}

/** CPU of all processes of a side, including Redis and history; driver and mail server are the same for all. */
function sumCpu({ cpu }: Burst): number {
  return cpu.reduce((sum, { label, micros }) => sum + (label === "driver" || label === "smtp-sink" ? 0 : micros), 0);
}

async function oneBurst(side: Side, sink: SmtpSink, mails: number): Promise<Burst> {
  const running = await side.start();
  try {
    await burst(running, sink, Math.min(mails, WARM_UP_MAILS));
    return await burst(running, sink, mails);
  } finally {
    await running.stop();
  }
}

function burstRow(side: string, all: readonly Burst[]): Record<string, string | number> {
  const computeMedian = (value: (one: Burst) => number) => round(median(all.map(value)), 1);
  return {
    side,
    "mails/s, end to end": computeMedian((one) => one.perSecond),
    "accepted/s": computeMedian((one) => one.acceptedPerSecond),
    "accept p50 / p99, ms": `${computeMedian((one) => one.acceptMs.p50)} / ${computeMedian((one) => one.acceptMs.p99)}`,
    "s until its history is whole": computeMedian((one) => one.historySeconds),
    "Redis CPU µs": computeMedian((one) => one.redisMicros),
    "bytes appended": computeMedian((one) => one.redisBytesWritten),
  };
}

/** CPU per mail by process; for a JavaScript process, also the part of its event loop's thread. */
function cpuRows(side: string, all: readonly Burst[]): Record<string, string | number>[] {
  const labels = [...new Set(all.flatMap((one) => one.cpu.map(({ label }) => label)))];
  return labels.map((label) => {
    const shares = all.flatMap((one) => one.cpu.filter((share) => share.label === label));
    return {
      side,
      process: label,
      "CPU µs a mail": round(median(shares.map((share) => share.micros)), 0),
      "of it, first thread": round(median(shares.map((share) => share.loopMicros)), 0),
    };
  });
}

interface SteadyLoad {
  readonly rounds: number;
  readonly load: Parameters<typeof openLoop>[1];
}

async function steadily(sides: readonly Side[], { rounds, load }: SteadyLoad): Promise<unknown> {
  const runs = new Map(sides.map((side) => [side.name, [] as OpenLoop[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const side of sides) runs.get(side.name)?.push(await openLoop(side, load));
  }
  const { backlog, perSecond, seconds } = load;
  const what = `${perSecond} requests/s for ${seconds} s while ${backlog} queued mails go out`;
  console.log(`\nWhole path, open loop: ${what}, ${rounds} rounds\n`);
  console.table(
    [...runs].map(([side, all]) => ({
      side,
      "accept p50 / p99": describeLatency({
        p50: median(all.map((one) => one.acceptMs.p50)),
        p99: median(all.map((one) => one.acceptMs.p99)),
      }),
      "p99 of each round": all.map((one) => round(one.acceptMs.p99)).join(", "),
      "delivered/s meanwhile": median(all.map((one) => one.deliveredPerSecond)),
      "still queued at the end": median(all.map((one) => one.backlogLeft)),
      refused: all.reduce((sum, one) => sum + one.refused, 0),
    })),
  );
  return Object.fromEntries(runs);
}
