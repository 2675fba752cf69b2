import { appendedBytes, redisCpuMs } from "./bench-redis.ts";
import { TEMPLATE_SEND_BODY } from "./bench-world.ts";
import { drive } from "./driver.ts";
import { type LatencySummary, round } from "./latency.ts";
import { type CpuShare, cpuShares, processTrees } from "./processes.ts";
import type { SmtpSink } from "./smtp-sink.ts";
import type { RunningSide } from "./whole-sides.ts";

/** A burst, from its first request until the mail server has the last mail and its success is reported. */
export interface Burst {
  readonly mails: number;
  readonly perSecond: number;
  readonly acceptedPerSecond: number;
  readonly acceptMs: LatencySummary;
  /** Seconds after that until the event store has the last event. */
  readonly historySeconds: number;
  /** Per mail: CPU of the side's processes until the history is complete, and of driver and mail server. */
  readonly cpu: readonly CpuShare[];
  /** CPU that Redis reports, per mail. */
  readonly redisMicros: number;
  readonly redisBytesWritten: number;
}

const CONNECTIONS = 64;
const POLL_MS = 4;
const PATIENCE_MS = 180_000;

export async function burst(side: RunningSide, sink: SmtpSink, mails: number): Promise<Burst> {
  const due = (await sink.messages()) + mails;
  const redisBefore = await redisUse(side);
  const before = await processTrees([...side.pids, sink.pid]);
  const driving = drive({ ...target(side), seconds: 0, rate: null, requests: mails, connections: CONNECTIONS });
  // Queries Redis only near the end: earlier queries would add work that production does not have.
  await until(async () => (await sink.messages()) >= due && (await side.unfinished()) === 0, driving);
  const handedOverAtMs = Date.now();
  const accept = await driving;
  if (accept.accepted !== mails) throw new Error(`${accept.refused} requests were refused`);
  await until(async () => (await side.unrecorded()) === 0, driving);
  const historySeconds = (Date.now() - handedOverAtMs) / 1000;
  const cpu = cpuShares(before, await processTrees([...side.pids, sink.pid]), mails);
  const redis = await redisUse(side);
  const driver = (accept.cpuMs * 1000) / mails;
  return {
    mails,
    perSecond: Math.round((mails * 1000) / (handedOverAtMs - accept.startedAtMs)),
    acceptedPerSecond: accept.perSecond,
    acceptMs: accept.latencyMs,
    historySeconds: round(historySeconds),
    cpu: [...cpu, { label: "driver", micros: driver, loopMicros: driver }],
    redisMicros: round(((redis.cpuMs - redisBefore.cpuMs) * 1000) / mails, 1),
    redisBytesWritten: Math.round((redis.aofBytes - redisBefore.aofBytes) / mails),
  };
}

/** The load's target. */
export function target({ url, apiKeys }: RunningSide) {
  const { hostname, port } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    path: "/v1/send/email",
    body: TEMPLATE_SEND_BODY,
    apiKeys,
    warmUpSeconds: 0,
  };
}

async function until(holds: () => Promise<boolean>, driving: Promise<unknown>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > giveUpAtMs) throw new Error("the burst did not come to its end");
    // A failed driver ends the wait.
    await Promise.race([Bun.sleep(POLL_MS), driving.then(() => Bun.sleep(POLL_MS))]);
  }
}

async function redisUse({ redis }: RunningSide): Promise<{ readonly cpuMs: number; readonly aofBytes: number }> {
  return { cpuMs: await redisCpuMs(redis), aofBytes: await appendedBytes(redis) };
}
