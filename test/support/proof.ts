import { appendFileSync } from "node:fs";

/** Figures from a fault test for `npm run prove`. Absent members: the fault does not concern them. */
export interface Proof {
  /** A description in a few words: "12 s of silence from Redis". */
  readonly fault: string;
  /** Jobs answered with 202. */
  readonly accepted?: number;
  /** Accepted jobs that never ended. */
  readonly lost?: number;
  /** Messages handed to a provider more than once, and how many the promise allows. */
  readonly sentTwice?: number;
  readonly sentTwiceAllowed?: number;
  /** From the end of the fault until everything is back to normal. */
  readonly recoveryMs?: number;
  /** The longest wait of an unconcerned tenant, from its request until its message was handed over. */
  readonly neighbourMs?: number;
  /** The wait as a multiple of the wait without the fault. */
  readonly neighbourRatio?: number;
  /** A figure specific to this fault. */
  readonly note?: string;
}

/** Whether `npm run prove` runs the test, which may then take longer. */
export const IS_PROVING = (process.env["PROVE_RESULTS"] ?? "") !== "";

/**
 * Writes the figures to the file in PROVE_RESULTS, which `npm run prove` sets; has no effect in a plain test run. Call
 * it before the expectations, so that a broken promise shows its figures too.
 */
export function recordProof(proof: Proof): void {
  const file = process.env["PROVE_RESULTS"];
  if (file !== undefined && file !== "") appendFileSync(file, `${JSON.stringify(proof)}\n`);
  if (process.env["PROVE_SHOW"] !== undefined) process.stderr.write(`${JSON.stringify(proof)}\n`);
}
