import type { SuppressionReason } from "./job.ts";
import type { JsonObject } from "./json.ts";

/** What became of one delivery. Closed: whoever adds a kind decides everywhere what follows from it. */
export type Outcome =
  | { readonly kind: "delivered"; readonly result: JsonObject; readonly providerRef?: string }
  /** The next try may succeed. `afterMs`: the provider asked for at least this wait. */
  /** `isUncounted`: nothing was tried with the provider, so the wait costs the job no attempt, only its time. */
  /** `isUnsent`: the provider surely has not taken the message, so it is not one of those that were sent today. */
  /** `attemptsMax`: fewer attempts than other failures have. */
  | {
      readonly kind: "retry";
      readonly why: string;
      readonly afterMs?: number;
      readonly attemptsMax?: number;
      readonly isUncounted?: true;
      readonly isUnsent?: true;
    }
  /** No try will succeed. `error` is shown to the tenant; `detail` joins it in the job's result. */
  | { readonly kind: "failed"; readonly error: string; readonly detail?: JsonObject }
  | { readonly kind: "suppressed"; readonly reason: SuppressionReason };
