import type { DomainRequest, DomainResult, Domains, DomainView } from "../../../src/domain/domain.ts";
import { type Done, done, missing } from "../../../src/domain/store-result.ts";

/** Domains in memory, of which none is ever verified. */
export class FakeDomains implements Domains {
  private readonly views = new Map<string, DomainView>();

  async register(tenantId: string, { domain, relayEnabled, smtpEnabled }: DomainRequest): Promise<Done<DomainView>> {
    const record = {
      Domain: domain,
      RelayEnabled: relayEnabled,
      RelayStatus: "pending",
      SMTPEnabled: smtpEnabled,
      SMTPStatus: "pending",
      DNSRecords: { relay: [] },
    } as const;
    const view = { record, details: { created_at: "2026-11-21T07:30:00Z", checked_at: null, checks: [] } };
    this.views.set(`${tenantId} ${domain}`, view);
    return done(view);
  }

  async all(tenantId: string): Promise<Done<readonly DomainView[]>> {
    return done(Array.from(this.views).flatMap(([name, view]) => (name.startsWith(`${tenantId} `) ? [view] : [])));
  }

  async one(tenantId: string, domain: string): Promise<DomainResult<DomainView>> {
    const view = this.views.get(`${tenantId} ${domain}`);
    return view === undefined ? missing("domain") : done(view);
  }

  verify(tenantId: string, domain: string): Promise<DomainResult<DomainView>> {
    return this.one(tenantId, domain);
  }

  async delete(tenantId: string, domain: string): Promise<DomainResult<null>> {
    return this.views.delete(`${tenantId} ${domain}`) ? done(null) : missing("domain");
  }
}
