import { EmailChannel, RELAY_CONNECTIONS_MAX } from "../channels/email/email-channel.ts";
import { startSmtpSandbox } from "../channels/email/sandbox/smtp-sandbox.ts";
import { spamFilterFor } from "../channels/email/spam/spam-filter-for.ts";
import { SpamScreen } from "../channels/email/spam/spam-screen.ts";
import type { AppleBundles } from "../channels/wallet/apple/apple-bundles.ts";
import { PassPusher } from "../channels/wallet/apple/push/pass-pusher.ts";
import type { GoogleWallet } from "../channels/wallet/google/google-wallet.ts";
import { WalletChannel } from "../channels/wallet/wallet-channel.ts";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channel.ts";
import type { LinkSigner } from "../domain/links.ts";
import type { PlatformCredentials } from "../domain/platform.ts";
import type { DeliveryReport, SandboxMailbox } from "../domain/report.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { DeliveryReports } from "../engine/reports/delivery-reports.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { type ApplePush, platformApple, startApplePush } from "./apple.ts";
import type { AwayParts } from "./away-parts.ts";
import { type Google, platformGoogle, startGoogle } from "./google.ts";
import { joinedMailbox } from "./joined-mailbox.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { outboundGuard } from "./outbound-guard.ts";
import type { Shutdown } from "./shutdown.ts";
import { platformWhatsapp, startWhatsapp } from "./whatsapp.ts";

/** What stands between this process and the world that messages go to. */
export interface Providers {
  /** Where the sandbox's messages can be read; null where real providers are in use. */
  readonly mailbox: SandboxMailbox | null;
  readonly platform: PlatformCredentials;
  readonly google: GoogleWallet;
  /** Where they are, as other processes of the start are told: the sandboxes are in one process. */
  readonly urls: ProviderUrls;
  /** Where the API is, for callbacks of the sandbox: this process's own, or else where any does. */
  callBack(apiUrl: string): void;
  /** The channels that this process delivers by: none where it does not play that role. Called once. */
  openChannels(surroundings: Context): readonly Channel[];
}

export type ProviderUrls = Pick<
  Config,
  "smtpUrl" | "whatsappApiUrl" | "googleWalletApiUrl" | "googleTokenUrl" | "apnsUrl"
>;

/** What channels have to know of the rest of the house. */
export interface Context {
  /** Where readers, devices and callbacks reach the API. */
  readonly publicUrl: string;
  readonly links: LinkSigner;
  readonly registry: Pick<OpenRegistry, "passes" | "devices">;
  readonly bundles: AppleBundles;
}

export interface ProvidersPorts {
  readonly config: Config;
  readonly telemetry: Telemetry;
  readonly reports: DeliveryReports;
  readonly registry: Pick<OpenRegistry, "googleClasses" | "passes">;
  readonly away: AwayParts;
  /** Whether jobs are delivered from here: by this process, or by others to the sandboxes in this one. */
  readonly delivers: boolean;
  /** How many processes deliver: together they have as many connections to a relay as one may have. */
  readonly dispatchers: number;
}

/** Starts the sandboxes that stand in for what the configuration does not name. */
export async function startProviders(ports: ProvidersPorts, shutdown: Shutdown): Promise<Providers> {
  const { config, telemetry, registry, away } = ports;
  const apple = await platformApple(config);
  const platform = { whatsapp: platformWhatsapp(config), apple, google: platformGoogle(config) };
  // The API talks to Google as well: about classes, and about what became of a pass.
  const { googleClasses: classOwners, passes } = registry;
  const google = await startGoogle({ config, telemetry, platform, classOwners, passes }, shutdown);
  away.addPart("Google wallet", () => google.wallet.health());
  const common = { platform, google: google.wallet };
  const urls = { ...config, ...googleUrls(config, google) };
  if (!ports.delivers) {
    const mailbox = sandboxOf(config, [google.mailbox]);
    return { ...common, urls: urlsOf(urls), mailbox, callBack: () => undefined, openChannels: () => [] };
  }
  const smtp = await startSmtp(ports, shutdown);
  const whatsapp = startWhatsapp(config, telemetry, shutdown);
  const push = await startApplePush(config, telemetry, shutdown);
  return {
    ...common,
    urls: urlsOf({ ...urls, smtpUrl: smtp.url, whatsappApiUrl: whatsapp.url, apnsUrl: push.url }),
    mailbox: sandboxOf(config, [smtp.mailbox, whatsapp.mailbox, google.mailbox, push.mailbox]),
    callBack: (apiUrl) => whatsapp.callBack(apiUrl),
    openChannels: (surroundings) => [
      openEmail(smtp.url, surroundings, ports, shutdown),
      whatsapp.openChannel(platform),
      openWalletChannel(surroundings, { push, google: google.wallet, telemetry }, shutdown),
    ],
  };
}

/** Of the sandbox both addresses; a real one is known by its configuration. */
function googleUrls({ providers }: Config, { apiUrl, tokenUrl }: Google): Partial<ProviderUrls> {
  return providers === "live" ? {} : { googleWalletApiUrl: apiUrl, googleTokenUrl: tokenUrl };
}

function urlsOf({ smtpUrl, whatsappApiUrl, googleWalletApiUrl, googleTokenUrl, apnsUrl }: ProviderUrls): ProviderUrls {
  return { smtpUrl, whatsappApiUrl, googleWalletApiUrl, googleTokenUrl, apnsUrl };
}

/** In an `api` process without a dispatcher of its own it has little: messages are in the process that delivered them. */
function sandboxOf(config: Config, mailboxes: readonly (SandboxMailbox | null)[]): SandboxMailbox | null {
  return config.providers === "live" ? null : joinedMailbox(mailboxes.filter((mailbox) => mailbox !== null));
}

interface Stand {
  readonly url: string;
  /** Null: not a sandbox. */
  readonly mailbox: SandboxMailbox | null;
}

/** The configured relay, or the sandbox. */
async function startSmtp({ config, telemetry, reports }: ProvidersPorts, shutdown: Shutdown): Promise<Stand> {
  if (config.smtpUrl !== null) return { url: config.smtpUrl, mailbox: null };
  const onReport = (report: DeliveryReport) => void reports.take(report);
  const sandbox = await startSmtpSandbox({ clock: systemClock, telemetry, onReport });
  shutdown.add("providers", "sandbox", () => sandbox.stop());
  return sandbox;
}

/** Of one process to one relay, of which all processes of a start have at most as many as one may have. */
const RELAY_CONNECTIONS_MIN = 4;

function openEmail(
  smtpUrl: string,
  { publicUrl, links }: Context,
  { config, telemetry, away, dispatchers }: ProvidersPorts,
  shutdown: Shutdown,
): EmailChannel {
  const ownRelays = config.providers === "live" ? outboundGuard(config) : null;
  const filter = spamFilterFor(config.spamFilter);
  const spam =
    filter === null ? null : new SpamScreen({ filter, threshold: config.spamThreshold, clock: systemClock, telemetry });
  if (spam !== null) away.addPart("spam filter", () => spam.health());
  const common = { smtpUrl, defaultFrom: config.mailFrom, publicUrl, links, clock: systemClock };
  const connectionsMax = Math.max(RELAY_CONNECTIONS_MIN, Math.floor(RELAY_CONNECTIONS_MAX / dispatchers));
  const email = new EmailChannel({ ...common, ownRelays, spam, connectionsMax });
  shutdown.add("providers", "e-mail connections", () => email.close());
  return email;
}

function openWalletChannel(
  { registry: { passes, devices }, bundles }: Context,
  { push, google, telemetry }: { push: ApplePush; google: GoogleWallet; telemetry: Telemetry },
  shutdown: Shutdown,
): WalletChannel {
  const { connections } = push;
  const pusher = new PassPusher({ connections, devices, clock: systemClock, random: systemRandom, telemetry });
  const wallet = new WalletChannel({ passes, bundles, pusher, google, telemetry });
  shutdown.add("providers", "pushes", () => wallet.close());
  return wallet;
}
