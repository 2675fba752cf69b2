/** Batches of one tenant that run at a time, and batches that may wait for them. */
const AT_A_TIME = 3;
const WAITING_MAX = 64;

/** Runs each tenant's work a few pieces at a time, in order of arrival. */
export class TenantTurns {
  private readonly tenants = new Map<string, { working: number; readonly waiting: (() => void)[] }>();

  /**
   * Resolves when it is the caller's turn; the caller then calls `leave`. Null: the limit of waiting calls is reached.
   */
  enter(tenantId: string): Promise<void> | null {
    const tenant = this.tenants.get(tenantId) ?? { working: 0, waiting: [] };
    this.tenants.set(tenantId, tenant);
    if (tenant.working < AT_A_TIME) {
      tenant.working += 1;
      return Promise.resolve();
    }
    if (tenant.waiting.length >= WAITING_MAX) return null;
    return new Promise((resolve) => tenant.waiting.push(resolve));
  }

  leave(tenantId: string): void {
    const tenant = this.tenants.get(tenantId);
    const next = tenant?.waiting.shift();
    if (next !== undefined) return next();
    if (tenant === undefined) return;
    tenant.working -= 1;
    if (tenant.working === 0) this.tenants.delete(tenantId);
  }
}
