import { Type } from "@sinclair/typebox";
import { ACCESS_TOKEN, PHONE_NUMBER_ID } from "../../domain/channels/whatsapp.ts";
import type { Invalid } from "../../domain/store-result.ts";
import { credentialsStored, replyStored } from "../../http/credential-kind.ts";
import { type Endpoint, operatorEndpoint } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { requireResult } from "../../http/store-results.ts";
import type { CredentialsPut } from "../../storage/registry.ts";
import type { WhatsappCredentials } from "./credentials.ts";

export interface CredentialStore {
  /** Stored encrypted, never returned. */
  putWhatsappCredentials(tenantId: string, credentials: WhatsappCredentials): Promise<CredentialsPut | Invalid>;
}

const credentialsBody = Type.Object(
  {
    phone_number_id: Type.String({
      pattern: PHONE_NUMBER_ID.source,
      description: "the provider's id of the phone number, 1 to 32 digits",
    }),
    access_token: Type.String({
      pattern: ACCESS_TOKEN.source,
      description: "an access token: printable ASCII characters without blanks",
    }),
    business_account_id: Type.Optional(
      Type.String({
        pattern: PHONE_NUMBER_ID.source,
        description:
          "the provider's id of the WhatsApp Business account, 1 to 32 digits, by which its templates can be listed",
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [
      { phone_number_id: "106540352242922", access_token: "EAAJBexample", business_account_id: "102290129340398" },
    ],
  },
);

/** `PUT /dash/api/tenants/{id}/credentials/whatsapp`: stores a tenant's own phone number. The API never returns it. */
export function credentialEndpoint(registry: CredentialStore): Endpoint {
  return operatorEndpoint({
    method: "PUT",
    path: "/dash/api/tenants/:id/credentials/whatsapp",
    name: "operator",
    operation: "putWhatsappCredentials",
    audit: { body: ["phone_number_id", "business_account_id"] },
    tag: "Tenants",
    summary:
      "Set a tenant's own phone number for chat, used where allow_custom names whatsapp; stored encrypted, never given back",
    params: { id: tenantIdParameter },
    body: credentialsBody,
    answers: credentialsStored,
    fails: { 404: OPERATOR_NOT_FOUND },
    handle: async ({ params: { id }, body }) =>
      replyStored("whatsapp", requireResult(await registry.putWhatsappCredentials(id, body))),
  });
}
