import { Type } from "@sinclair/typebox";
import type { Elysia } from "elysia";
import { ACCESS_TOKEN, PHONE_NUMBER_ID } from "../../domain/whatsapp.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "../../http/operator-route.ts";

export const whatsappCredentialsBody = Type.Object(
  {
    phone_number_id: Type.String({
      pattern: PHONE_NUMBER_ID.source,
      description: "the provider's id of the phone number, 1 to 32 digits",
    }),
    access_token: Type.String({
      pattern: ACCESS_TOKEN.source,
      description: "an access token: printable ASCII characters without blanks",
    }),
  },
  { additionalProperties: false, examples: [{ phone_number_id: "106540352242922", access_token: "EAAJBexample" }] },
);

/** `PUT /dash/api/tenants/{id}/credentials/whatsapp`: a tenant's own phone number. Never given back. */
export function whatsappCredentialRoutes(app: Elysia, door: FrontDoor): void {
  const body = new OperatorBody(whatsappCredentialsBody);
  app.put("/dash/api/tenants/:id/credentials/whatsapp", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      await door.ports.registry.putWhatsappCredentials(tenantId, await body.read(door, exchange));
      return noContent(exchange);
    }),
  );
}
