import type { DomainRequest, Domains, DomainView } from "../../../src/domain/domain.ts";
import { ApiError } from "../../../src/domain/errors.ts";

/** Domains in memory, of which none is ever verified. */
export class FakeDomains implements Domains {
  private readonly views = new Map<string, DomainView>();

  async register(tenantId: string, { domain, relayEnabled, smtpEnabled }: DomainRequest): Promise<DomainView> {
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
    return view;
  }

  async all(tenantId: string): Promise<readonly DomainView[]> {
    return Array.from(this.views).flatMap(([name, view]) => (name.startsWith(`${tenantId} `) ? [view] : []));
  }

  async one(tenantId: string, domain: string): Promise<DomainView> {
    const view = this.views.get(`${tenantId} ${domain}`);
    if (view === undefined) throw new ApiError(404, "there is no such domain");
    return view;
  }

  verify(tenantId: string, domain: string): Promise<DomainView> {
    return this.one(tenantId, domain);
  }

  async delete(tenantId: string, domain: string): Promise<void> {
    await this.one(tenantId, domain);
    this.views.delete(`${tenantId} ${domain}`);
  }
}
