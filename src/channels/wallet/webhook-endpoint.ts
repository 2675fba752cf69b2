import { Type } from "@sinclair/typebox";
import type { OutboundGuard } from "../../domain/outbound.ts";
import type { Done, Missing } from "../../domain/store-result.ts";
import { parseWebhookUrl, webhookRefusal } from "../../domain/webhook-url.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import type { Refusal } from "../../http/sending/acceptance.ts";
import { resultOf } from "../../http/store-results.ts";
import { walletWebhookBody } from "./operator-bodies.ts";

export interface WalletWebhookPorts {
  readonly registry: {
    /** Null: none. The caller has checked the address. */
    putWalletWebhook(tenantId: string, url: string | null): Promise<Done | Missing<"tenant">>;
  };
  readonly wallet: { readonly outbound: OutboundGuard };
}

const WalletWebhook = Type.Object(
  { wallet_webhook_url: Type.Union([Type.String(), Type.Null()]) },
  { $id: "WalletWebhook" },
);

/**
 * `PUT /dash/api/tenants/{id}/wallet-webhook`: the address that is told when devices add or remove a tenant's passes.
 */
export function walletWebhookEndpoint({ registry, wallet }: WalletWebhookPorts): Endpoint {
  return operatorEndpoint({
    method: "PUT",
    path: "/dash/api/tenants/:id/wallet-webhook",
    name: "operator",
    operation: "putWalletWebhook",
    tag: "Tenants",
    summary: "Set where a tenant hears of devices that take or drop its Apple passes",
    params: { id: tenantIdParameter },
    body: walletWebhookBody,
    answers: {
      200: {
        description: "Done.",
        schema: WalletWebhook,
        examples: [{ wallet_webhook_url: "https://api.example.com/hooks/wallet" }],
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id }, body: { wallet_webhook_url } }) {
      const refusal = wallet_webhook_url === null ? null : await webhookUrlRefusal(wallet_webhook_url, wallet.outbound);
      if (refusal !== null) throw new ApiError(refusal.status, refusal.message);
      resultOf(await registry.putWalletWebhook(id, wallet_webhook_url));
      return reply(200, { wallet_webhook_url });
    },
  });
}

/**
 * Why a tenant's address must not be stored, or null. Does not resolve public names, because their addresses can change:
 * every call resolves the name and connects to that address.
 */
export async function webhookUrlRefusal(text: string, guard: OutboundGuard): Promise<Refusal | null> {
  const url = parseWebhookUrl(text);
  if ("why" in url) return refused(url.why);
  const route =
    url.secure && isPublicName(url.host)
      ? ({ kind: "allowed", address: url.host, addresses: [url.host], configured: false } as const)
      : await guard.routeTo(url.host);
  const why = webhookRefusal(url, route);
  return why === null ? null : refused(why);
}

/**
 * A public DNS name, judged by form: no IP address, and no name of this machine or a local network (RFC 6761, 6762).
 */
function isPublicName(host: string): boolean {
  return /\.[a-z][a-z0-9-]*$/.test(host) && !/\.(localhost|local|internal)$/.test(host);
}

function refused(why: string): Refusal {
  return { status: 400, message: `the field "wallet_webhook_url" ${why}` };
}
