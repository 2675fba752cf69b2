import { isJsonObject } from "../../domain/json.ts";
import type { WhatsappCredentials } from "../../domain/registry.ts";
import type { WhatsappSender } from "../../domain/whatsapp.ts";
import type { SecretPlace } from "../../storage/vault.ts";

/** Where a tenant's chat credentials are kept. */
export function whatsappCredentialsPlace(tenantId: string): SecretPlace {
  return { tenantId, kind: "whatsapp", field: "credentials" };
}

/** The credentials as the vault seals them. */
export function whatsappCredentialsText({ phone_number_id, access_token }: WhatsappCredentials): string {
  return JSON.stringify({ phone_number_id, access_token });
}

/** The sender of the credentials that `whatsappCredentialsText` wrote. */
export function parseWhatsappCredentials(text: string): WhatsappSender {
  const value: unknown = JSON.parse(text);
  const members = isJsonObject(value) ? value : {};
  const [phoneNumberId, accessToken] = [members["phone_number_id"], members["access_token"]];
  if (typeof phoneNumberId !== "string" || typeof accessToken !== "string") {
    throw new Error("stored chat credentials are incomplete");
  }
  return { phoneNumberId, accessToken };
}
