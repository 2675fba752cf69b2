const SQL_STATE = /^[0-9A-Z]{5}$/;

/**
 * Returns the codes of an error from PostgreSQL or its driver: `state` is the server's SQLSTATE (PostgreSQL, appendix
 * A), `code` the driver's own code. Drivers differ: PGlite puts the SQLSTATE in `code`, Bun.SQL in `errno`, and drizzle
 * wraps either.
 */
export function sqlState(error: unknown): { state: string | null; code: string | null } {
  const cause = error instanceof Error && error.name !== "PostgresError" && error.cause ? error.cause : error;
  const errno = textMember(cause, "errno");
  const code = textMember(cause, "code");
  if (errno !== null && SQL_STATE.test(errno)) return { state: errno, code };
  // No SQLSTATE begins with E, but EPIPE looks like one.
  return code !== null && SQL_STATE.test(code) && !code.startsWith("E") ? { state: code, code } : { state: null, code };
}

function textMember(value: unknown, name: string): string | null {
  if (typeof value !== "object" || value === null) return null;
  const member: unknown = Reflect.get(value, name);
  return typeof member === "string" ? member : null;
}
