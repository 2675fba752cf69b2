import type { GoogleWallet } from "../channels/wallet/google/google-wallet.ts";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channels/channel.ts";
import type { PlatformCredentials } from "../domain/channels/platform.ts";
import type { SandboxInbox } from "../domain/jobs/report.ts";
import type { AppChannel, ChannelContext, ChannelPorts, ProviderUrls, StartedChannel } from "./app-channel.ts";
import { platformApple } from "./apple.ts";
import { type Google, platformGoogle, startGoogle } from "./google.ts";
import type { OpenRegistry } from "./open-registry.ts";
import type { Shutdown } from "./shutdown.ts";
import { platformWhatsapp } from "./whatsapp.ts";

/** The connections between this process and the providers. */
export interface Providers {
  /** Where the sandbox's messages can be read; null if real providers are in use. */
  readonly inbox: SandboxInbox | null;
  readonly platform: PlatformCredentials;
  readonly google: GoogleWallet;
  /** The providers' addresses, for the other processes of the start: all sandboxes run in one process. */
  readonly urls: ProviderUrls;
  /** Where providers reach the API. */
  publicUrl(): string;
  /** Tells the sandbox where to send callbacks: to this process's API, or else to another process's. */
  callBack(apiUrl: string): void;
  /** The channels that this process delivers by: none where it does not play that role. Called once. */
  openChannels(context: ChannelContext): readonly Channel[];
}

export interface ProvidersPorts extends Omit<ChannelPorts, "platform" | "google"> {
  readonly channels: readonly AppChannel[];
  readonly registry: Pick<OpenRegistry, "googleClasses" | "passes">;
  /** Whether jobs are delivered from here: by this process, or by others to the sandboxes in this one. */
  readonly delivers: boolean;
  /** Where providers reach the API; known for certain once it listens. */
  publicUrl(): string;
}

/** Starts sandboxes for the providers that are not configured. */
export async function startProviders(ports: ProvidersPorts, shutdown: Shutdown): Promise<Providers> {
  const { config, telemetry, registry, away } = ports;
  const apple = await platformApple(config);
  const platform = { whatsapp: platformWhatsapp(config), apple, google: platformGoogle(config) };
  // The API talks to Google as well: about classes, and about the outcome of passes.
  const { googleClasses: classOwners, passes } = registry;
  const { publicUrl } = ports;
  const google = await startGoogle({ config, telemetry, platform, classOwners, passes, publicUrl }, shutdown);
  away.addPart("Google wallet", () => google.wallet.health());
  const common = { platform, google: google.wallet };
  const started: StartedChannel[] = [];
  for (const channel of ports.delivers ? ports.channels : []) {
    started.push(await channel.start({ ...ports, ...common }, shutdown));
  }
  let urls: ProviderUrls = { ...config, ...googleUrls(config, google) };
  for (const one of started) urls = { ...urls, ...one.urls };
  return {
    ...common,
    publicUrl,
    urls: pickUrls(urls),
    inbox: joinInboxes(config, [...started.map(({ inbox = null }) => inbox), google.inbox]),
    callBack(apiUrl) {
      for (const each of [...started, google]) each.callBack?.(apiUrl);
    },
    openChannels: (context) => started.map((channel) => channel.open(context)),
  };
}

/** The addresses of the sandbox; real ones are known from the configuration, but for the keys', which is Google's own. */
function googleUrls({ providers }: Config, { apiUrl, tokenUrl, keysUrl }: Google): Partial<ProviderUrls> {
  const keys = { googleCallbackKeysUrl: keysUrl };
  return providers === "live" ? keys : { googleWalletApiUrl: apiUrl, googleTokenUrl: tokenUrl, ...keys };
}

function pickUrls(urls: ProviderUrls): ProviderUrls {
  const { smtpUrl, whatsappApiUrl, googleWalletApiUrl, googleTokenUrl, googleCallbackKeysUrl, apnsUrl } = urls;
  return { smtpUrl, whatsappApiUrl, googleWalletApiUrl, googleTokenUrl, googleCallbackKeysUrl, apnsUrl };
}

/** In an `api` process without its own dispatcher it shows little: messages stay in the process that delivered them. */
function joinInboxes(config: Config, inboxes: readonly (SandboxInbox | null)[]): SandboxInbox | null {
  return config.providers === "live" ? null : joinedInbox(inboxes.filter((inbox) => inbox !== null));
}

/** The messages of several sandboxes as one list, newest first. */
export function joinedInbox(inboxes: readonly SandboxInbox[]): SandboxInbox {
  return {
    messages(to, limit) {
      const all = inboxes.flatMap((inbox) => inbox.messages(to, limit));
      // ISO 8601 times in UTC of equal length sort as text. The sort is stable.
      return all
        .sort((a, b) => Number(b.received_at > a.received_at) - Number(b.received_at < a.received_at))
        .slice(0, limit);
    },
    erase: (to) => inboxes.reduce((sum, inbox) => sum + inbox.erase(to), 0),
  };
}
