import type { Random } from "../../src/domain/random.ts";

/** Chance that takes nothing off a back-off: its waits are known beforehand. */
export const LONGEST_WAITS: Random = { next: () => 1, fill: (bytes) => bytes };
