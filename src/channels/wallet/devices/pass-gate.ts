import { timingSafeEqual } from "node:crypto";
import type { AppleContent, PassContent } from "../../../domain/channels/wallet.ts";
import { ApiError } from "../../../http/api-error.ts";
import { secretDigest } from "../../../http/bearer-token.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { Pass, PassStore } from "../passes.ts";

/**
 * Finds the pass whose token the request presents (`Authorization: ApplePass <token>`). Tenants that share a pass type
 * may each have a pass with the serial: the token selects one. Throws the same 401 for a wrong token and for a pass
 * that does not exist.
 */
export async function admittedPass(
  exchange: Exchange,
  passes: Pick<PassStore, "findBySerial">,
  { passTypeId, serial }: { readonly passTypeId: string; readonly serial: string },
): Promise<Pass> {
  exchange.challenge = CHALLENGE;
  const shown = CREDENTIALS.exec(exchange.request.headers.get("authorization") ?? "")?.[1];
  const candidates = shown === undefined ? [] : await passes.findBySerial(passTypeId, serial);
  const given = secretDigest(shown ?? "");
  // Compares all of them, in constant time.
  const admitted = candidates.filter(
    ({ authenticationToken }) =>
      authenticationToken !== null && timingSafeEqual(secretDigest(authenticationToken), given),
  );
  const [pass] = admitted;
  if (pass === undefined) throw unknownPass();
  return pass;
}

/**
 * Finds the pass whose form the holder fills in, or has filled in. Apple's protocol has no credentials for this call,
 * so the serial suffices if only one such pass has it. Throws as `admittedPass`.
 */
export async function askingPass(
  exchange: Exchange,
  passes: Pick<PassStore, "findBySerial">,
  named: { readonly passTypeId: string; readonly serial: string },
): Promise<Pass> {
  if (exchange.request.headers.has("authorization")) return admittedPass(exchange, passes, named);
  exchange.challenge = CHALLENGE;
  const [pass, other] = (await passes.findBySerial(named.passTypeId, named.serial)).filter(({ content }) =>
    asks(content),
  );
  if (pass === undefined || other !== undefined) throw unknownPass();
  return pass;
}

/** Whether the pass has a form for its holder, or had one that was filled in. */
export function asks(content: PassContent): content is AppleContent {
  return content.type === "apple" && (content.personalization !== undefined || content.personalized !== undefined);
}

function unknownPass(): ApiError {
  return new ApiError(401, "there is no such pass, or its token is another: send it as Authorization: ApplePass");
}

const CHALLENGE = 'ApplePass realm="waybill passes"';

/**
 * Wallets for Android that use Apple's protocol have their own schemes: `WalletUnionPass`, `AndroidPass`,
 * `WalletPasses`.
 */
const CREDENTIALS = /^[a-z][a-z0-9-]{0,60}pass(?:es)? +([!-~]{1,256}) *$/i;
