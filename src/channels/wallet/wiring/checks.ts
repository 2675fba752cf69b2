import type { Config } from "../../../config/config.ts";
import { ConfigurationError } from "../../../domain/errors.ts";
import type { AppChannel } from "../../contract.ts";
import { permitsNfc } from "../apple/check-apple-signer.ts";
import { platformApple, realPushUrl } from "./apple.ts";
import { realGoogleUrls } from "./google.ts";

export const walletChecks: NonNullable<AppChannel["checks"]> = (config, reach) => ({
  "Google Wallet": () => reach(realGoogleUrls(config).apiUrl),
  "Google tokens": () => reach(realGoogleUrls(config).tokenUrl),
  "Apple passes": () => tryApple(config),
  "Apple push": () => reach(realPushUrl(config)),
});

/** Describes the certificate. Only a push shows whether Apple still accepts it. */
async function tryApple(config: Config): Promise<string> {
  const isLive = config.providers === "live";
  const isReached = !isLive || config.publicUrl?.startsWith("https:") === true;
  const unreached =
    "PUBLIC_URL is not https: Apple's devices ask for updates over https alone, so that no pass would ever change";
  if (config.appleCertificate === null) {
    if (!isLive) return "sandbox";
    return `tenants' own credentials only${isReached ? "" : `\nWARNING, ${unreached}`}`;
  }
  const signer = await platformApple(config);
  if (!isReached) throw new ConfigurationError(unreached);
  const nfc = signer !== null && permitsNfc(signer) ? "with nfc, too" : "and may not sign passes with nfc";
  return `the certificate is in order, ${nfc}`;
}
