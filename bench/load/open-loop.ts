import { target } from "./burst.ts";
import { drive } from "./driver.ts";
import type { LatencySummary } from "./latency.ts";
import type { Side } from "./whole-sides.ts";

/** Accepting at a steady rate while a backlog is delivered at full speed. */
export interface OpenLoop {
  readonly perSecond: number;
  readonly acceptMs: LatencySummary;
  readonly refused: number;
  readonly deliveredPerSecond: number;
  /** Jobs still waiting when the last request was answered: if 0, the figures describe an idle process. */
  readonly backlogLeft: number;
}

export interface OpenLoopLoad {
  readonly backlog: number;
  readonly perSecond: number;
  readonly seconds: number;
}

const CONNECTIONS = 64;
/** Time for a fresh process to start on its backlog and compile its code. */
const WARM_UP_SECONDS = 2;

export async function openLoop(side: Side, { backlog, perSecond, seconds }: OpenLoopLoad): Promise<OpenLoop> {
  const running = await side.startWithBacklog(async (api) => {
    await drive({ ...target(api), seconds: 0, rate: null, requests: backlog, connections: CONNECTIONS });
  });
  try {
    const before = await running.unfinished();
    const timing = { seconds, rate: perSecond, warmUpSeconds: WARM_UP_SECONDS };
    const begunMs = performance.now();
    const result = await drive({ ...target(running), ...timing, connections: CONNECTIONS });
    const lastedSeconds = (performance.now() - begunMs) / 1000;
    const backlogLeft = await running.unfinished();
    const offered = perSecond * (seconds + WARM_UP_SECONDS);
    const deliveredPerSecond = Math.round((before + offered - backlogLeft) / lastedSeconds);
    const { latencyMs: acceptMs, refused } = result;
    return { perSecond: result.perSecond, acceptMs, refused, deliveredPerSecond, backlogLeft };
  } finally {
    await running.stop();
  }
}
