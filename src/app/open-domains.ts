import { getServers } from "node:dns";
import { DomainService } from "../channels/email/domains/domain-service.ts";
import { StubResolver } from "../channels/email/domains/stub-resolver.ts";
import { SmtpProbe } from "../channels/email/smtp-probe.ts";
import type { Config } from "../config/config.ts";
import { hostName } from "../config/values.ts";
import type { DomainStore, Domains } from "../domain/domain.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { outboundGuard } from "./outbound-guard.ts";

/** Registering and verifying domains, over the name servers that the configuration or else the system names. */
export function openDomains(config: Config, store: DomainStore, directory: TenantDirectory): Domains {
  const servers = config.dnsServers ?? getServers().map(withPort);
  return new DomainService({
    store,
    directory,
    dns: new StubResolver({ servers, clock: systemClock, random: systemRandom }),
    relayProbe: new SmtpProbe({ guard: outboundGuard(config) }),
    mailHost: mailHostOf(config),
    clock: systemClock,
    random: systemRandom,
  });
}

/** What `MAIL_HOST` says; unset, the host that the world calls this service by, where it is a name. */
function mailHostOf({ mailHost, publicUrl, mailFrom }: Config): string {
  const publicHost = publicUrl === null ? undefined : hostName(new URL(publicUrl).hostname);
  return mailHost ?? publicHost ?? mailFrom.address.slice(mailFrom.address.lastIndexOf("@") + 1).toLowerCase();
}

/** The system's list leaves the usual port out: `10.0.0.2`, `::1`, but `10.0.0.2:5353` and `[::1]:5353`. */
function withPort(address: string): string {
  if (/^\[.*\]:\d+$/.test(address) || /^[\d.]+:\d+$/.test(address)) return address;
  return address.includes(":") ? `[${address}]:53` : `${address}:53`;
}
