import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";

/** Tenants that the process's actors load at one time. */
const LOADS_MAX = 256;

/** Waits for a tenant: called once, with the tenant (null: it is gone), or with the failure to load it. */
export interface Asker {
  tenantLoaded(tenant: Tenant | null): void;
  tenantAway(): void;
}

/**
 * Loads tenants for the process's actors, a few at a time: thousands of actors with jobs must not query the registry at
 * once.
 */
export class TenantLookups {
  private loads = 0;
  private readonly loading = new Set<Asker>();
  /** In the order of their requests. */
  private readonly waiting = new Map<Asker, string>();

  constructor(private readonly directory: TenantDirectory) {}

  /** Returns the tenant, null if it is gone, or undefined: then the asker is called later, once. */
  find(tenantId: string, asker: Asker): Tenant | null | undefined {
    if (this.loading.has(asker) || this.waiting.has(asker)) return undefined;
    if (this.loads >= LOADS_MAX) {
      const known = this.directory.byIdNow?.(tenantId);
      if (known === undefined) this.waiting.set(asker, tenantId);
      return known;
    }
    const found = this.directory.byId(tenantId);
    if (!(found instanceof Promise)) return found;
    this.loads += 1;
    this.loading.add(asker);
    found.then(
      (tenant) => this.loaded(asker, () => asker.tenantLoaded(tenant)),
      () => this.loaded(asker, () => asker.tenantAway()),
    );
    return undefined;
  }

  /** Removes an asker that no longer waits. */
  forget(asker: Asker): void {
    this.waiting.delete(asker);
    this.loading.delete(asker);
  }

  private loaded(asker: Asker, tell: () => void): void {
    this.loads -= 1;
    if (this.loading.delete(asker)) tell();
    while (this.loads < LOADS_MAX) {
      const next = this.waiting.entries().next();
      if (next.done) return;
      const [asker, tenantId] = next.value;
      this.waiting.delete(asker);
      const found = this.find(tenantId, asker);
      if (found !== undefined) asker.tenantLoaded(found);
    }
  }
}
