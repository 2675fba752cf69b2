export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** For files that others remove meanwhile. */
export function unlessMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}
