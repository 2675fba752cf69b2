const AT_A_TIME = 64;

/**
 * Does the work for each name of a folder, several at a time. Rejects soon after `signal` has aborted, with its reason.
 */
export async function forEachName(
  names: readonly string[],
  work: (name: string) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  for (let at = 0; at < names.length; at += AT_A_TIME) {
    signal?.throwIfAborted();
    await Promise.all(names.slice(at, at + AT_A_TIME).map(work));
  }
}
