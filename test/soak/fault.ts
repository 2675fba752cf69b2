import type { Dice } from "../simulation/dice.ts";
import type { SoakChannel } from "./book.ts";
import type { Excuse } from "./fault-log.ts";
import type { SoakWorld } from "./soak-world.ts";

/** A process that is silent for longer may lose its shards to another, if there is one. */
export const LEASE_MS = 8_000;

/** A fault, or an operator's action during one. */
export interface FaultKind {
  readonly name: string;
  /** Its weight among the others. */
  readonly weight: number;
  /** Two faults of one group never last at once. */
  readonly group: "process" | "store" | "provider";
  /** Whether this machine and this setup can have it; absent: always. */
  isPossible?(world: SoakWorld): boolean;
  /** Resolves when it is over. */
  run(world: SoakWorld, dice: Dice): Promise<void>;
}

export interface Lasting {
  readonly kind: string;
  readonly target: string;
  readonly ms: number;
  readonly excuse?: Excuse | null;
  readonly channel?: SoakChannel | null;
  readonly shiftMs?: number;
  begin(): unknown;
  end(): unknown;
}

/** A fault that begins, lasts and ends, whatever happens meanwhile. */
export async function lasting({ faults }: SoakWorld, fault: Lasting): Promise<void> {
  const span = faults.begin(fault.kind, fault.target, fault.excuse ?? null, fault.channel ?? null);
  span.shiftMs = fault.shiftMs ?? 0;
  try {
    await fault.begin();
    await Bun.sleep(fault.ms);
  } finally {
    await fault.end();
    faults.end(span);
  }
}
