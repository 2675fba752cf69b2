/** One rule that matched a message. `score` is in points; above zero indicates spam. */
export interface TriggeredRule {
  readonly rule: string;
  readonly score: number;
  readonly description: string;
}

/** A spam filter's verdict on a message: the sum of its points, to two decimals, and where they come from. */
export interface SpamVerdict {
  readonly score: number;
  /** Highest score first, none of them zero, bounded in number: `score` can be more than their sum. */
  readonly rules: readonly TriggeredRule[];
}

/** A message in its final form, except for tracking and signature. */
export interface ScoredMessage {
  readonly subject: string;
  readonly html: string;
  readonly text: string | null;
  /** Sender: an address or `Name <address>`. */
  readonly from: string;
  readonly to: string;
  /** The whole message (RFC 5322), built only for filters that need it. */
  readonly raw: () => Promise<Uint8Array> | Uint8Array;
}

/** Scores messages before they are sent. The caller decides which score is too high. */
export interface SpamFilter {
  /**
   * Rejects with `UnavailableError` if the filter is unavailable or `signal` aborted the call: the message is then
   * neither clean nor spam, and must be scored again.
   */
  score(message: ScoredMessage, signal: AbortSignal): Promise<SpamVerdict>;
}
