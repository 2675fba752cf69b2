import { getServers } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { DomainService } from "../channels/email/domains/domain-service.ts";
import { PlatformSenderDomain } from "../channels/email/domains/sender-domain.ts";
import { StubResolver } from "../channels/email/domains/stub-resolver.ts";
import { EmailChannel, RELAY_CONNECTIONS_MAX } from "../channels/email/email-channel.ts";
import { startSmtpSandbox } from "../channels/email/sandbox/smtp-sandbox.ts";
import { SmtpProbe } from "../channels/email/smtp/smtp-probe.ts";
import { spamFilterFor } from "../channels/email/spam/spam-filter-for.ts";
import { SpamScreen } from "../channels/email/spam/spam-screen.ts";
import type { Config } from "../config/config.ts";
import { hostName } from "../config/values.ts";
import type { DomainStore, SenderDomainStore } from "../domain/channels/domain.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { DeliveryReport, SandboxInbox } from "../domain/jobs/report.ts";
import type { TenantDirectory } from "../domain/tenants/tenant.ts";
import { extractDomain } from "../domain/texts/split-address.ts";
import { answeredWithin } from "../runtime/answered-within.ts";
import { machineName } from "../runtime/machine-name.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ChannelContext, ChannelPorts, StartedChannel } from "./app-channel.ts";
import { outboundGuard } from "./outbound-guard.ts";
import type { Shutdown } from "./shutdown.ts";

/** E-mail through the configured relay, or the sandbox. */
export async function startEmail(ports: ChannelPorts, shutdown: Shutdown): Promise<StartedChannel> {
  const { url, inbox } = await startSmtp(ports, shutdown);
  return { urls: { smtpUrl: url }, inbox, open: (context) => openEmail(url, context, ports, shutdown) };
}

interface Stand {
  readonly url: string;
  /** Null: not a sandbox. */
  readonly inbox: SandboxInbox | null;
}

async function startSmtp({ config, telemetry, reports }: ChannelPorts, shutdown: Shutdown): Promise<Stand> {
  if (config.smtpUrl !== null) return { url: config.smtpUrl, inbox: null };
  const onReport = (report: DeliveryReport) => void reports.take(report, "email");
  const sandbox = await startSmtpSandbox({ clock: systemClock, telemetry, onReport });
  shutdown.add("providers", "sandbox", () => sandbox.stop());
  return sandbox;
}

/** Of one process to one relay, of which all processes of a start have at most as many as one may have. */
const RELAY_CONNECTIONS_MIN = 4;

function openEmail(
  smtpUrl: string,
  { publicUrl, links, suppressions, bounces, contents, registry }: ChannelContext,
  { config, telemetry, away, dispatchers }: ChannelPorts,
  shutdown: Shutdown,
): EmailChannel {
  const ownRelays = config.providers === "live" ? outboundGuard(config) : null;
  const filter = spamFilterFor(config.spamFilter);
  const spam =
    filter === null
      ? null
      : new SpamScreen({
          filter,
          threshold: config.spamThreshold,
          clock: systemClock,
          random: systemRandom,
          telemetry,
        });
  if (spam !== null) away.addPart("spam filter", () => spam.health());
  const sender = { defaultFrom: config.mailFrom, defaultSigning: () => registry.senderDomain.signing };
  const common = {
    smtpUrl,
    ...sender,
    publicUrl,
    links,
    suppressions,
    bounces,
    contents,
    clock: systemClock,
    ehloName: chooseEhloName(config),
    onSwap: (relay: string, { code }: { readonly code: string | null }) => {
      const how = code === "ETLS" ? "plain" : "encrypted";
      telemetry.count("relay_encryption_changes", { to: how });
      telemetry.log("warn", `connections to a mail server are ${how} for an hour`, {
        relay,
        why:
          code === "ETLS" ? "its TLS handshake fails, and nothing requires it" : "it demands STARTTLS on this machine",
      });
    },
  };
  const connectionsMax = Math.max(RELAY_CONNECTIONS_MIN, Math.floor(RELAY_CONNECTIONS_MAX / dispatchers));
  const email = new EmailChannel({ ...common, ownRelays, spam, connectionsMax });
  shutdown.add("providers", "e-mail connections", () => email.close());
  return email;
}

interface DomainPorts {
  readonly domains: DomainStore;
  readonly senderDomain: SenderDomainStore;
  readonly directory: TenantDirectory;
}

/** Registers and verifies domains, using the configured name servers or else the system's. */
export async function openDomains(config: Config, { domains, senderDomain, directory }: DomainPorts) {
  const common = {
    dns: new StubResolver({ servers: await resolveNameServers(config), clock: systemClock, random: systemRandom }),
    mailHost: chooseMailHost(config),
    clock: systemClock,
    random: systemRandom,
  };
  const relayProbe = new SmtpProbe({ guard: outboundGuard(config), ehloName: chooseEhloName(config) });
  return {
    domains: new DomainService({ ...common, store: domains, directory, relayProbe }),
    senderDomain: new PlatformSenderDomain({ ...common, store: senderDomain }),
  };
}

/** Addresses with a port. Rejects with `ConfigurationError` if a configured server's name has no address. */
export async function resolveNameServers({ dnsServers }: Pick<Config, "dnsServers">): Promise<readonly string[]> {
  if (dnsServers === null) return getServers().map(withPort);
  return (await Promise.all(dnsServers.map(resolveAddresses))).flat();
}

const NAME_SERVER_MS = 4_000;

/** All of a name's: a server may listen at one of them alone. */
async function resolveAddresses(server: string): Promise<readonly string[]> {
  const [, host = "", port] = /^\[?(.*?)\]?:(\d+)$/.exec(server) ?? [];
  if (isIP(host) !== 0) return [server];
  try {
    const found = await answeredWithin(NAME_SERVER_MS, () => lookup(host, { all: true }));
    return found.map(({ address, family }) => `${family === 6 ? `[${address}]` : address}:${port}`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(`DNS_SERVERS names "${server}"; its host should be a name with an address (${why})`);
  }
}

/** The domain of `MAIL_FROM`. */
export function readSenderDomain({ mailFrom: { address } }: Config): string {
  const domain = extractDomain(address);
  return (URL.parse(`http://${domain}`)?.hostname ?? domain).toLowerCase();
}

/** `MAIL_HOST`; if unset, the host of the public URL, provided it is a name. */
export function chooseMailHost(config: Config): string {
  const { mailHost, publicUrl } = config;
  const publicHost = publicUrl === null ? undefined : hostName(new URL(publicUrl).hostname);
  return mailHost ?? publicHost ?? readSenderDomain(config);
}

/**
 * `EHLO_NAME`; if unset, `MAIL_HOST`, or else the machine's full name. Where the machine has none, the name that bounces go to: a name
 * is taken by more servers than an address is.
 */
export function chooseEhloName(config: Config): string {
  return config.ehloName ?? config.mailHost ?? machineName() ?? chooseMailHost(config);
}

/** The system's list omits the default port: `10.0.0.2` and `::1`, but `10.0.0.2:5353` and `[::1]:5353`. */
function withPort(address: string): string {
  if (/^\[.*\]:\d+$/.test(address) || /^[\d.]+:\d+$/.test(address)) return address;
  return address.includes(":") ? `[${address}]:53` : `${address}:53`;
}
