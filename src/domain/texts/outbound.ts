/** Whether the service may connect to a host that a tenant named, and at which address. */
export type OutboundRoute =
  /** Connect to exactly this address: another lookup could return a different one. */
  | {
      readonly kind: "allowed";
      readonly address: string;
      /** All addresses of the host, each as good as the first, which is `address`. */
      readonly addresses: readonly string[];
      /** Every address of the host is in a network that the operator named: nothing needs protection from it. */
      readonly configured: boolean;
    }
  /**
   * `absent`: the host has no address; `forbidden`: one that must not be connected to. `why` completes "the host …".
   */
  | { readonly kind: "refused"; readonly cause: "absent" | "forbidden"; readonly why: string }
  /** The name could not be looked up at the moment. */
  | { readonly kind: "unanswered"; readonly why: string };

/** Decides where connections that tenants request may go. Never rejects. */
export interface OutboundGuard {
  /** `host`: a name, or an IP address without brackets. */
  routeTo(host: string): Promise<OutboundRoute>;
}

/** A call of an address that a tenant named. */
export interface WebhookCall {
  readonly url: string;
  /** The body: JSON text. */
  readonly json: string;
  /** Beside those that every call has. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What became of a call. Nothing but these parts of the answer is read. */
export type WebhookAnswer =
  /** `retryAfter`: the header's text. `text`: the beginning of what it said, where that was no success. */
  | { readonly kind: "answered"; readonly status: number; readonly retryAfter: string | null; readonly text?: string }
  /** There was no answer; `why` has no text of the receiver. Whether it has the call may be unknown. */
  | { readonly kind: "failed"; readonly why: string };

/** Calls addresses that tenants named. */
export interface WebhookCaller {
  /**
   * Posts the JSON text once. Null: the receiver answered 2xx. Otherwise the reason for the failure, without any text
   * of the receiver. Never rejects; ends when `signal` aborts at the latest, and whether the receiver has the call is
   * then unknown.
   */
  post(url: string, json: string, signal: AbortSignal): Promise<string | null>;
}

/** The same, for those who want to know more of the answer. */
export interface WebhookCalls {
  /** Never rejects; ends when `signal` aborts at the latest. */
  call(call: WebhookCall, signal: AbortSignal): Promise<WebhookAnswer>;
}
