/** The push service's response, or its absence. */
export type ApnsAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** Apple's reason, such as `BadDeviceToken`; null if it gave none. */
      readonly reason: string | null;
      /** When Apple found that the device no longer exists (unix ms), from a 410; null if unknown. */
      readonly goneAtMs: number | null;
    }
  | { readonly kind: "unanswered"; readonly why: string };

/**
 * `delivered`: Apple has it. `gone`: the device no longer exists. `credentials`: no push with this certificate will
 * pass. `throttled` and `transient`: retry later. `refused`: a fault on our side; retrying is useless.
 */
export type PushOutcome = "delivered" | "gone" | "credentials" | "throttled" | "transient" | "refused";

interface Rule {
  readonly status: readonly [from: number, to: number];
  /** Default: any reason. */
  readonly reasons?: readonly string[];
  readonly outcome: PushOutcome;
}

/**
 * The first matching rule decides (Apple, "Handling notification responses from APNs"). A device is forgotten only if
 * the reason explicitly says so: otherwise a proxy's 400 could erase every device.
 */
const RULES: readonly Rule[] = [
  { status: [200, 299], outcome: "delivered" },
  { status: [410, 410], reasons: ["Unregistered", "ExpiredToken"], outcome: "gone" },
  { status: [400, 400], reasons: ["BadDeviceToken", "DeviceTokenNotForTopic", "MissingDeviceToken"], outcome: "gone" },
  { status: [401, 401], outcome: "credentials" },
  { status: [403, 403], outcome: "credentials" },
  { status: [429, 429], outcome: "throttled" },
  { status: [500, 599], outcome: "transient" },
];

export function toPushOutcome(answer: ApnsAnswer): PushOutcome {
  // A push only makes the device check for updates, so repeating one is harmless.
  if (answer.kind === "unanswered") return "transient";
  const { status, reason } = answer;
  const rule = RULES.find(
    ({ status: [from, to], reasons }) =>
      status >= from && status <= to && (reasons === undefined || (reason !== null && reasons.includes(reason))),
  );
  return rule?.outcome ?? "refused";
}
