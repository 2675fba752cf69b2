import { Type } from "@sinclair/typebox";
import { parseAddress } from "../../domain/channels/email.ts";
import { parseSmtpUrl } from "../../domain/channels/smtp-url.ts";
import { limits } from "../../domain/limits.ts";
import type { Invalid } from "../../domain/store-result.ts";
import { isDay } from "../../domain/tenants/warm-up.ts";
import { ApiError } from "../../http/api-error.ts";
import { credentialsStored, replyStored } from "../../http/credential-kind.ts";
import { type Endpoint, operatorEndpoint } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { oneLine } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { CredentialsPut } from "../../storage/registry.ts";
import type { EmailCredentials } from "./credentials.ts";

export interface EmailRegistry {
  /** Stored encrypted, never returned. */
  putEmailCredentials(tenantId: string, credentials: EmailCredentials): Promise<CredentialsPut | Invalid>;
}

export interface CredentialEndpointPorts {
  readonly registry: EmailRegistry;
}

const emailCredentialsBody = Type.Object(
  {
    from_address: Type.String({ maxLength: limits.addressBytesMax, description: "one e-mail address" }),
    from_name: Type.Optional(oneLine("1 to 200 characters without control characters", 200, 1)),
    smtp_url: Type.Optional(
      Type.String({
        pattern: "^smtps?://[\\x21-\\x7e]{1,2000}$",
        description: "the address of a mail server, such as smtp://user:password@mail.example.com:587",
      }),
    ),
    warm_up_from: Type.Optional(
      Type.String({
        pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        description: "the UTC day (YYYY-MM-DD) on which a dedicated address began to send and its warm-up to count",
      }),
    ),
  },
  { additionalProperties: false, examples: [{ from_address: "hello@acme.example", from_name: "Acme" }] },
);

/** `PUT /dash/api/tenants/{id}/credentials/email`: sets a tenant's own sender. */
export function credentialEndpoints({ registry }: CredentialEndpointPorts): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "PUT",
      path: "/dash/api/tenants/:id/credentials/email",
      name: "operator",
      operation: "putEmailCredentials",
      audit: { body: ["from_address", "from_name"] },
      tag: "Tenants",
      summary: "Set a tenant's own sender; stored encrypted, never given back",
      params: { id: tenantIdParameter },
      body: emailCredentialsBody,
      answers: credentialsStored,
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ params: { id }, body }) {
        const from_address = parseAddress(body.from_address);
        if (from_address === null) throw new ApiError(400, "from_address must be one e-mail address");
        if (body.smtp_url !== undefined && parseSmtpUrl(body.smtp_url) === null) {
          throw new ApiError(400, "smtp_url must be the address of a mail server");
        }
        if (body.warm_up_from !== undefined && !isDay(body.warm_up_from)) {
          throw new ApiError(400, "warm_up_from must be a day of the calendar, YYYY-MM-DD");
        }
        return replyStored("email", requireResult(await registry.putEmailCredentials(id, { ...body, from_address })));
      },
    }),
  ];
}
