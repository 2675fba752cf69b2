import { appendFileSync } from "node:fs";

/** What a test of a fault found out, in the figures of `npm run prove`. Absent: the fault says nothing of it. */
export interface Proof {
  /** In a few words: "12 s of silence from Redis". */
  readonly fault: string;
  /** Jobs that were answered with 202. */
  readonly accepted?: number;
  /** Accepted jobs that never ended. */
  readonly lost?: number;
  /** Messages that a provider was handed more than once, and how many of them the promise allows. */
  readonly sentTwice?: number;
  readonly sentTwiceAllowed?: number;
  /** From the end of the fault until everything was as before. */
  readonly recoveryMs?: number;
  /** The longest time that an unconcerned tenant waited, from its request until its message was handed over. */
  readonly neighbourMs?: number;
  /** How many times longer than without the fault. */
  readonly neighbourRatio?: number;
  /** A figure of this fault's own. */
  readonly note?: string;
}

/**
 * Writes the figures down for `npm run prove`, which names the file in PROVE_RESULTS; in a plain test run nowhere. Call
 * it before the expectations, so that a promise that does not hold shows its figures too.
 */
export function recordProof(proof: Proof): void {
  const file = process.env["PROVE_RESULTS"];
  if (file !== undefined && file !== "") appendFileSync(file, `${JSON.stringify(proof)}\n`);
  if (process.env["PROVE_SHOW"] !== undefined) process.stderr.write(`${JSON.stringify(proof)}\n`);
}
