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

/** Registers and verifies domains, using the configured name servers or else the system's. */
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

/** `MAIL_HOST`; if unset, the host of the public URL, provided it is a name. */
function mailHostOf({ mailHost, publicUrl, mailFrom }: Config): string {
  const publicHost = publicUrl === null ? undefined : hostName(new URL(publicUrl).hostname);
  return mailHost ?? publicHost ?? mailFrom.address.slice(mailFrom.address.lastIndexOf("@") + 1).toLowerCase();
}

/** The system's list omits the default port: `10.0.0.2` and `::1`, but `10.0.0.2:5353` and `[::1]:5353`. */
function withPort(address: string): string {
  if (/^\[.*\]:\d+$/.test(address) || /^[\d.]+:\d+$/.test(address)) return address;
  return address.includes(":") ? `[${address}]:53` : `${address}:53`;
}
