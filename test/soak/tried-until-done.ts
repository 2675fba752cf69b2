import type { LoadContext } from "./soak-world.ts";

export interface Tries {
  /** Tries in all. */
  readonly most: number;
  readonly pauseMs: () => number;
}

/** Tries at once; an unfinished task becomes load for later, until it is done or that was the last time. */
export async function triedUntilDone(
  context: Pick<LoadContext, "later">,
  { most, pauseMs }: Tries,
  isDone: () => Promise<boolean>,
): Promise<void> {
  if ((await isDone()) || most <= 1) return;
  context.later(pauseMs(), () => triedUntilDone(context, { most: most - 1, pauseMs }, isDone));
}
