import { Type } from "@sinclair/typebox";
import type { Done, Missing } from "../../domain/store-result.ts";
import type { OutboundGuard } from "../../domain/texts/outbound.ts";
import { webhookUrlFault } from "../../domain/texts/webhook-url.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import type { Refusal } from "../../http/sending/acceptance.ts";
import { requireResult } from "../../http/store-results.ts";
import { walletWebhookBody } from "./operator-bodies.ts";

export interface WalletWebhookPorts {
  readonly registry: {
    /** Stores the address, which the caller has checked; null removes the webhook. */
    putWalletWebhook(tenantId: string, url: string | null): Promise<Done | Missing<"tenant">>;
  };
  readonly wallet: { readonly outbound: OutboundGuard };
}

const WalletWebhook = Type.Object(
  { wallet_webhook_url: Type.Union([Type.String(), Type.Null()]) },
  { $id: "WalletWebhook" },
);

/** `PUT /dash/api/tenants/{id}/wallet-webhook`: the address that is called when devices add or remove a tenant's passes. */
export function walletWebhookEndpoint({ registry, wallet }: WalletWebhookPorts): Endpoint {
  return operatorEndpoint({
    method: "PUT",
    path: "/dash/api/tenants/:id/wallet-webhook",
    name: "operator",
    operation: "putWalletWebhook",
    tag: "Tenants",
    summary: "Set where a tenant hears of devices that take or drop its passes",
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
      requireResult(await registry.putWalletWebhook(id, wallet_webhook_url));
      return reply(200, { wallet_webhook_url });
    },
  });
}

/** Returns why a tenant's address must not be stored, or null. */
export async function webhookUrlRefusal(text: string, guard: OutboundGuard): Promise<Refusal | null> {
  const why = await webhookUrlFault(text, guard);
  return why === null ? null : { status: 400, message: `the field "wallet_webhook_url" ${why}` };
}
