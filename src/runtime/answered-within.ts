/**
 * Limits the wait of a command. Rejects when `ask` does, or when it has not answered in that time; a later answer is
 * dropped.
 */
export async function answeredWithin<T>(ms: number, ask: () => Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms);
  try {
    return await Promise.race([ask(), late]);
  } finally {
    clearTimeout(timer);
  }
}
