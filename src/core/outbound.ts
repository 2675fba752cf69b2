/** Whether a host that a tenant named may be connected to, and at which address. */
export type OutboundRoute =
  /** Connect to this very address: another look-up could answer with another one. */
  | { readonly kind: "allowed"; readonly address: string }
  /** `why` completes "the host …". */
  | { readonly kind: "refused"; readonly why: string }
  /** The name could not be looked up at the moment. */
  | { readonly kind: "unanswered"; readonly why: string };

/** Decides where connections may go that tenants ask for. Never rejects. */
export interface OutboundGuard {
  /** `host`: a name, or an IP address without brackets. */
  routeTo(host: string): Promise<OutboundRoute>;
}
