/** Polls until `holds` returns a truthy value, and returns that; fails with `why` after `withinMs`. */
export async function eventually<T>(
  why: string,
  holds: () => T | Promise<T>,
  withinMs = 30_000,
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + withinMs;
  for (let waitMs = 2; ; waitMs = Math.min(1.5 * waitMs, 100)) {
    const value = await holds();
    if (value) return value;
    if (performance.now() > giveUpAt) throw new Error(`not within ${withinMs} ms: ${why}`);
    await Bun.sleep(waitMs);
  }
}
