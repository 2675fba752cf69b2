import type { Done } from "../../src/domain/store-result.ts";

/** Returns the result of a store's call. Throws if the store did not do it. */
export async function must<T>(asked: Promise<Done<T> | { readonly kind: string }>): Promise<T> {
  const result = await asked;
  if ("value" in result) return result.value;
  throw new Error(`the store did not: ${JSON.stringify(result)}`);
}
