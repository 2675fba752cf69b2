import { chooseMailHost } from "../../../config/mail-names.ts";
import type { DomainStore, Domains, SenderDomain } from "../../../domain/channels/domain.ts";
import { outboundGuard } from "../../../runtime/network-guard.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import type { AppChannel, ChannelPorts, ChannelTools, OpenChannel } from "../../contract.ts";
import { emailWithPass } from "../carried-pass.ts";
import { emailTemplateKind } from "../content/template-kind.ts";
import { emailContentKind } from "../content-kind.ts";
import { EMAIL_CREDENTIALS } from "../credential-kinds.ts";
import { DomainRepository } from "../domains/domain-repository.ts";
import { DomainService } from "../domains/domain-service.ts";
import { PlatformSenderDomain } from "../domains/sender-domain.ts";
import { SenderDomainRepository } from "../domains/sender-domain-repository.ts";
import { StubResolver } from "../domains/stub-resolver.ts";
import { emailEndpoints, emailRegistry } from "../endpoints.ts";
import { type LinkReader, LinkTokens } from "../links/link-tokens.ts";
import { MailReports } from "../reports/mail-reports.ts";
import { SmtpProbe } from "../smtp/smtp-probe.ts";
import { emailPart } from "../tenant-part.ts";
import { emailChecks } from "./checks.ts";
import { startMailLog } from "./mail-log.ts";
import { resolveNameServers } from "./name-servers.ts";
import { chooseEhloName, startRelay } from "./relay.ts";
import { startSubmission } from "./submission.ts";

export const email: AppChannel = {
  name: "email",
  letter: "e",
  endpoints: emailEndpoints,
  registry: emailRegistry,
  stores: emailStores,
  tenantPart: emailPart,
  credentialKinds: EMAIL_CREDENTIALS,
  contentKind: () => emailContentKind,
  fillPass: emailWithPass,
  templateKind: emailTemplateKind,
  checks: emailChecks,
  open: openEmail,
};

interface EmailStores {
  readonly domains: DomainStore;
  readonly senderDomain: SenderDomainRepository;
}

interface EmailApi {
  readonly domains: Domains;
  readonly senderDomain: SenderDomain;
  /** Reads the tokens of public links. */
  readonly links: LinkReader;
  /** Takes bounced mail. */
  readonly mailReports: Pick<MailReports, "take">;
}

declare module "../../contract.ts" {
  interface ChannelStores extends EmailStores {}
  interface ChannelApi extends EmailApi {}
}

function emailStores(tools: ChannelTools): EmailStores {
  const senderDomain = new SenderDomainRepository({ ...tools, domain: tools.senderDomain });
  tools.follow(() => senderDomain.refresh());
  return { domains: new DomainRepository(tools), senderDomain };
}

async function openEmail(ports: ChannelPorts, shutdown: Shutdown): Promise<OpenChannel> {
  const { config, reports, owners, clock, telemetry } = ports;
  const links = new LinkTokens(config.masterKeys);
  startMailLog(ports, shutdown);
  return {
    api: {
      ...(await openDomains(ports)),
      links,
      mailReports: new MailReports({ reports, links, owners, clock, telemetry }),
    },
    listen: (door) => startSubmission(config, shutdown, door),
    ...(ports.delivers ? await startRelay(ports, links, shutdown) : {}),
  };
}

/** Registers and verifies domains, using the configured name servers or else the system's. */
async function openDomains({ config, clock, random, directory, stores: { domains, senderDomain } }: ChannelPorts) {
  const dns = new StubResolver({ servers: await resolveNameServers(config), clock, random });
  const common = { dns, mailHost: chooseMailHost(config), clock, random };
  const relayProbe = new SmtpProbe({ guard: outboundGuard(config), ehloName: chooseEhloName(config) });
  return {
    domains: new DomainService({ ...common, store: domains, directory, relayProbe }),
    senderDomain: new PlatformSenderDomain({ ...common, store: senderDomain }),
  };
}
