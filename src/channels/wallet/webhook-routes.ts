import type { Elysia } from "elysia";
import type { FrontDoor } from "../../http/front-door.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import { operatorRoute, tenantIdOf } from "../../http/operator-route.ts";
import { checkWebhookUrl } from "./devices/check-webhook-url.ts";
import { walletWebhookBody } from "./operator-bodies.ts";

/** `PUT /dash/api/tenants/{id}/wallet-webhook`: where a tenant hears of devices that take its passes. */
export function walletWebhookRoutes(app: Elysia, door: FrontDoor): void {
  const { registry, wallet } = door.ports;
  const body = new OperatorBody(walletWebhookBody);
  app.put("/dash/api/tenants/:id/wallet-webhook", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const { wallet_webhook_url } = await body.read(door, exchange);
      if (wallet_webhook_url !== null) await checkWebhookUrl(wallet_webhook_url, wallet.outbound);
      await registry.putWalletWebhook(tenantId, wallet_webhook_url);
      return exchange.json(200, { wallet_webhook_url });
    }),
  );
}
