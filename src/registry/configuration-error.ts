/** What the operator configured does not fit what is there. The message is one sentence that says what to do. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}
