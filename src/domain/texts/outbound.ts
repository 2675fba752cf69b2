/** Whether the service may connect to a host that a tenant named, and at which address. */
export type OutboundRoute =
  /** Connect to exactly this address: another lookup could return a different one. */
  | {
      readonly kind: "allowed";
      readonly address: string;
      /** All addresses of the host, each as good as the first, which is `address`. */
      readonly addresses: readonly string[];
      /** Every address of the host is in a network that the operator listed: no protection is needed. */
      readonly configured: boolean;
    }
  /**
   * `absent`: the host has no address; `forbidden`: it has one that must not be connected to. `why` completes "the host
   * …".
   */
  | { readonly kind: "refused"; readonly cause: "absent" | "forbidden"; readonly why: string }
  /** The name could not be looked up at the moment. */
  | { readonly kind: "unanswered"; readonly why: string };

/** Decides where connections that tenants request may go. Never rejects. */
export interface OutboundGuard {
  /** `host`: a name, or an IP address without brackets. */
  routeTo(host: string): Promise<OutboundRoute>;
}

/** A call to a URL that a tenant named. */
export interface WebhookCall {
  readonly url: string;
  /** The body: JSON text. */
  readonly json: string;
  /** Headers besides those of every call. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The outcome of a call. Only these parts of the answer are read. */
export type WebhookAnswer =
  /** `retryAfter`: the header's text. `text`: the beginning of the body, unless the call succeeded. */
  | { readonly kind: "answered"; readonly status: number; readonly retryAfter: string | null; readonly text?: string }
  /** There was no answer; `why` contains no text of the receiver. Whether the receiver has the call may be unknown. */
  | { readonly kind: "failed"; readonly why: string };

/** Calls URLs that tenants named. */
export interface WebhookCaller {
  /**
   * Posts the JSON text once. Null: the receiver answered 2xx. Otherwise the reason for the failure, without any text
   * of the receiver. Never rejects; ends at the latest when `signal` aborts, and whether the receiver has the call is
   * then unknown.
   */
  post(url: string, json: string, signal: AbortSignal): Promise<string | null>;
}

/** The same, for callers that need more of the answer. */
export interface WebhookCalls {
  /** Never rejects; ends at the latest when `signal` aborts. */
  call(call: WebhookCall, signal: AbortSignal): Promise<WebhookAnswer>;
}
