/** A command line that says nothing that can be done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
