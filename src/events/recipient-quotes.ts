/** Finds a recipient in texts that quote it, in JSON or not. */
export interface RecipientQuotes {
  /** A regular expression (RE2) for the recipient alone: not for another address or number that has it as a part. */
  readonly pattern: string;
  /** What every such text has, in whatever case: quicker to look for. */
  readonly part: string;
}

/** The last character of what stands for another one, in JSON or in a link, belongs to no word. */
const ESCAPED = String.raw`\\[bfnrt]|\\u[0-9a-f]{4}|%[0-9a-f]{2}`;
/** Thai, Japanese and Chinese have no blanks, also before an address. */
const WITHOUT_BLANKS = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]";
/** Local parts can have others, such as `=` and `/`; in texts these stand before an address far more often. */
const OF_LOCAL_PART = String.raw`\pL\pM\pN_+\-`;
/** Dots and apostrophes are inside of a local part (`o'hara`) or around an address (`'ann@…'`). */
const BEFORE_ADDRESS = String.raw`(?:(?:^|[^${OF_LOCAL_PART}.']|${WITHOUT_BLANKS}|${ESCAPED})[.']*|\.\.)`;
const AFTER_ADDRESS = "(?:$|[^a-z0-9.-]|[.-](?:$|[^a-z0-9]))";
/** `00` is another way to write `+`. */
const BEFORE_NUMBER = `(?:^|[^0-9]|${ESCAPED})(?:00)?`;
const AFTER_NUMBER = "(?:$|[^0-9])";

/** `recipient`: normalised (`normalisedRecipient`). */
export function quotesOf(recipient: string): RecipientQuotes {
  // Each level of JSON puts more backslashes before quotation marks and backslashes.
  const escaped = recipient.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&").replace(/\\\\|"/g, "\\\\*$&");
  const pattern = recipient.includes("@")
    ? BEFORE_ADDRESS + escaped + AFTER_ADDRESS
    : BEFORE_NUMBER + escaped + AFTER_NUMBER;
  return { pattern: `(?i)${pattern}`, part: recipient.split(/["\\]/).at(-1) ?? "" };
}
