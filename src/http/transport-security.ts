import type { AnswerHeaders } from "./exchange.ts";

/**
 * Headers for pages served over TLS: browsers then use TLS only, for a year (RFC 6797). Subdomains are not included, because
 * they are not ours to decide about.
 */
export function transportSecurity(publicUrl: string | undefined): AnswerHeaders {
  const isSecure = publicUrl !== undefined && new URL(publicUrl).protocol === "https:";
  return isSecure ? { "strict-transport-security": "max-age=31536000" } : {};
}
