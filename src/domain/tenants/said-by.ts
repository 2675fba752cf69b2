/**
 * Returns the message of a thrown value: libraries also throw values other than `Error`, which `String` would show as
 * [object Object].
 */
export function saidBy(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  const fault = "errno" in thrown ? WASI_ERRORS[Number(thrown.errno)] : undefined;
  if (fault !== undefined) return fault;
  const members = Object.entries(thrown).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  if (members.length === 0) return "something that says nothing about itself";
  return members.map(([name, value]) => `${name} ${value}`).join(", ");
}

/** Returns the message of the innermost cause: the errors around it tell which call failed. */
export function saidByCause(thrown: unknown): string {
  let innermost = thrown;
  while (innermost instanceof Error && innermost.cause !== undefined) innermost = innermost.cause;
  return saidBy(innermost);
}

/** Numbers of the embedded PostgreSQL's own system (WASI preview 1, `errno`), which throws no `Error`. */
const WASI_ERRORS: Readonly<Record<number, string>> = {
  2: "permission denied (EACCES)",
  19: "the disk quota is used up (EDQUOT)",
  29: "the disk cannot be read or written (EIO)",
  33: "too many open files (EMFILE)",
  41: "too many open files on this machine (ENFILE)",
  51: "no space left on the disk (ENOSPC)",
  63: "not permitted (EPERM)",
  69: "the file system is read-only (EROFS)",
};
