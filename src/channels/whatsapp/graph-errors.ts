import { limits } from "../../domain/limits.ts";

/** An error answer of the Graph API. */
export interface GraphError {
  /** HTTP status. */
  readonly status: number;
  /** Null: the answer did not come from the API, but for example from a gateway. */
  readonly code: number | null;
  /** In the provider's words; empty if there are none. */
  readonly message: string;
  /** Further details, often the only useful ones. */
  readonly details: string | null;
}

/**
 * What follows from an error:
 *
 * | | the job | its number |
 * |---|---|---|
 * | `retry` | is tried again | |
 * | `slow_number` | is tried again, at no cost | sends slower |
 * | `space_recipient` | is tried again, at no cost | lets this recipient wait, and nobody else |
 * | `pause_number` | is tried again after the pause | pauses |
 * | `fail` | fails | |
 * | `lock_account` | fails | pauses: the account is locked |
 * | `refuse_sender` | fails | pauses until its credentials change, for a while at most |
 * | `unknown_fate` | waits for callbacks, then is tried again | |
 * | `away` | waits until the API as a whole is back, at no cost | |
 */
export type Consequence =
  | "retry"
  | "slow_number"
  | "space_recipient"
  | "pause_number"
  | "fail"
  | "lock_account"
  | "refuse_sender"
  | "unknown_fate"
  | "away";

export interface ErrorRule {
  readonly codes: readonly number[];
  readonly follows: Consequence;
  /** How long the number sends nothing, unless the provider named a longer time. */
  readonly pauseMs?: number;
  /** After this many attempts the job fails. Default: as in any other channel. */
  readonly attemptsMax?: number;
}

/** All errors that the provider documents for sending templates, by their effect here (Cloud API, "Error codes"). */
export const ERROR_RULES: readonly ErrorRule[] = [
  // The number's throughput.
  { codes: [130429], follows: "slow_number" },
  // Calls of the app (4) or the business account (80007), counted over an hour: retrying a moment later is useless.
  { codes: [4, 80007], follows: "slow_number", pauseMs: 60_000 },
  // One number, one recipient.
  { codes: [131056], follows: "space_recipient" },
  // "Unknown" hides both a passing fault and a request that never works.
  { codes: [1], follows: "retry", attemptsMax: 4 },
  // Something went wrong with this message, the account is being upgraded.
  { codes: [131000, 131057], follows: "retry" },
  // The service is down, unavailable or overloaded, whatever the message.
  { codes: [2, 131016, 133004], follows: "away" },
  // Media of the header could not be fetched: the address may be wrong, or its server was slow once.
  { codes: [131053], follows: "retry", attemptsMax: 2 },
  // Too many recipients reported or blocked the number.
  { codes: [131048], follows: "pause_number", pauseMs: limits.chatSpamPauseMs },
  // Not delivered for the recipient's sake, opted out, part of an experiment, not on WhatsApp, is the sender, beyond
  // the 24 hours of a conversation, not on the list of a test number.
  { codes: [131049, 131050, 130472, 131026, 131021, 131047, 131030], follows: "fail" },
  // Parameters: their count, format, length, content.
  { codes: [132000, 132012, 132018, 132005, 132007], follows: "fail" },
  // The template does not exist in this language, is paused, disabled, or its flow is blocked or throttled.
  { codes: [132001, 132015, 132016, 132068, 132069], follows: "fail" },
  // The request itself. 100 also says that the number does not exist, or not for this token.
  { codes: [100, 33, 131008, 131009, 131051, 135000, 131052], follows: "fail" },
  // We do not register numbers.
  { codes: [133016], follows: "fail" },
  // The recipient's country; people elsewhere are still reached.
  { codes: [130497], follows: "fail" },
  // Policy violations, a locked account.
  { codes: [368, 131031], follows: "lock_account", pauseMs: limits.chatLockedPauseMs },
  // Token expired or withdrawn, permissions missing.
  {
    codes: [0, 190, 3, 10, ...range(200, 299), 131005],
    follows: "refuse_sender",
    pauseMs: limits.chatCredentialsPauseMs,
  },
  // Display name, payment, ineligible account, registration and verification of the number, terms not accepted.
  {
    codes: [131037, 131042, 131045, 133000, ...range(133005, 133010), 133015, 134011],
    follows: "refuse_sender",
    pauseMs: limits.chatCredentialsPauseMs,
  },
];

const BY_CODE: ReadonlyMap<number, ErrorRule> = new Map(
  ERROR_RULES.flatMap((rule) => rule.codes.map((code) => [code, rule] as const)),
);

/** For answers with an unknown code or none. The first match decides. */
const BY_STATUS: readonly { readonly from: number; readonly to: number; readonly rule: ErrorRule }[] = [
  { from: 401, to: 401, rule: ruleOf({ follows: "refuse_sender", pauseMs: limits.chatCredentialsPauseMs }) },
  { from: 408, to: 408, rule: ruleOf({ follows: "retry" }) },
  { from: 429, to: 429, rule: ruleOf({ follows: "slow_number" }) },
  { from: 400, to: 499, rule: ruleOf({ follows: "fail" }) },
  { from: 500, to: 599, rule: ruleOf({ follows: "away" }) },
];
const OTHERWISE = ruleOf({ follows: "retry" });
/** A gateway that timed out knows no more than we would after a timeout. */
const GATEWAY_TIMEOUT = ruleOf({ follows: "unknown_fate" });

/** Decided by the code; for unknown codes, by the class of the HTTP status. */
export function ruleFor({ code, status }: GraphError): ErrorRule {
  const known = code === null ? undefined : BY_CODE.get(code);
  if (known !== undefined) return known;
  if (code === null && status === 504) return GATEWAY_TIMEOUT;
  return BY_STATUS.find(({ from, to }) => status >= from && status <= to)?.rule ?? OTHERWISE;
}

/** Whether the code is in the table; metrics name only such codes. */
export function isKnownCode(code: number): boolean {
  return BY_CODE.has(code);
}

function ruleOf(rule: Omit<ErrorRule, "codes">): ErrorRule {
  return { codes: [], ...rule };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
