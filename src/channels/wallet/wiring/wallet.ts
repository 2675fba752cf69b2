import type { CarriedPasses } from "../../../domain/channels/carried-pass.ts";
import type { Expiring } from "../../../domain/channels/credentials.ts";
import type { AppleSigner } from "../../../domain/channels/wallet.ts";
import { limits } from "../../../domain/limits.ts";
import type { TenantDirectory } from "../../../domain/tenants/tenant.ts";
import { CallTurns } from "../../../http/call-turns.ts";
import { outboundGuard } from "../../../runtime/network-guard.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import { WebhookClient } from "../../../runtime/webhook-client.ts";
import type { AppChannel, ChannelPorts, ChannelTools, OpenChannel } from "../../contract.ts";
import { AppleBundles } from "../apple/apple-bundles.ts";
import { checkAppleSigner } from "../apple/check-apple-signer.ts";
import { PassSigners, PLATFORM } from "../apple/pass-signers.ts";
import { PassPusher } from "../apple/push/pass-pusher.ts";
import { walletContentKind } from "../content-kind.ts";
import { WALLET_CREDENTIALS } from "../credential-kinds.ts";
import { DeviceLog } from "../devices/device-log.ts";
import { DeviceRepository } from "../devices/device-repository.ts";
import { DeviceWebhooks } from "../devices/device-webhooks.ts";
import type { PassKitPorts } from "../devices/pass-kit-ports.ts";
import { walletEndpoints, walletRegistry } from "../endpoints.ts";
import { CallbackKeys } from "../google/callbacks/callback-keys.ts";
import { GoogleCallbacks } from "../google/callbacks/google-callbacks.ts";
import type { GoogleWallet } from "../google/google-wallet.ts";
import { GoogleClassRepository } from "../google-class-repository.ts";
import type { GoogleClassOwners } from "../google-classes.ts";
import { GoogleSaveRepository } from "../google-save-repository.ts";
import type { GoogleSaves } from "../google-saves.ts";
import { walletLimits } from "../limits.ts";
import { MessagePasses } from "../message-passes.ts";
import { passDesk } from "../pass-desk.ts";
import { PassFileLinks } from "../pass-file-links.ts";
import { PassSweep } from "../pass-sweep.ts";
import type { PassDevices, PassStore } from "../passes.ts";
import { PassesInTurn } from "../passes-in-turn.ts";
import type { WalletPlatform } from "../platform.ts";
import type { WalletPorts } from "../ports.ts";
import { carriedPassCharges, walletCharges } from "../retry-charges.ts";
import { walletTemplateKind } from "../template-kind.ts";
import { walletPart } from "../tenant-part.ts";
import { WalletChannel } from "../wallet-channel.ts";
import { withPass } from "../wallet-result.ts";
import { platformApple, startApplePush } from "./apple.ts";
import { walletChecks } from "./checks.ts";
import { platformGoogle, startGoogle } from "./google.ts";

/** Passes for Apple's wallet, whose devices are told of changes, and for Google's. */
export const wallet: AppChannel = {
  name: "wallet",
  letter: "p",
  endpoints: walletEndpoints,
  registry: walletRegistry,
  stores: walletStores,
  tenantPart: walletPart,
  credentialKinds: WALLET_CREDENTIALS,
  contentKind: ({ wallet: { passes } }) => walletContentKind(passes),
  completeResult: (ports, tenant, job) => withPass(ports.wallet, tenant, job),
  retryCharges: ({ passes }) => walletCharges(passes),
  carriedPasses: { desk: passDesk, charges: ({ passes }) => carriedPassCharges(passes) },
  templateKind: walletTemplateKind,
  checks: walletChecks,
  open: openWallet,
};

interface WalletStores {
  readonly passes: PassStore;
  readonly devices: PassDevices;
  readonly googleClasses: GoogleClassOwners;
  readonly googleSaves: GoogleSaves;
}

interface WalletApi {
  readonly wallet: WalletPorts;
  /** Serves devices that hold passes. */
  readonly passKit: PassKitPorts;
}

declare module "../../contract.ts" {
  interface ChannelStores extends WalletStores {}
  interface ChannelApi extends WalletApi {}
}

function walletStores(tools: ChannelTools): WalletStores {
  const { database, clock } = tools;
  const devices = new DeviceRepository(database, clock);
  return {
    passes: new PassesInTurn({ ...tools, devices }),
    devices,
    googleClasses: new GoogleClassRepository(database, clock),
    googleSaves: new GoogleSaveRepository(database, clock),
  };
}

async function openWallet(ports: ChannelPorts, shutdown: Shutdown): Promise<OpenChannel> {
  const { config, clock, random, telemetry, stores, directory, queue, eventStore, away } = ports;
  const platform = { apple: await platformApple(config), google: platformGoogle(config) };
  // The API talks to Google as well: about classes, and about the outcome of passes.
  const google = await startGoogle(ports, platform, shutdown);
  away.addPart("Google wallet", () => google.wallet.health());
  const keys = new CallbackKeys({ url: google.keysUrl, clock, telemetry });
  shutdown.add("providers", "Google's keys", () => keys.close());
  const signers = new PassSigners({ telemetry, nowMs: () => clock.nowMs() });
  const served = servedWallet(ports, { platform, signers, google: google.wallet, keys });
  const { passKit, ...devices } = openPassKit(ports, served.bundles);
  const { passes } = stores;
  if (ports.sweeps) {
    shutdown.start(
      "history",
      "pass sweep",
      new PassSweep({ passes, directory, queue, eventStore, clock, random, telemetry }),
    );
  }
  const push = ports.delivers ? await startPush(ports, served, shutdown) : null;
  return {
    platform,
    api: { wallet: served, passKit },
    messagePasses: served.messagePasses,
    settings: { ...google.settings, ...push?.settings },
    inboxes: [...(push?.inboxes ?? []), ...google.inboxes],
    callBack: google.callBack,
    measure: () => signers.measure(telemetry, ownerCheck(directory)),
    expiring: () => platformExpiring(signers),
    removeOfTenant: (tenantId) => stores.devices.removeOfTenant(tenantId),
    ...devices,
    ...(push !== null && { channel: push.channel }),
  };
}

/** Dependencies of the API's wallet routes; the wallet channel signs with the same `bundles`. */
interface ServedWallet extends WalletPorts {
  readonly bundles: AppleBundles;
  readonly google: GoogleWallet;
  readonly messagePasses: CarriedPasses;
}

interface Providers {
  readonly platform: WalletPlatform;
  readonly signers: PassSigners;
  readonly google: GoogleWallet;
  readonly keys: CallbackKeys;
}

/** Creates the wallet's parts, and starts only a check of the platform's certificate. */
function servedWallet(
  { config, clock, telemetry, stores, publicUrl }: ChannelPorts,
  { platform, signers, google, keys }: Providers,
): ServedWallet {
  const { passes, devices } = stores;
  const nowMs = () => clock.nowMs();
  const bundles = new AppleBundles({
    passes,
    signers,
    platform,
    telemetry,
    nowMs,
    // Read when a pass is signed, since the port may only be known by then.
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
  const fileLinks = new PassFileLinks(config.masterKeys, publicUrl);
  return {
    fileLinks,
    fileTurns: new CallTurns(walletLimits.tenantFileReads, clock),
    messagePasses: new MessagePasses({ passes, bundles, google, fileLinks }),
    passes,
    devices,
    bundles,
    google,
    classes: google.classes,
    callbacks: new GoogleCallbacks(keys, clock),
    saves: stores.googleSaves,
    saveLinks: google,
    checkSigner: (signer) => checkAppleSigner(signer, nowMs()),
    noteSigner: note,
    outbound: outboundGuard(config),
  };
}

/** Passes are delivered from here, and Apple's devices told of changes. */
async function startPush(
  { config, clock, random, telemetry, stores: { passes, devices } }: ChannelPorts,
  { bundles, google }: ServedWallet,
  shutdown: Shutdown,
) {
  const { connections, inbox, url } = await startApplePush(config, telemetry, shutdown);
  return {
    settings: { apnsUrl: url },
    inboxes: inbox === null ? [] : [inbox],
    channel() {
      const pusher = new PassPusher({ connections, devices, clock, random, telemetry });
      const channel = new WalletChannel({ passes, bundles, pusher, google, telemetry });
      shutdown.add("providers", "pushes", () => channel.close());
      return channel;
    },
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

/** Creates the service for devices that hold passes, without starting it. */
function openPassKit(ports: ChannelPorts, bundles: AppleBundles) {
  const { config, clock, jobIds, telemetry, directory, news } = ports;
  const { passes, devices } = ports.stores;
  const caller = new WebhookClient({ guard: outboundGuard(config) });
  const webhooks = new DeviceWebhooks({ directory, caller, clock, jobIds, telemetry });
  const log = new DeviceLog({ clock, telemetry, keptMax: config.providers === "live" ? 0 : COMPLAINTS_KEPT });
  return {
    passKit: { passes, devices, bundles, news, jobIds, webhooks, log },
    complaints: (limit: number) => log.latest(limit),
    // Delivers pending notifications.
    drain: (fromMs: number) => webhooks.stop(fromMs + limits.drainMs),
  };
}

/** Most complaints kept for the sandbox view. */
const COMPLAINTS_KEPT = 1_000;
