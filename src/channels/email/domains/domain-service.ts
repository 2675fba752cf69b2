import type {
  DomainRequest,
  DomainResult,
  DomainStatus,
  DomainStore,
  Domains,
  DomainView,
  Finding,
  NewDomainResult,
  RegisteredDomain,
  RelayProbe,
} from "../../../domain/channels/domain.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Random } from "../../../domain/random.ts";
import { type AllOfTenant, done, type Invalid, invalid, missing } from "../../../domain/store-result.ts";
import type { TenantDirectory } from "../../../domain/tenants/tenant.ts";
import { checkRelay } from "./check-relay.ts";
import { makeDkimKey } from "./dkim-key.ts";
import type { DnsResolver } from "./dns.ts";
import { parseDomainName } from "./domain-name.ts";
import { relayRecords, toReturnPathHost } from "./relay-records.ts";

export interface DomainServiceOptions {
  readonly store: DomainStore;
  readonly dns: DnsResolver;
  readonly relayProbe: RelayProbe;
  readonly directory: TenantDirectory;
  /** The host that receives the platform's bounces; tenants' return paths point to it. */
  readonly mailHost: string;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Registers tenants' sending domains and verifies them.
 *
 * Invariants:
 * D1. Only a verification changes a status. A lookup without an answer does not.
 * D2. At most one verification per domain is in flight in this process; concurrent requests share its result. So the
 *     number of DNS questions is bounded by the number of domains, not of requests.
 */
export class DomainService implements Domains {
  /** Keyed by the selector of the domain's key, which identifies one registration (D2). */
  private readonly inFlight = new Map<string, Promise<DomainResult<RegisteredDomain>>>();

  constructor(private readonly options: DomainServiceOptions) {}

  async register(
    tenantId: string,
    { domain: text, relayEnabled, smtpEnabled }: DomainRequest,
  ): Promise<NewDomainResult<DomainView> | Invalid> {
    const domain = parseDomainName(text);
    if (domain === null) {
      return invalid("domain must be a domain name in ASCII of at most 220 characters, such as mail.example.com");
    }
    const { publicKey, privateKeyPem } = await makeDkimKey();
    const registered = await this.options.store.create({
      tenantId,
      domain,
      relayEnabled,
      smtpEnabled,
      selector: newSelector(this.options.random),
      publicKey,
      privateKeyPem,
      returnPathHost: toReturnPathHost(domain),
    });
    return registered.kind === "done" ? done(this.view(registered.value)) : registered;
  }

  async all(tenantId: string): Promise<AllOfTenant<DomainView>> {
    const all = await this.options.store.all(tenantId);
    return all.kind === "done" ? done(all.value.map((domain) => this.view(domain))) : all;
  }

  async one(tenantId: string, domain: string): Promise<DomainResult<DomainView>> {
    return this.shown(await this.stored(tenantId, domain));
  }

  async verify(tenantId: string, domain: string): Promise<DomainResult<DomainView>> {
    const registered = await this.stored(tenantId, domain);
    if (registered.kind !== "done") return registered;
    const { selector } = registered.value;
    const running =
      this.inFlight.get(selector) ?? this.judge(registered.value).finally(() => this.inFlight.delete(selector));
    this.inFlight.set(selector, running);
    return this.shown(await running);
  }

  async delete(tenantId: string, text: string): Promise<DomainResult<null>> {
    const domain = parseDomainName(text);
    return domain === null ? missing("domain") : this.options.store.delete(tenantId, domain);
  }

  private async stored(tenantId: string, text: string): Promise<DomainResult<RegisteredDomain>> {
    const domain = parseDomainName(text);
    return domain === null ? missing("domain") : this.options.store.one(tenantId, domain);
  }

  private async judge(domain: RegisteredDomain): Promise<DomainResult<RegisteredDomain>> {
    const { store, dns, mailHost, clock } = this.options;
    const [relay, smtp] = await Promise.all([
      domain.relayEnabled ? checkRelay(domain, dns, mailHost) : [],
      domain.smtpEnabled ? this.checkOwnRelay(domain.tenantId) : [],
    ]);
    return store.judge(domain, {
      relayStatus: statusAfter(domain.relayStatus, relay),
      smtpStatus: statusAfter(domain.smtpStatus, smtp),
      findings: [...relay, ...smtp],
      checkedAtMs: clock.nowMs(),
    });
  }

  private async checkOwnRelay(tenantId: string): Promise<readonly Finding[]> {
    const { directory, relayProbe } = this.options;
    const tenant = await directory.byId(tenantId);
    return [await relayProbe.check(tenant?.emailSender?.smtpUrl ?? null)];
  }

  private shown(result: DomainResult<RegisteredDomain>): DomainResult<DomainView> {
    return result.kind === "done" ? done(this.view(result.value)) : result;
  }

  private view(domain: RegisteredDomain): DomainView {
    return domainView(domain, this.options.mailHost);
  }
}

export function domainView(domain: RegisteredDomain, mailHost: string): DomainView {
  const { returnPath, spf, dkim, dmarc } = relayRecords(domain, mailHost);
  return {
    record: {
      Domain: domain.domain,
      RelayEnabled: domain.relayEnabled,
      RelayStatus: domain.relayStatus,
      SMTPEnabled: domain.smtpEnabled,
      SMTPStatus: domain.smtpStatus,
      DNSRecords: { relay: [returnPath, spf, dkim, dmarc] },
    },
    details: {
      created_at: isoTime(domain.createdAtMs),
      checked_at: domain.checkedAtMs === null ? null : isoTime(domain.checkedAtMs),
      checks: domain.findings.map(({ check, result, why }) => ({ check, result, why })),
    },
  };
}

/** Never reuses a selector: verifiers that have cached the former key must not apply it to the new one. */
export function newSelector(random: Random): string {
  return `wb${Buffer.from(random.fill(new Uint8Array(4))).toString("hex")}`;
}

/** D1. An empty list of findings leaves the status unchanged. */
export function statusAfter(status: DomainStatus, findings: readonly Finding[]): DomainStatus {
  if (findings.some(({ result }) => result === "failed")) return "failed";
  return findings.length > 0 && findings.every(({ result }) => result === "passed") ? "verified" : status;
}

/** Formats a time as ISO 8601 UTC in whole seconds. */
function isoTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
