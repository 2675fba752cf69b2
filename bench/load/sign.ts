import { startChild } from "./child.ts";
import type { LatencySummary } from "./latency.ts";

/** One variant's round. */
export interface SignRun {
  readonly perSecond: number;
  /** CPU time per pass, all threads. */
  readonly cpuMs: number;
  /** How late a timer in the same process fired. */
  readonly delayMs: LatencySummary;
}

export const SIGN_VARIANTS = ["waybill", "passkit-generator"] as const;

export async function signRound(variant: (typeof SIGN_VARIANTS)[number], seconds: number): Promise<SignRun> {
  const child = await startChild(`${import.meta.dir}/sign-worker.ts`, [variant, String(seconds)]);
  await child.stop();
  // Printed by the worker, which has the same type.
  return JSON.parse(child.firstLine) as SignRun;
}
