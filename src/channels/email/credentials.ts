import type { EmailSender } from "../../domain/email.ts";
import { isJsonObject } from "../../domain/json.ts";
import type { EmailCredentials } from "../../domain/registry.ts";
import type { SecretPlace } from "../../storage/vault.ts";

/** Where a tenant's e-mail credentials are kept. */
export function emailCredentialsPlace(tenantId: string): SecretPlace {
  return { tenantId, kind: "email", field: "credentials" };
}

/** The credentials as the vault seals them. */
export function emailCredentialsText(credentials: EmailCredentials): string {
  return JSON.stringify(credentials);
}

/** The sender of the credentials that `emailCredentialsText` wrote. */
export function parseEmailCredentials(text: string): EmailSender {
  const value: unknown = JSON.parse(text);
  const members = isJsonObject(value) ? value : {};
  const [fromAddress, fromName, smtpUrl] = [members["from_address"], members["from_name"], members["smtp_url"]];
  const warmUpFrom = members["warm_up_from"];
  if (typeof fromAddress !== "string") throw new Error("stored e-mail credentials are incomplete");
  return {
    fromAddress,
    fromName: typeof fromName === "string" ? fromName : null,
    smtpUrl: typeof smtpUrl === "string" ? smtpUrl : null,
    ...(typeof warmUpFrom === "string" && { warmUpFrom }),
  };
}
