import type { JsonObject } from "../texts/json.ts";
import type { EventType } from "./event.ts";
import type { EndReason, PaceWait } from "./job.ts";

/**
 * Why a job failed: its provider refused it; its content was refused before; its tries got no clear answer; its relay
 * was away for too long; its tenant or channel is gone; an operator purged it.
 */
export type FailureCause = "refused" | "content" | "no_clear_answer" | "relay_away" | "gone" | "purged";

/** Details of a delivery for operators. Never contains a secret, nor text that the tenant must not see. */
export interface Traced {
  /**
   * The server that was offered the message, such as `mx.example.org:25`; absent: none was, so a failure or a wait does
   * not reflect on the channel's relay.
   */
  readonly relay?: string;
  /** The reply of the relay or provider; absent: none. */
  readonly reply?: string;
}

/** The result of an attempt for a recipient other than the job's own; `result.recipient` names it. */
export interface FurtherEvent {
  readonly type: EventType;
  readonly result: JsonObject;
}

/** The result of one delivery. A closed union: a new kind forces a decision wherever outcomes are handled. */
export type Outcome = Ended & Traced;

type Ended =
  | {
      readonly kind: "delivered";
      readonly result: JsonObject;
      readonly providerRef?: string;
      /** Events beside the one that ends the job; absent: none. */
      readonly further?: readonly FurtherEvent[];
    }
  /** The next try may succeed. */
  | {
      readonly kind: "retry";
      readonly why: string;
      /** The provider asked for at least this wait. */
      readonly afterMs?: number;
      /** A lower limit on attempts than for other failures. */
      readonly attemptsMax?: number;
      /** The provider was not tried: the wait costs the job time, but no attempt (a snooze). */
      readonly isUncounted?: true;
      /** The pace that an uncounted wait is for; absent: none. */
      readonly waitsFor?: PaceWait;
      /** The provider certainly has not taken the message, so it does not count as sent today. */
      readonly isUnsent?: true;
      /** The relay stopped answering in the middle of the message: an attempt, and a strike against the relay. */
      readonly isSilence?: true;
      /** The provider had the whole message and did not answer: it may have taken it, and another try may be a second copy. */
      readonly isUncertain?: true;
    }
  /**
   * The relay or provider as a whole is away: it refuses connections, stays silent, offers no TLS, greets with 421, or
   * its API answers 5xx. The message was not offered, so no attempt is spent, and the job waits until the relay is
   * back. `why` is shown to the tenant if the job is given up in the end.
   */
  | { readonly kind: "away"; readonly why: string }
  /** No try will succeed. `error` is shown to the tenant; `detail` is added to the job's result. */
  /** `cause`: for metrics; absent: the provider refused it. */
  | {
      readonly kind: "failed";
      readonly error: string;
      readonly detail?: JsonObject;
      readonly cause?: FailureCause;
      /** The recipient's address is the cause: the event is `bounced`, with this result. */
      readonly bounce?: JsonObject;
      readonly further?: readonly FurtherEvent[];
    }
  /** `topic`: as in `Stop`. */
  | { readonly kind: "suppressed"; readonly reason: EndReason; readonly topic?: string };
