import type { AppleSigner, PassContent, PassType, Unusable } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { failure, tenantFailure } from "../../http/failures.ts";
import { permitsNfc } from "./apple/check-apple-signer.ts";
import type { GooglePasses } from "./passes.ts";
import { type Checked, Fault } from "./request/readers.ts";

/** The wallet endpoints' HTTP errors for the results of checks, stores and providers. */

/** Returns the checked request. Throws an `ApiError` 400 if it has a fault. */
export function orRefuse<T>(checked: Checked<T>): T {
  if (checked instanceof Fault) throw new ApiError(checked, checked.message);
  return checked;
}

/**
 * Throws an `ApiError` 400 if the pass links to objects that only another tenant may use.
 *
 * @param at The prefix of the request's member names in errors.
 */
export async function requireOwnLinks(
  google: Pick<GooglePasses, "linkProblem">,
  tenant: Tenant,
  content: PassContent,
  at = "",
): Promise<void> {
  const problem = content.type === "google" ? await google.linkProblem(tenant, content) : null;
  if (problem !== null) throw new ApiError(400, `${at}pass_data.object_data: ${problem}`);
}

/**
 * Throws an `ApiError` 400 if no phone would open the pass, because its certificate may not sign its content.
 *
 * @param at The prefix of the request's member names in errors.
 */
export function requireSignable(content: PassContent, signer: AppleSigner | null, at = ""): void {
  if (content.type !== "apple" || content.pass["nfc"] === undefined || signer === null || permitsNfc(signer)) return;
  const why = `needs a certificate that Apple issued for NFC, and the one for ${signer.passTypeId} is not`;
  throw new ApiError(400, `${at}pass_data.nfc ${why}`);
}

/** Creates the 500 for a provider, or credentials, that cannot be used. */
export function unusable({ why }: Unusable): ApiError {
  return new ApiError("not_configured", why);
}

/** Creates the 500 for a tenant without credentials for passes of the type. */
export function missingCredentials(type: PassType): ApiError {
  return new ApiError(
    "not_configured",
    `the channel wallet has no credentials for passes of type ${type}: the operator sets a tenant's own with PUT ` +
      `/dash/api/tenants/{id}/credentials/${type} (allow_custom must name wallet), or everybody's with the settings ` +
      `${type.toUpperCase()}_…`,
  );
}

/** The 402 of requests that cost a token. */
export const NO_TOKENS = tenantFailure(
  "NoTokens",
  "No token is left.",
  "no token is left: a wallet pass costs 1, ask for more",
);

/** The 429 of a pass's file, which anyone with its link may fetch. */
export const FETCHED_OFTEN = failure(
  "PassFetchedOften",
  "The pass is being fetched too often at one time.",
  "too many such calls are under way: try again shortly",
  { headers: ["Retry-After"] },
);

export function noSuchPass(): ApiError {
  return new ApiError("no_such_pass", "there is no such pass");
}
