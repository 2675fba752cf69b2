import type { Elysia } from "elysia";
import { parseAddress } from "../../domain/address.ts";
import { ApiError } from "../../domain/errors.ts";
import { parseSmtpUrl } from "../../domain/smtp-url.ts";
import { isDay } from "../../domain/warm-up.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "../../http/operator-route.ts";
import { emailCredentialsBody } from "../../tenants/body-schemas.ts";

/** `PUT /dash/api/tenants/{id}/credentials/email`: a tenant's own sender. Never given back. */
export function credentialRoutes(app: Elysia, door: FrontDoor): void {
  const body = new OperatorBody(emailCredentialsBody);
  app.put("/dash/api/tenants/:id/credentials/email", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const credentials = await body.read(door, exchange);
      const from_address = parseAddress(credentials.from_address);
      if (from_address === null) throw new ApiError(400, "from_address must be one e-mail address");
      if (credentials.smtp_url !== undefined && parseSmtpUrl(credentials.smtp_url) === null) {
        throw new ApiError(400, "smtp_url must be the address of a mail server");
      }
      if (credentials.warm_up_from !== undefined && !isDay(credentials.warm_up_from)) {
        throw new ApiError(400, "warm_up_from must be a day of the calendar, YYYY-MM-DD");
      }
      await door.ports.registry.putEmailCredentials(tenantId, { ...credentials, from_address });
      return noContent(exchange);
    }),
  );
}
