import { hasCode } from "../../domain/has-code.ts";

export function isMissing(error: unknown): boolean {
  return hasCode(error, "ENOENT");
}

/** Ignores the absence of files that others remove meanwhile. */
export function unlessMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}
