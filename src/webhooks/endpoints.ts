import type { RegistryTools } from "../storage/registry.ts";
import { WebhookRepository } from "./webhook-repository.ts";

interface WebhookRegistry {
  readonly webhooks: WebhookRepository;
}

/** The webhooks' part of the registry. */
export function webhookRegistry(tools: RegistryTools): WebhookRegistry {
  return { webhooks: new WebhookRepository(tools) };
}

declare module "../storage/registry.ts" {
  interface Registry extends WebhookRegistry {}
}
