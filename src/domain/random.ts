/** The engine's source of randomness: the machine's in production, seeded in the tests. */
export interface Random {
  /** Returns a number in [0, 1). */
  next(): number;
  /**
   * Fills the array with random bytes and returns it. Unpredictable in production: job ids and fencing tokens rely on
   * it.
   */
  fill(bytes: Uint8Array): Uint8Array;
}
