import { AppleBundles } from "../channels/wallet/apple/apple-bundles.ts";
import { checkAppleSigner } from "../channels/wallet/apple/check-apple-signer.ts";
import { PassSigners, PLATFORM } from "../channels/wallet/apple/pass-signers.ts";
import { PassPusher } from "../channels/wallet/apple/push/pass-pusher.ts";
import { DeviceLog } from "../channels/wallet/devices/device-log.ts";
import { DeviceWebhooks } from "../channels/wallet/devices/device-webhooks.ts";
import type { PassKitPorts } from "../channels/wallet/devices/pass-kit-ports.ts";
import { CallbackKeys } from "../channels/wallet/google/callbacks/callback-keys.ts";
import { GoogleCallbacks } from "../channels/wallet/google/callbacks/google-callbacks.ts";
import type { GoogleWallet } from "../channels/wallet/google/google-wallet.ts";
import { walletLimits } from "../channels/wallet/limits.ts";
import { MessagePasses } from "../channels/wallet/message-passes.ts";
import { PassFileLinks } from "../channels/wallet/pass-file-links.ts";
import type { WalletPorts } from "../channels/wallet/ports.ts";
import { WalletChannel } from "../channels/wallet/wallet-channel.ts";
import type { Config } from "../config/config.ts";
import type { Expiring } from "../domain/channels/credentials.ts";
import type { PlatformCredentials } from "../domain/channels/platform.ts";
import type { AppleSigner } from "../domain/channels/wallet.ts";
import type { JobIds } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { SeriesGauges, Telemetry } from "../domain/telemetry.ts";
import type { TenantDirectory } from "../domain/tenants/tenant.ts";
import type { TenantNewsDesk } from "../domain/tenants/tenant-news.ts";
import { CallTurns } from "../http/call-turns.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { WebhookClient } from "../runtime/webhook-client.ts";
import type { ChannelPorts, ProviderUrls, StartedChannel } from "./app-channel.ts";
import { startApplePush } from "./apple.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { outboundGuard } from "./outbound-guard.ts";
import type { Shutdown } from "./shutdown.ts";

/** Passes for Apple's wallet, whose devices are told of changes, and for Google's. */
export async function startWallet(
  { config, telemetry, google }: ChannelPorts,
  shutdown: Shutdown,
): Promise<StartedChannel> {
  const { connections, inbox, url } = await startApplePush(config, telemetry, shutdown);
  return {
    urls: { apnsUrl: url },
    inbox,
    open({ registry: { passes, devices }, bundles }) {
      const pusher = new PassPusher({ connections, devices, clock: systemClock, random: systemRandom, telemetry });
      const wallet = new WalletChannel({ passes, bundles, pusher, google, telemetry });
      shutdown.add("providers", "pushes", () => wallet.close());
      return wallet;
    },
  };
}

interface WalletContext {
  readonly config: Config;
  readonly registry: Pick<OpenRegistry, "passes" | "devices" | "googleSaves" | "directory">;
  readonly platform: PlatformCredentials;
  readonly google: GoogleWallet;
  readonly urls: Pick<ProviderUrls, "googleCallbackKeysUrl">;
  readonly telemetry: Telemetry & SeriesGauges;
  /** The address at which devices reach the API. Read when a pass is signed, since the port may only be known by then. */
  publicUrl(): string;
}

/** Dependencies of the API's wallet routes; the wallet channel signs with the same `bundles`. */
export interface OpenWallet extends WalletPorts {
  readonly bundles: AppleBundles;
  /** Makes the passes of messages. */
  readonly messagePasses: MessagePasses;
  /** Updates time-dependent metrics. */
  measure(): void;
  /** The end of the platform's own certificate. */
  platformExpiring(): readonly Expiring[];
}

/** Creates the wallet's parts, and starts only a check of the platform's certificate. */
export function openWallet(context: WalletContext, shutdown: Shutdown): OpenWallet {
  const { config, registry, platform, google, urls, telemetry, publicUrl } = context;
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
  if (platform.apple !== null) void note(platform.apple, PLATFORM);
  const keys = new CallbackKeys({ url: urls.googleCallbackKeysUrl, clock: systemClock, telemetry });
  shutdown.add("providers", "Google's keys", () => keys.close());
  const fileLinks = new PassFileLinks(config.masterKeys, publicUrl);
  return {
    fileLinks,
    fileTurns: new CallTurns(walletLimits.tenantFileReads, systemClock),
    messagePasses: new MessagePasses({ passes, bundles, google, fileLinks }),
    passes,
    devices,
    bundles,
    google,
    classes: google.classes,
    callbacks: new GoogleCallbacks(keys, systemClock),
    saves: registry.googleSaves,
    saveLinks: google,
    checkSigner: (signer) => checkAppleSigner(signer, nowMs()),
    noteSigner: note,
    measure: () => signers.measure(telemetry, ownerCheck(registry.directory)),
    platformExpiring: () => platformExpiring(signers),
    outbound: outboundGuard(config),
  };
}

function platformExpiring(signers: PassSigners): readonly Expiring[] {
  const end = signers.findEnd(PLATFORM);
  if (end === null) return [];
  return [{ kind: "apple_certificate", tenantId: null, name: end.passTypeId, expiresAtMs: end.notAfterMs }];
}

/** Tenants that are loaded for one measurement; the others are, for the next ones. */
const LOADED_MAX = 20;

/** Says whether a tenant has Apple credentials of its own; if it is not in memory, that it has, until it is loaded. */
function ownerCheck(directory: TenantDirectory): (tenantId: string) => boolean {
  let loads = 0;
  return (tenantId) => {
    const tenant = directory.byIdNow?.(tenantId);
    if (tenant !== undefined) return tenant !== null && tenant.wallet.apple !== null;
    if (loads < LOADED_MAX) Promise.resolve(directory.byId(tenantId)).catch(() => undefined);
    loads += 1;
    return true;
  };
}

export interface PassKit extends PassKitPorts {
  readonly log: DeviceLog;
  /** Delivers pending notifications until `limits.drainMs` have passed since `drainedFromMs` (monotonic). */
  stop(drainedFromMs: number): Promise<void>;
}

/** Creates the service for devices that hold passes, without starting it. */
export function openPassKit({
  config,
  registry: { passes, devices, directory },
  bundles,
  news,
  jobIds,
  telemetry,
}: {
  readonly config: Config;
  readonly registry: OpenRegistry;
  readonly bundles: AppleBundles;
  readonly news: TenantNewsDesk;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
}): PassKit {
  const clock = systemClock;
  const caller = new WebhookClient({ guard: outboundGuard(config) });
  const webhooks = new DeviceWebhooks({ directory, caller, clock, jobIds, telemetry });
  const log = new DeviceLog({ clock, telemetry, keptMax: config.providers === "live" ? 0 : COMPLAINTS_KEPT });
  return {
    passes,
    devices,
    bundles,
    news,
    jobIds,
    webhooks,
    log,
    stop: (drainedFromMs) => webhooks.stop(drainedFromMs + limits.drainMs),
  };
}

/** Most complaints kept for the sandbox view. */
const COMPLAINTS_KEPT = 1_000;
