/** What the push service said, or that it said nothing. */
export type ApnsAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** Its word for what is wrong, for example `BadDeviceToken`; null where it gave none. */
      readonly reason: string | null;
    }
  | { readonly kind: "unanswered"; readonly why: string };

/**
 * `delivered`: Apple has it. `gone`: nobody is there any more. `credentials`: no push of this certificate will pass.
 * `throttled` and `transient`: later. `refused`: ours to mend, no use in repeating.
 */
export type PushOutcome = "delivered" | "gone" | "credentials" | "throttled" | "transient" | "refused";

interface Rule {
  readonly status: readonly [from: number, to: number];
  /** Absent: any. */
  readonly reasons?: readonly string[];
  readonly fate: PushOutcome;
}

/**
 * The first rule that holds decides (Apple, "Handling notification responses from APNs"). A device is forgotten only
 * where the reason says so in a word: a whole address book could be lost to a proxy's 400 otherwise.
 */
const RULES: readonly Rule[] = [
  { status: [200, 299], fate: "delivered" },
  { status: [410, 410], reasons: ["Unregistered", "ExpiredToken"], fate: "gone" },
  { status: [400, 400], reasons: ["BadDeviceToken", "DeviceTokenNotForTopic", "MissingDeviceToken"], fate: "gone" },
  { status: [401, 401], fate: "credentials" },
  { status: [403, 403], fate: "credentials" },
  { status: [429, 429], fate: "throttled" },
  { status: [500, 599], fate: "transient" },
];

export function pushOutcomeOf(answer: ApnsAnswer): PushOutcome {
  // A push says no more than "ask": a repeated one changes nothing.
  if (answer.kind === "unanswered") return "transient";
  const { status, reason } = answer;
  const rule = RULES.find(
    ({ status: [from, to], reasons }) =>
      status >= from && status <= to && (reasons === undefined || (reason !== null && reasons.includes(reason))),
  );
  return rule?.fate ?? "refused";
}
