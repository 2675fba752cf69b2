import { GoogleCallbackSigner } from "../../../src/channels/wallet/sandbox/google-callback-signer.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";

/** Signs callbacks of Google's wallet for the product under attack. */
export const callbackSigner = new GoogleCallbackSigner(systemClock);

/** Serves the root key, as Google does. */
export function serveCallbackKeys() {
  return Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(callbackSigner.keys()) });
}
