import { splitAddress } from "../domain/texts/split-address.ts";

/** Finds a recipient in texts that quote it, in JSON or not. */
export interface RecipientQuotes {
  /** A regular expression (RE2) for the recipient alone: not for another address or number that has it as a part. */
  readonly pattern: string;
  /** Substrings, in any case, of every such text: quicker to search for. The second one may be empty. */
  readonly part: string;
  readonly otherPart: string;
}

/** The last character of a JSON escape sequence belongs to no word. */
const IN_JSON = String.raw`\\[bfnrt]|\\u[0-9a-f]{4}`;
/** The same in links, except for characters that can be in a local part: `+`, `-`, `.`, `_`, `'` and letters beyond ASCII. */
const IN_LINK = "%(?:[013467][0-9a-f]|2[0-689acf]|5[0-9a-e])";
const ESCAPED = `${IN_JSON}|${IN_LINK}`;
/** Thai, Japanese and Chinese have no blanks, also before an address. */
const WITHOUT_BLANKS = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]";
/** Local parts can have others, such as `=` and `/`; in texts these stand before an address far more often. */
const OF_LOCAL_PART = String.raw`\pL\pM\pN_+\-`;
/** Dots and apostrophes are inside of a local part (`o'hara`) or around an address (`'ann@…'`). */
const BEFORE_ADDRESS = String.raw`(?:(?:^|[^${OF_LOCAL_PART}.']|${WITHOUT_BLANKS}|${ESCAPED})[.']*|\.\.)`;
/** A reply of several lines has a hyphen before all but the last: `550-ann@…`. */
const REPLY_CODE = String.raw`(?:^|[^${OF_LOCAL_PART}.']|${ESCAPED})[245][0-9]{2}-`;
const AFTER_ADDRESS = "(?:$|[^a-z0-9.-]|[.-](?:$|[^a-z0-9]))";
/** `00` is another way to write `+`. */
const BEFORE_NUMBER = `(?:^|[^0-9]|${IN_JSON}|%[0-9a-f]{2})(?:00)?`;
const AFTER_NUMBER = "(?:$|[^0-9])";

/** `recipient`: normalised (`normalisedRecipient`). */
export function quoteRecipient(recipient: string): RecipientQuotes {
  // Each level of JSON puts more backslashes before quotation marks and backslashes.
  const escaped = recipient.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&").replace(/\\\\|"/g, "\\\\*$&");
  const parts = splitAddress(recipient);
  if (parts === null) {
    return { pattern: `(?i)${BEFORE_NUMBER}${escaped}${AFTER_NUMBER}`, part: recipient, otherPart: "" };
  }
  // Links have these two encoded.
  const either = escaped.replace("@", "(?:@|%40)").replaceAll("\\+", "(?:\\+|%2B)");
  const pattern = `(?i)(?:${BEFORE_ADDRESS}|${REPLY_CODE})${either}${AFTER_ADDRESS}`;
  const [part = ""] = parts.local.split(/["\\@+]/).toSorted((a, b) => b.length - a.length);
  return { pattern, part, otherPart: parts.domain };
}
