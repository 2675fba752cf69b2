/** Whether it is an error of the system, or of a library that follows it, with this code (`ENOENT`). */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
