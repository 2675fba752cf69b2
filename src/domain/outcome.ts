import type { SuppressionReason } from "./job.ts";
import type { JsonObject } from "./json.ts";

/** What operators see of a delivery. Never holds a secret, nor text that the tenant must not see. */
export interface Traced {
  /** Where the message was handed over, such as `mx.example.org:25`; absent: nowhere. */
  readonly relay?: string;
  /** What the relay or provider said; absent: nothing. */
  readonly reply?: string;
}

/** The result of one delivery. A closed union: a new kind forces a decision wherever outcomes are handled. */
export type Outcome = Ended & Traced;

type Ended =
  | { readonly kind: "delivered"; readonly result: JsonObject; readonly providerRef?: string }
  /** The next try may succeed. `afterMs`: the provider asked for at least this wait. */
  /** `isUncounted`: nothing was tried with the provider, so the wait costs the job only time and no attempt. */
  /** `isUnsent`: the provider surely has not taken the message, so it does not count as sent today. */
  /** `attemptsMax`: fewer attempts than other failures have. */
  /**
   * `isSilence`: the relay stopped answering in the middle of the message: an attempt, and a strike against the relay.
   */
  | {
      readonly kind: "retry";
      readonly why: string;
      readonly afterMs?: number;
      readonly attemptsMax?: number;
      readonly isUncounted?: true;
      readonly isUnsent?: true;
      readonly isSilence?: true;
    }
  /**
   * The relay or provider as a whole is away: it refuses connections, stays silent, offers no TLS, greets with 421, or
   * its API answers 5xx. That says nothing about the message, which was not offered: no attempt is spent, and the job
   * is held until the relay is back. `why` is shown to the tenant if the job is given up in the end.
   */
  | { readonly kind: "away"; readonly why: string }
  /** No try will succeed. `error` is shown to the tenant; `detail` joins it in the job's result. */
  | { readonly kind: "failed"; readonly error: string; readonly detail?: JsonObject }
  | { readonly kind: "suppressed"; readonly reason: SuppressionReason };
