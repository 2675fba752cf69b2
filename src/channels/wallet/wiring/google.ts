import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import type { Config } from "../../../config/config.ts";
import { generatedAs } from "../../../config/generated-secret.ts";
import type { GoogleIssuer } from "../../../domain/channels/wallet.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import type { ChannelPorts, OpenChannel } from "../../contract.ts";
import { CALLBACK_PATH } from "../google/callbacks/google-callbacks.ts";
import { GoogleWallet } from "../google/google-wallet.ts";
import type { WalletPlatform } from "../platform.ts";
import { startGoogleSandbox } from "../sandbox/google-sandbox.ts";

const PUBLIC_API_URL = "https://walletobjects.googleapis.com";
const API_PATH = "/walletobjects/v1";
const PUBLIC_TOKEN_URL = "https://oauth2.googleapis.com/token";
const PUBLIC_KEYS_URL = "https://pay.google.com/gp/m/issuer/keys";
const PUBLIC_SAVE_URL = "https://pay.google.com/gp/v/save";
/** The platform's issuer in the sandbox when none is configured. */
const SANDBOX_ISSUER_ID = "3388000000012345678";
const SANDBOX_EMAIL = "waybill@sandbox.iam.gserviceaccount.com";

/** The platform's own issuer, or null. In the sandbox one is generated, with one key per data folder. */
export function platformGoogle(config: Config): GoogleIssuer | null {
  const { googleServiceAccount, googleIssuerId: issuerId, providers, home } = config;
  if (googleServiceAccount !== null && issuerId !== null) return { ...googleServiceAccount, issuerId };
  if (providers === "live") return null;
  const privateKeyPem = generatedAs(join(home, "google-private-key.pem"), newPrivateKey, (pem) => {
    createPrivateKey(pem);
    return pem;
  });
  return { issuerId: SANDBOX_ISSUER_ID, clientEmail: SANDBOX_EMAIL, privateKeyPem: `${privateKeyPem}\n` };
}

function newPrivateKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

export interface Google extends Required<Pick<OpenChannel, "settings" | "inboxes" | "callBack">> {
  readonly wallet: GoogleWallet;
  /** The address of the keys that sign callbacks; null: callbacks are not signed. */
  readonly keysUrl: string | null;
}

/** Google Wallet at the configured addresses, the public ones, or in a sandbox. */
export async function startGoogle(
  { config, clock, random, telemetry, stores: { googleClasses: classOwners, passes }, publicUrl }: ChannelPorts,
  platform: WalletPlatform,
  shutdown: Shutdown,
): Promise<Google> {
  const real = realGoogleUrls(config);
  const isReal = real.apiUrl !== null && real.tokenUrl !== null;
  const sandbox = isReal ? null : await startGoogleSandbox({ clock, keys: readKeys(platform.google), telemetry });
  if (sandbox !== null) shutdown.add("providers", "Google sandbox", () => sandbox.stop());
  const apiUrl = real.apiUrl ?? sandbox?.apiUrl ?? `${PUBLIC_API_URL}${API_PATH}`;
  const tokenUrl = real.tokenUrl ?? sandbox?.tokenUrl ?? PUBLIC_TOKEN_URL;
  const isLive = config.providers === "live";
  const keysUrl = isLive ? PUBLIC_KEYS_URL : (config.googleCallbackKeysUrl ?? sandbox?.keysUrl ?? null);
  const wallet = new GoogleWallet({
    apiUrl,
    tokenUrl,
    saveUrlBase: config.saveUrlBase ?? PUBLIC_SAVE_URL,
    platform,
    classOwners,
    passes,
    callbackUrl() {
      const url = publicUrl();
      // Google calls only `https` addresses.
      return keysUrl === null || (isLive && !url.startsWith("https:")) ? null : `${url}${CALLBACK_PATH}`;
    },
    clock,
    random,
    telemetry,
  });
  shutdown.add("providers", "Google's wallet", () => wallet.close());
  const callBack = (url: string) => sandbox?.callBack(`${url}${CALLBACK_PATH}`);
  // Real addresses are known from the configuration, but for the keys', which is Google's own.
  const addresses = isLive ? {} : { googleWalletApiUrl: apiUrl, googleTokenUrl: tokenUrl };
  const settings = { ...addresses, googleCallbackKeysUrl: keysUrl };
  return { wallet, keysUrl, settings, inboxes: sandbox === null ? [] : [sandbox.inbox], callBack };
}

/** The configured addresses or the public ones; null: a sandbox stands in. */
export function realGoogleUrls({ googleWalletApiUrl, googleTokenUrl, providers }: Config) {
  const isLive = providers === "live";
  return {
    apiUrl: withPath(googleWalletApiUrl ?? (isLive ? PUBLIC_API_URL : null)),
    tokenUrl: googleTokenUrl ?? (isLive ? PUBLIC_TOKEN_URL : null),
  };
}

/** The API's address. A bare host gets the path of the version that we speak. */
function withPath(url: string | null): string | null {
  return url === null || new URL(url).pathname !== "/" ? url : `${url}${API_PATH}`;
}

function readKeys(issuer: GoogleIssuer | null): ReadonlyMap<string, string> {
  if (issuer === null) return new Map();
  const publicKey = createPublicKey(issuer.privateKeyPem).export({ type: "spki", format: "pem" }).toString();
  return new Map([[issuer.clientEmail, publicKey]]);
}
