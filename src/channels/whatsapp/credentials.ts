import { ACCESS_TOKEN, PHONE_NUMBER_ID, type WhatsappSender } from "../../domain/channels/whatsapp.ts";
import { type Done, done, type Invalid, invalid } from "../../domain/store-result.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import type { Secret, SecretPlace } from "../../storage/vault.ts";

export interface WhatsappCredentials {
  readonly phone_number_id: string;
  readonly access_token: string;
  /** The provider's id of the WhatsApp Business account. */
  readonly business_account_id?: string | undefined;
}

/** The registry's name for these credentials. */
export const WHATSAPP_KIND = "whatsapp";

/** Returns the location of a tenant's chat credentials in the registry. */
export function whatsappCredentialsPlace(tenantId: string): SecretPlace {
  return { tenantId, kind: WHATSAPP_KIND, field: "credentials" };
}

/** Converts the credentials to their stored form. */
export function whatsappSecret(
  tenantId: string,
  { phone_number_id, access_token, business_account_id }: WhatsappCredentials,
): Done<Secret> | Invalid {
  if (!PHONE_NUMBER_ID.test(phone_number_id)) {
    return invalid('The field "phone_number_id" must be 1 to 32 digits.');
  }
  if (!ACCESS_TOKEN.test(access_token)) {
    return invalid('The field "access_token" must be printable ASCII characters without blanks.');
  }
  if (business_account_id !== undefined && !PHONE_NUMBER_ID.test(business_account_id)) {
    return invalid('The field "business_account_id" must be 1 to 32 digits.');
  }
  const text = JSON.stringify({ phone_number_id, access_token, business_account_id });
  return done({ place: whatsappCredentialsPlace(tenantId), text });
}

/** Parses the output of `whatsappSecret`. */
export function parseWhatsappCredentials(text: string): WhatsappSender {
  const value: unknown = JSON.parse(text);
  const members = isJsonObject(value) ? value : {};
  const { phone_number_id: phoneNumberId, access_token: accessToken, business_account_id: accountId } = members;
  if (typeof phoneNumberId !== "string" || typeof accessToken !== "string") {
    throw new Error("stored chat credentials are incomplete");
  }
  return { phoneNumberId, accessToken, ...(typeof accountId === "string" ? { accountId } : null) };
}
