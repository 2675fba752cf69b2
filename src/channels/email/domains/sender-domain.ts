import type { DomainView, RegisteredDomain, SenderDomain, SenderDomainStore } from "../../../domain/channels/domain.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Random } from "../../../domain/random.ts";
import { checkRelay } from "./check-relay.ts";
import { makeDkimKey } from "./dkim-key.ts";
import type { DnsResolver } from "./dns.ts";
import { domainView, newSelector, statusAfter } from "./domain-service.ts";

export interface SenderDomainOptions {
  readonly store: SenderDomainStore;
  readonly dns: DnsResolver;
  /** As in `DomainServiceOptions`. */
  readonly mailHost: string;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Verifies the domain of the platform's own sender like a tenant's, by the same four records: receivers act on a one-click
 * unsubscribe only if a signature covers it (RFC 8058, 4).
 *
 * Only a verification changes the status, one at a time in this process; a lookup without an answer leaves it
 * unchanged.
 */
export class PlatformSenderDomain implements SenderDomain {
  private inFlight: Promise<RegisteredDomain> | null = null;

  constructor(private readonly options: SenderDomainOptions) {}

  async view(): Promise<DomainView> {
    return this.shown(await this.registered());
  }

  async verify(): Promise<DomainView> {
    this.inFlight ??= this.judge().finally(() => {
      this.inFlight = null;
    });
    return this.shown(await this.inFlight);
  }

  private async judge(): Promise<RegisteredDomain> {
    const { store, dns, mailHost, clock } = this.options;
    const domain = await this.registered();
    const findings = await checkRelay(domain, dns, mailHost);
    const relayStatus = statusAfter(domain.relayStatus, findings);
    return store.judge(domain, { relayStatus, smtpStatus: "pending", findings, checkedAtMs: clock.nowMs() });
  }

  private async registered(): Promise<RegisteredDomain> {
    const { store, random } = this.options;
    const stored = await store.read();
    return stored ?? store.create({ ...(await makeDkimKey()), selector: newSelector(random) });
  }

  private shown(domain: RegisteredDomain): DomainView {
    return domainView(domain, this.options.mailHost);
  }
}
