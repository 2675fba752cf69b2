import { limits } from "../limits.ts";
import { extractHost } from "./host.ts";
import type { OutboundGuard, OutboundRoute } from "./outbound.ts";

/** The address of a tenant's webhook. */
export interface WebhookUrl {
  readonly secure: boolean;
  /** A name without a trailing dot, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The value of the `Host` header. */
  readonly authority: string;
  /** Includes the query. */
  readonly path: string;
}

/**
 * Parses the text by the rules of browsers (WHATWG URL), which read `0x7f.1` as 127.0.0.1; otherwise returns why it
 * cannot be used.
 */
export function parseWebhookUrl(text: string): WebhookUrl | { readonly why: string } {
  if (text.length > limits.webhookUrlCharsMax) return { why: `is longer than ${limits.webhookUrlCharsMax} characters` };
  // Some parsers take a backslash for the end of a host, others for a part of its user.
  const url = /[\s\\\p{Cc}]/u.test(text) ? null : URL.parse(text);
  if (url === null) return { why: "is not an address like https://example.com/devices" };
  const { protocol, username, password } = url;
  if (protocol !== "https:" && protocol !== "http:") return { why: "must begin with https://" };
  if (username !== "" || password !== "") return { why: "must hold no user name and no password" };
  if (text.includes("#")) return { why: "must not hold a fragment (#…)" };
  const host = extractHost(url).replace(/\.$/, "");
  if (host === "") return { why: "names no host" };
  const secure = protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  return { secure, host, port, authority: url.host, path: url.pathname + url.search };
}

/**
 * Ports that serve https to the public. On other ports, a stranger's address could belong to something other than a web
 * server.
 */
const PUBLIC_PORTS: readonly number[] = [443, 8443];

/** Returns why this address must not be called over this route, or null. Completes "it …". */
export function webhookRefusal({ secure, port }: WebhookUrl, route: OutboundRoute): string | null {
  if (route.kind !== "allowed") return `names a host that ${route.why}`;
  if (route.configured) return null;
  if (!secure) return "must begin with https://: http is only for networks that OUTBOUND_ALLOW names";
  return PUBLIC_PORTS.includes(port) ? null : `must use port ${PUBLIC_PORTS.join(" or ")}`;
}

/**
 * Returns why a tenant's address must not be stored, or null. Completes "it …". Does not resolve public names, because
 * their addresses can change: every call resolves the name and connects to that address.
 */
export async function webhookUrlFault(text: string, guard: OutboundGuard): Promise<string | null> {
  const url = parseWebhookUrl(text);
  if ("why" in url) return url.why;
  const route =
    url.secure && isPublicName(url.host)
      ? ({ kind: "allowed", address: url.host, addresses: [url.host], configured: false } as const)
      : await guard.routeTo(url.host);
  return webhookRefusal(url, route);
}

/**
 * Whether the host is a public DNS name, judged by form: no IP address, and no name of this machine or a local network
 * (RFC 6761, 6762).
 */
function isPublicName(host: string): boolean {
  return /\.[a-z][a-z0-9-]*$/.test(host) && !/\.(localhost|local|internal)$/.test(host);
}
