import { ApiError } from "./api-error.ts";
import { type Endpoint, endpoint } from "./endpoint.ts";
import { failure, PUBLIC_INTERNAL_ERROR } from "./failures.ts";
import type { FrontDoor } from "./front-door.ts";

const PATH = "/.well-known/security.txt";
/** RFC 9116 recommends less than a year. The file is made anew at each request, so a reader's copy is what expires. */
const VALID_MS = 30 * 24 * 60 * 60 * 1000;

/** `GET /.well-known/security.txt`: where to report a vulnerability (RFC 9116). */
export function securityEndpoint({ ports: { securityContacts = [], publicUrl, clock } }: FrontDoor): Endpoint {
  return endpoint({
    method: "GET",
    path: PATH,
    name: "security_txt",
    operation: "securityTxt",
    tag: "Service",
    summary: "Where to report a vulnerability (RFC 9116)",
    answers: { 200: { description: "Contact and expiry.", schema: null, mediaType: "text/plain" } },
    fails: { 404: UNNAMED, 500: PUBLIC_INTERNAL_ERROR },
    handle: (_, exchange) => {
      if (securityContacts.length === 0) throw new ApiError(404, "no contact for reports of vulnerabilities is set");
      const expires = new Date(clock.nowMs() + VALID_MS).toISOString().replace(/\.\d+Z$/, "Z");
      const lines = [...securityContacts.map((contact) => `Contact: ${contact}`), `Expires: ${expires}`];
      // A web address has to be one of https.
      if (publicUrl?.startsWith("https:") === true) lines.push(`Canonical: ${publicUrl}${PATH}`);
      return exchange.body(200, `${lines.join("\n")}\n`, {
        "content-type": "text/plain; charset=utf-8",
        "cache-control": "public, max-age=86400",
      });
    },
  });
}

const UNNAMED = failure(
  "NoSecurityContact",
  "The server was given no contact (`SECURITY_CONTACT`).",
  "no contact for reports of vulnerabilities is set",
);
