import { ApiError } from "../domain/errors.ts";

export function noSuchTenant(tenantId: string): ApiError {
  return new ApiError(404, `There is no tenant ${JSON.stringify(tenantId.slice(0, 63))}.`);
}
