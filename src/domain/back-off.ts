import type { Random } from "./random.ts";

/** How waits grow: the first one, and each further one `factor` times as long up to `maxMs`. */
export interface BackOffBounds {
  readonly firstMs: number;
  readonly maxMs: number;
  /** Default 2. */
  readonly factor?: number;
  /** The share of a wait, 0 to 1, that chance may take off (default 0.5): what failed together does not come back together. */
  readonly jitter?: number;
}

/** The wait after this many earlier failures in a row; 0: after the first. */
export function backOffMs(bounds: BackOffBounds, failures: number, random: Pick<Random, "next">): number {
  return shortened(longestBackOffMs(bounds, failures), bounds.jitter ?? 0.5, random);
}

/** The time, of which chance takes off up to this share. */
export function shortened(ms: number, share: number, random: Pick<Random, "next">): number {
  return ms * (1 - share + share * random.next());
}

/** The same without chance: for work that no other process can try at the same time. */
export function longestBackOffMs({ firstMs, maxMs, factor = 2 }: BackOffBounds, failures: number): number {
  return Math.min(firstMs * factor ** failures, maxMs);
}

/** The waits after failures in a row. */
export class BackOff {
  private failures = 0;

  constructor(
    private readonly bounds: BackOffBounds,
    private readonly random: Pick<Random, "next">,
  ) {}

  /** The wait after one more failure. */
  nextMs(): number {
    const waitMs = backOffMs(this.bounds, this.failures, this.random);
    this.failures += 1;
    return waitMs;
  }

  /** The next failure is the first again. */
  reset(): void {
    this.failures = 0;
  }
}
