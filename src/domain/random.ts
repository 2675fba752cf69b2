/** Chance as the engine knows it: the machine's in production, seeded in the tests. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** Fills the array with random bytes and returns it. Unpredictable in production: job ids and fencing tokens rest on it. */
  fill(bytes: Uint8Array): Uint8Array;
}
