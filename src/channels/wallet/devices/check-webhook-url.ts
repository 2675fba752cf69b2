import { ApiError } from "../../../domain/errors.ts";
import type { OutboundGuard } from "../../../domain/outbound.ts";
import { parseWebhookUrl, webhookRefusal } from "../../../domain/webhook-url.ts";

/**
 * Checks whether a tenant's address may be stored: throws an `ApiError` 400 that names the field and the reason. It
 * does not resolve public names, because their addresses can change: every call resolves the name and connects to that
 * address.
 */
export async function checkWebhookUrl(text: string, guard: OutboundGuard): Promise<void> {
  const url = parseWebhookUrl(text);
  if ("why" in url) throw refused(url.why);
  const route =
    url.secure && isPublicName(url.host)
      ? ({ kind: "allowed", address: url.host, addresses: [url.host], configured: false } as const)
      : await guard.routeTo(url.host);
  const why = webhookRefusal(url, route);
  if (why !== null) throw refused(why);
}

/**
 * A public DNS name, judged by form: no IP address, and no name of this machine or a local network (RFC 6761, 6762).
 */
function isPublicName(host: string): boolean {
  return /\.[a-z][a-z0-9-]*$/.test(host) && !/\.(localhost|local|internal)$/.test(host);
}

function refused(why: string): ApiError {
  return new ApiError(400, `the field "wallet_webhook_url" ${why}`);
}
