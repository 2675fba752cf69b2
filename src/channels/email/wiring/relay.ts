import type { Config } from "../../../config/config.ts";
import { chooseMailHost } from "../../../config/mail-names.ts";
import type { DeliveryReport, SandboxInbox } from "../../../domain/jobs/report.ts";
import { machineName } from "../../../runtime/machine-name.ts";
import { outboundGuard } from "../../../runtime/network-guard.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import type { ChannelPorts, OpenChannel } from "../../contract.ts";
import { EmailChannel, type EmailChannelOptions, RELAY_CONNECTIONS_MAX } from "../email-channel.ts";
import type { LinkSigner } from "../links/link-tokens.ts";
import { startSmtpSandbox } from "../sandbox/smtp-sandbox.ts";
import { spamFilterFor } from "../spam/spam-filter-for.ts";
import { SpamScreen } from "../spam/spam-screen.ts";

type Delivering = Required<Pick<OpenChannel, "settings" | "inboxes" | "channel">>;

/** E-mail through the configured relay, or the sandbox. */
export async function startRelay(ports: ChannelPorts, links: LinkSigner, shutdown: Shutdown): Promise<Delivering> {
  const { url, inbox } = await startSmtp(ports, shutdown);
  return {
    settings: { smtpUrl: url },
    inboxes: inbox === null ? [] : [inbox],
    channel: ({ contents }) => openEmail(url, { ...ports, links, contents }, shutdown),
  };
}

interface Stand {
  readonly url: string;
  /** Null: not a sandbox. */
  readonly inbox: SandboxInbox | null;
}

async function startSmtp({ config, clock, telemetry, reports }: ChannelPorts, shutdown: Shutdown): Promise<Stand> {
  if (config.smtpUrl !== null) return { url: config.smtpUrl, inbox: null };
  const onReport = (report: DeliveryReport) => void reports.take(report, "email");
  const sandbox = await startSmtpSandbox({ clock, telemetry, onReport });
  shutdown.add("providers", "sandbox", () => sandbox.stop());
  return sandbox;
}

/** Of one process to one relay, of which all processes of a start have at most as many as one may have. */
const RELAY_CONNECTIONS_MIN = 4;

function openEmail(
  smtpUrl: string,
  ports: ChannelPorts & Required<Pick<EmailChannelOptions, "links" | "contents">>,
  shutdown: Shutdown,
): EmailChannel {
  const { config, clock, random, telemetry, away, dispatchers, links, contents, stores } = ports;
  const ownRelays = config.providers === "live" ? outboundGuard(config) : null;
  const filter = spamFilterFor(config.spamFilter);
  const spam =
    filter === null ? null : new SpamScreen({ filter, threshold: config.spamThreshold, clock, random, telemetry });
  if (spam !== null) away.addPart("spam filter", () => spam.health());
  const sender = { defaultFrom: config.mailFrom, defaultSigning: () => stores.senderDomain.signing };
  const common = {
    smtpUrl,
    ...sender,
    publicUrl: ports.publicUrl(),
    links,
    suppressions: ports.queue,
    bounces: ports.suppressions,
    contents,
    clock,
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

/**
 * `EHLO_NAME`; if unset, `MAIL_HOST`, or else the machine's full name. Where the machine has none, the name that bounces go to: a name
 * is taken by more servers than an address is.
 */
export function chooseEhloName(config: Config): string {
  return config.ehloName ?? config.mailHost ?? machineName() ?? chooseMailHost(config);
}
