import type { AnswerHeaders } from "./exchange.ts";

/**
 * What pages say where readers reach us over TLS: browsers come back over TLS alone for a year (RFC 6797). Other hosts of
 * the same domain are not ours to decide about.
 */
export function transportSecurity(publicUrl: string | undefined): AnswerHeaders {
  const isSecure = publicUrl !== undefined && new URL(publicUrl).protocol === "https:";
  return isSecure ? { "strict-transport-security": "max-age=31536000" } : {};
}
