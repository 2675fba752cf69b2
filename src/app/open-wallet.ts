import { AppleBundles } from "../channels/wallet/apple/apple-bundles.ts";
import { checkAppleSigner } from "../channels/wallet/apple/check-apple-signer.ts";
import { PassSigners } from "../channels/wallet/apple/pass-signers.ts";
import type { GoogleWallet } from "../channels/wallet/google/google-wallet.ts";
import type { WalletPorts } from "../channels/wallet/ports.ts";
import type { Config } from "../config/config.ts";
import type { PlatformCredentials } from "../domain/platform.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { AppleSigner } from "../domain/wallet.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { outboundGuard } from "./outbound-guard.ts";

export interface WalletContext {
  readonly config: Config;
  readonly registry: Pick<OpenRegistry, "passes" | "devices">;
  readonly platform: PlatformCredentials;
  readonly google: GoogleWallet;
  readonly telemetry: Telemetry;
  /** The address at which devices reach the API. Read when a pass is signed, since the port may only be known by then. */
  publicUrl(): string;
}

/** What the API's wallet routes need; the wallet channel signs with the same `bundles`. */
export interface OpenWallet extends WalletPorts {
  readonly bundles: AppleBundles;
  /** Updates time-dependent metrics. */
  measure(): void;
}

/** Starts nothing except a check of the platform's certificate. */
export function openWallet({ config, registry, platform, google, telemetry, publicUrl }: WalletContext): OpenWallet {
  const { passes, devices } = registry;
  const nowMs = () => systemClock.nowMs();
  const signers = new PassSigners({ telemetry, nowMs });
  const bundles = new AppleBundles({
    passes,
    signers,
    platform,
    telemetry,
    nowMs,
    get publicUrl() {
      return publicUrl();
    },
  });
  const note = (signer: AppleSigner, owner: string) =>
    // Callers who use the certificate get the reason why it cannot be used.
    signers.open(signer, owner).then(
      () => undefined,
      () => undefined,
    );
  if (platform.apple !== null) void note(platform.apple, "-");
  return {
    passes,
    devices,
    bundles,
    google,
    classes: google.classes,
    saveLinks: google,
    checkSigner: (signer) => checkAppleSigner(signer, nowMs()),
    noteSigner: note,
    measure: () => signers.measure(),
    outbound: outboundGuard(config),
  };
}
