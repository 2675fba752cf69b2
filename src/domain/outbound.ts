/** Whether a host that a tenant named may be connected to, and at which address. */
export type OutboundRoute =
  /** Connect to this very address: another look-up could answer with another one. */
  | {
      readonly kind: "allowed";
      readonly address: string;
      /** All that the host has, each as good as the first, which is `address`. */
      readonly addresses: readonly string[];
      /** Every address of the host is in a network that the operator named: nothing is protected from it. */
      readonly configured: boolean;
    }
  /** `absent`: the host has no address; `forbidden`: one that must not be connected to. `why` completes "the host …". */
  | { readonly kind: "refused"; readonly cause: "absent" | "forbidden"; readonly why: string }
  /** The name could not be looked up at the moment. */
  | { readonly kind: "unanswered"; readonly why: string };

/** Decides where connections may go that tenants ask for. Never rejects. */
export interface OutboundGuard {
  /** `host`: a name, or an IP address without brackets. */
  routeTo(host: string): Promise<OutboundRoute>;
}

/** Calls addresses that tenants named. */
export interface WebhookCaller {
  /**
   * Posts the JSON text, once. Null: the receiver answered 2xx. Otherwise why it did not, without anything that it
   * said. Never rejects; ends at the abort of `signal` at the latest, and what the receiver then has is unknown.
   */
  post(url: string, json: string, signal: AbortSignal): Promise<string | null>;
}
