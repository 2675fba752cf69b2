import { timingSafeEqual } from "node:crypto";
import { ApiError } from "../../../http/api-error.ts";
import { secretDigest } from "../../../http/bearer-token.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { Pass, PassStore } from "../passes.ts";

/**
 * The pass whose token the request presents (`Authorization: ApplePass <token>`). Tenants that share a pass type may
 * each have a pass with the serial: the token selects one. Throws the same 401 for a wrong token and for a pass that
 * does not exist.
 */
export async function admittedPass(
  exchange: Exchange,
  passes: Pick<PassStore, "findBySerial">,
  { passTypeId, serial }: { readonly passTypeId: string; readonly serial: string },
): Promise<Pass> {
  exchange.challenge = 'ApplePass realm="waybill passes"';
  const shown = CREDENTIALS.exec(exchange.request.headers.get("authorization") ?? "")?.[1];
  const candidates = shown === undefined ? [] : await passes.findBySerial(passTypeId, serial);
  const given = secretDigest(shown ?? "");
  // Compares all of them, in constant time.
  const admitted = candidates.filter(
    ({ authenticationToken }) =>
      authenticationToken !== null && timingSafeEqual(secretDigest(authenticationToken), given),
  );
  const [pass] = admitted;
  if (pass === undefined) {
    throw new ApiError(401, "there is no such pass, or its token is another: send it as Authorization: ApplePass");
  }
  return pass;
}

/** Wallets for Android that speak Apple's protocol say who they are: `WalletUnionPass`, `AndroidPass`, `WalletPasses`. */
const CREDENTIALS = /^[a-z][a-z0-9-]{0,60}pass(?:es)? +([!-~]{1,256}) *$/i;
