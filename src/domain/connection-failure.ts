/**
 * Error codes of the system, the resolver and TLS for a connection that could not be made; EPROTO is a failed
 * handshake.
 */
const CODES =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|ENFILE|ENOBUFS|EPROTO|CERT_HAS_EXPIRED|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|ERR_TLS_\w+)$/;

/** Whether a request failed before any part of it can have arrived, so that it is safe to repeat. */
export function isConnectionFailure(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
  return typeof code === "string" && CODES.test(code);
}
