import { chatLimits } from "./limits.ts";

/** An error reply of the Graph API. */
export interface GraphError {
  /** HTTP status. */
  readonly status: number;
  /** Null: the reply did not come from the API but, for example, from a gateway. */
  readonly code: number | null;
  /** In the provider's words; empty if it gave none. */
  readonly message: string;
  /** Further details, often the only useful ones. */
  readonly details: string | null;
}

/**
 * The effect of each kind of error on the job and its number:
 *
 * | | the job | its number |
 * |---|---|---|
 * | `retry` | is retried | |
 * | `slow_number` | is retried at no cost | sends slower |
 * | `space_recipient` | is retried at no cost | delays messages to this recipient only |
 * | `pause_number` | is retried after the pause | pauses |
 * | `fail` | fails | |
 * | `lock_account` | fails | pauses: the account is locked |
 * | `refuse_sender` | fails | pauses until its credentials change, for a bounded time |
 * | `unknown_outcome` | waits for callbacks, then is retried | |
 * | `away` | is retried at no cost | pauses if that repeats; if several numbers fail, all wait until the API is back |
 */
export type Consequence =
  | "retry"
  | "slow_number"
  | "space_recipient"
  | "pause_number"
  | "fail"
  | "lock_account"
  | "refuse_sender"
  | "unknown_outcome"
  | "away";

export interface ErrorRule {
  readonly codes: readonly number[];
  readonly follows: Consequence;
  /** How long the number pauses, unless the provider named a longer time. */
  readonly pauseMs?: number;
  /** The job fails after this many attempts. Default: as in any other channel. */
  readonly attemptsMax?: number;
}

/** All errors that the provider documents for sending, by their effect here (Cloud API, "Error codes"; Graph API, "Rate Limits"). */
export const ERROR_RULES: readonly ErrorRule[] = [
  // The number's throughput.
  { codes: [130429], follows: "slow_number" },
  // Calls by the app (4), the user (17), a page (32) or the business account (80000 to 80014), or by another limit (341, 613),
  // counted over an hour: an immediate retry is useless.
  { codes: [4, 17, 32, 341, 613, ...range(80000, 80014)], follows: "slow_number", pauseMs: 60_000 },
  // One number to one recipient.
  { codes: [131056], follows: "space_recipient" },
  // "Unknown" covers both a passing fault and a request that never works.
  { codes: [1], follows: "retry", attemptsMax: 4 },
  // Something went wrong with this message, or the account is being upgraded.
  { codes: [131000, 131057], follows: "retry" },
  // The service is down, unavailable or overloaded, often for one account alone.
  { codes: [2, 131016, 133004], follows: "away" },
  // The provider could not fetch the header's media: the address may be wrong, or its server was briefly slow.
  { codes: [131053], follows: "retry", attemptsMax: 2 },
  // Too many recipients reported or blocked the number.
  { codes: [131048], follows: "pause_number", pauseMs: chatLimits.chatSpamPauseMs },
  // Not delivered for the recipient's sake, opted out, part of an experiment, not on WhatsApp, is the sender, beyond
  // the 24 hours of a conversation, not on the list of a test number.
  { codes: [131049, 131050, 130472, 131026, 131021, 131047, 131030, 131062], follows: "fail" },
  // Parameters: count, format, length, content.
  { codes: [132000, 132012, 132018, 132005, 132007], follows: "fail" },
  // The template does not exist in this language, or is paused or disabled, or its flow is blocked or throttled.
  { codes: [132001, 132015, 132016, 132068, 132069], follows: "fail" },
  // The request itself. 100 also means that the number does not exist, or not for this token.
  { codes: [100, 33, 131008, 131009, 131051, 135000, 131052], follows: "fail" },
  // Registration errors; this service does not register numbers.
  { codes: [133016], follows: "fail" },
  // The recipient's country; recipients elsewhere are still reached.
  { codes: [130497], follows: "fail" },
  // Policy violations, a locked account.
  { codes: [368, 131031], follows: "lock_account", pauseMs: chatLimits.chatLockedPauseMs },
  // Token expired or withdrawn, permissions missing.
  {
    codes: [0, 190, 3, 10, ...range(200, 299), 131005],
    follows: "refuse_sender",
    pauseMs: chatLimits.chatCredentialsPauseMs,
  },
  // Display name, payment, ineligible account, registration and verification of the number, terms not accepted.
  {
    codes: [131037, 131042, 131045, 133000, ...range(133005, 133010), 133015, 134011],
    follows: "refuse_sender",
    pauseMs: chatLimits.chatCredentialsPauseMs,
  },
];

const BY_CODE: ReadonlyMap<number, ErrorRule> = new Map(
  ERROR_RULES.flatMap((rule) => rule.codes.map((code) => [code, rule] as const)),
);

/** For replies with an unknown code or none. The first match decides. */
const BY_STATUS: readonly { readonly from: number; readonly to: number; readonly rule: ErrorRule }[] = [
  // A success status with an unknown error: the message may have been sent.
  { from: 200, to: 299, rule: buildRule({ follows: "unknown_outcome" }) },
  { from: 401, to: 401, rule: buildRule({ follows: "refuse_sender", pauseMs: chatLimits.chatCredentialsPauseMs }) },
  { from: 408, to: 408, rule: buildRule({ follows: "retry" }) },
  { from: 429, to: 429, rule: buildRule({ follows: "slow_number" }) },
  { from: 400, to: 499, rule: buildRule({ follows: "fail" }) },
  { from: 500, to: 599, rule: buildRule({ follows: "away" }) },
];
const OTHERWISE = buildRule({ follows: "retry" });
/** "Unknown", and the provider's own fault. */
const UNKNOWN_FAULT = buildRule({ follows: "retry" });
/** A gateway that timed out knows no more than we do after a time-out. */
const GATEWAY_TIMEOUT = buildRule({ follows: "unknown_outcome" });

/** Finds the rule by the error's code or, for unknown codes, by the class of the HTTP status. */
export function ruleFor({ code, status }: GraphError): ErrorRule {
  if (code === 1 && status >= 500) return UNKNOWN_FAULT;
  const known = code === null ? undefined : BY_CODE.get(code);
  if (known !== undefined) return known;
  if (code === null && status === 504) return GATEWAY_TIMEOUT;
  return BY_STATUS.find(({ from, to }) => status >= from && status <= to)?.rule ?? OTHERWISE;
}

/** Whether the table has the code; metrics name only such codes. */
export function isKnownCode(code: number): boolean {
  return BY_CODE.has(code);
}

function buildRule(rule: Omit<ErrorRule, "codes">): ErrorRule {
  return { codes: [], ...rule };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
