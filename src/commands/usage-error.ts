/** A command line that does not name a valid action. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
