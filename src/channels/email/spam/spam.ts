/** One rule that spoke about a message. `score` is in points; above zero speaks for spam. */
export interface TriggeredRule {
  readonly rule: string;
  readonly score: number;
  readonly description: string;
}

/** What a spam filter makes of a message: the sum of its points, to two decimals, and where they come from. */
export interface SpamVerdict {
  readonly score: number;
  /** Highest score first, none of them zero, bounded in number: `score` can be more than their sum. */
  readonly rules: readonly TriggeredRule[];
}

/** A message as its recipient would get it, without tracking and signature. */
export interface ScoredMessage {
  readonly subject: string;
  readonly html: string;
  readonly text: string | null;
  /** Sender, an address or `Name <address>`. */
  readonly from: string;
  /** The recipient's address. */
  readonly to: string;
  /** The whole message (RFC 5322), made only for the filters that ask for it. */
  readonly raw: () => Promise<Uint8Array> | Uint8Array;
}

/** Scores messages before they are handed over. It decides nothing: what score is too high is the caller's to say. */
export interface SpamFilter {
  /**
   * Rejects with `UnavailableError` when the filter is away or `signal` has ended the call: the message is neither clean
   * nor spam, and must be asked about again.
   */
  score(message: ScoredMessage, signal: AbortSignal): Promise<SpamVerdict>;
}
