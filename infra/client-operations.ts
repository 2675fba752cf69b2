import type { Content, Operation } from "./api-document.ts";

const JSON_TYPE = "application/json";

/** Facts about an operation that all generated clients share. */

export function isStream(content: Content): boolean {
  return Object.keys(content).length > 0 && !(JSON_TYPE in content);
}

/** Decides whether a call may be repeated when the effect of its first attempt is unknown. */
export function decideRepeat(method: string, { parameters, responses }: Operation): "safe" | "with_key" | "unsafe" {
  if (parameters.some(({ name }) => name === "Idempotency-Key")) return "with_key";
  // A call that answers 202 queues work each time.
  return ["GET", "PUT", "DELETE"].includes(method) && !("202" in responses) ? "safe" : "unsafe";
}
