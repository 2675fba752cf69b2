/** What was thrown, in words: libraries also throw what is no `Error`, which `String` would show as [object Object]. */
export function saidBy(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  const members = Object.entries(thrown).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  if (members.length === 0) return "something that says nothing about itself";
  return members.map(([name, value]) => `${name} ${value}`).join(", ");
}

/** What the innermost cause says: those around it tell which call failed. */
export function saidByCause(thrown: unknown): string {
  let innermost = thrown;
  while (innermost instanceof Error && innermost.cause !== undefined) innermost = innermost.cause;
  return saidBy(innermost);
}
