import { ApiError } from "../../domain/errors.ts";
import type { PassType } from "../../domain/wallet.ts";

/** The 500 for a tenant without credentials for passes of the type. */
export function missingCredentials(type: PassType): ApiError {
  return new ApiError(
    500,
    `the channel wallet has no credentials for passes of type ${type}: the operator sets a tenant's own with PUT ` +
      `/dash/api/tenants/{id}/credentials/${type} (allow_custom must name wallet), or everybody's with the settings ` +
      `${type.toUpperCase()}_…`,
  );
}
